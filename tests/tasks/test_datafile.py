"""Data files: what is read, and the message for everything that can be wrong with one."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.tasks import datafile
from sharpen.tasks.datafile import Reading, parse_fields, read

ROWS: list[dict[str, object]] = [{"input": "two", "answer": "2"}, {"input": "three", "answer": "3"}]


def file(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def jsonl(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def row_of(value: str) -> str:
    """A file with a value in its second line."""
    return f'{{"input": "x", "answer": "y"}}\n{{"input": {value}, "answer": "y"}}\n'


def items(path: Path, **settings: object) -> list[Item]:
    return [row.item for row in read(path, Reading(parse_fields(None), **settings))]  # type: ignore[arg-type]


def test_the_same_rows_are_the_same_items_in_every_format(tmp_path: Path) -> None:
    lines = items(file(tmp_path, "a.jsonl", jsonl(ROWS)))
    assert lines == items(file(tmp_path, "a.json", json.dumps(ROWS)))
    assert lines == items(file(tmp_path, "b.json", json.dumps({"data": ROWS})))
    assert lines == items(file(tmp_path, "a.csv", "input,answer\ntwo,2\nthree,3\n"))
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert lines == items(tmp_path / "a.parquet")
    assert lines == items(file(tmp_path, "b.csv", b"\xef\xbb\xbfinput,answer\r\ntwo,2\r\n\r\nthree,3\r\n"))


def test_ids_without_a_column_follow_the_content_not_the_place(tmp_path: Path) -> None:
    forwards = items(file(tmp_path, "a.jsonl", jsonl(ROWS)))
    backwards = items(file(tmp_path, "b.jsonl", "\n" + jsonl(ROWS[::-1])))
    assert forwards == backwards[::-1]


def test_a_parquet_file_keeps_numbers_lists_and_objects(tmp_path: Path) -> None:
    row = {
        "input": "q",
        "answer": ["a", "b"],
        "id": 7,
        "split": "val",
        "context": {"x": 1, "y": [0.5, None]},
        "on": True,
    }
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    (found,) = read(tmp_path / "a.parquet")
    assert found.item == Item("7", {"input": "q", "context": {"x": 1, "y": [0.5, None]}, "on": True}, ["a", "b"])
    assert found.split == "val"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"input": "x", "answer": "y"}, {"input": "z"}], "a.parquet, row 2: the answer .* is empty"),
        ([{"input": "x", "label": "y"}], "row 1: no column 'answer' for the answer"),
        (
            [{"input": "x", "answer": "y", "when": date(2026, 1, 2)}],
            "row 1: 'when' holds a date; save the column as text",
        ),
        ([{"input": "x", "answer": float("nan")}], "row 1: 'answer' holds nan"),
        ([{"input": "x", "answer": "y"}] * 2, "row 2: the same content as .*row 1"),
    ],
)
def test_what_is_wrong_with_a_parquet_file(tmp_path: Path, rows: list[dict[str, object]], says: str) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=says):
        read(tmp_path / "a.parquet")


def test_a_file_that_is_not_parquet_or_cannot_be_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "none.parquet")
    path = file(tmp_path, "a.parquet", "input,answer\n")
    with pytest.raises(UsageError, match="not a Parquet file"):
        read(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"need the Python package pyarrow; install it with .*sharpen\[parquet\]"):
        read(path)


def test_fields_inside_objects_are_named_by_a_path(tmp_path: Path) -> None:
    row = {"q": {"text": "how?"}, "meta": {"label": {"gold": "so"}, "lang": "en"}}
    path = file(tmp_path, "a.jsonl", jsonl([row]))
    (found,) = read(path, Reading(parse_fields("input=q.text,answer=meta.label.gold,type=meta.lang")))
    assert (found.item.text, found.item.reference, found.item.type) == ("how?", "so", "en")
    assert "so" not in json.dumps(found.item.inputs), "the answer must not stay among the inputs"
    with pytest.raises(UsageError, match=r"no column 'meta.labl' for the answer; the columns are 'q', 'meta'"):
        read(path, Reading(parse_fields("input=q,answer=meta.labl")))


def test_further_columns_become_inputs(tmp_path: Path) -> None:
    row = {"input": "q", "answer": ["a", "b"], "id": 7, "type": "hard", "split": "val", "context": {"x": 1}}
    (found,) = read(file(tmp_path, "a.jsonl", jsonl([row])))
    assert found.item == Item("7", {"input": "q", "context": {"x": 1}}, ["a", "b"], "hard")
    assert found.split == "val"


def test_columns_can_be_called_anything(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", 'question,label,uid\n"one, two\nthree",x,9\n')
    (found,) = read(path, Reading(parse_fields("input=question, answer=label,id=uid")))
    assert found.item == Item("9", {"input": "one, two\nthree"}, "x")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", '{"input": "x", "answer": "y"}\n{"input": \n', "a.jsonl, line 2: not JSON"),
        ("a.jsonl", '{"input": "x", "answer": NaN}\n', "a.jsonl, line 1: not JSON: NaN"),
        ("a.jsonl", "[1]\n", "line 1: expected an object"),
        (
            "a.jsonl",
            '{"question": "x", "answer": "y"}\n',
            "line 1: no column 'input' for the input; the columns are 'question', 'answer'",
        ),
        ("a.jsonl", '{"input": "x", "anwser": "y"}\n', "did you mean 'anwser'"),
        ("a.jsonl", '{"input": "x", "answer": ""}\n', "line 1: the answer .* is empty"),
        ("a.jsonl", '{"input": "x", "answer": null}\n', "line 1: the answer .* is empty"),
        ("a.jsonl", '{"input": "x", "answer": " \\t "}\n', "line 1: the answer .* is empty"),
        ("a.csv", "input,answer\nx, \n", "line 2: the answer .* is empty"),
        ("a.jsonl", '{"input": null, "answer": "y"}\n', "line 1: the input .* is null"),
        ("a.jsonl", row_of(r'"half \ud800"'), "line 2: half of a surrogate pair in 'half .ud800'"),
        ("a.jsonl", row_of(r'{"\udc00": 1}'), "line 2: half of a surrogate pair"),
        ("a.jsonl", row_of("[1e999]"), "line 2: a number is too large"),
        ("a.jsonl", row_of("9" * 5000), "line 2: not JSON: a whole number of 5000 digits"),
        ("a.jsonl", row_of("[" * 150 + "]" * 150), "line 2: nested more than 100 levels deep"),
        ("a.jsonl", row_of("[" * 90_000 + "]" * 90_000), "line 2: nested more than 100 levels deep"),
        ("a.json", f"[{row_of('-1e999').splitlines()[1]}]", "a.json, row 1: a number is too large"),
        ("a.json", "[" * 90_000 + "]" * 90_000, "a.json: nested more than 100 levels deep"),
        ("a.jsonl", '{"input": "x", "answer": "y", "id": 1.5}\n', "line 1: 'id' must be a text"),
        ("a.jsonl", "\n\n", "the file is empty"),
        ("a.jsonl", b'{"input": "x", "answer": "y"}\n\xff\xfe\n', "line 2: not UTF-8"),
        ("a.jsonl", jsonl([*ROWS, ROWS[0]]), "line 3: the same content as .*line 1"),
        ("a.jsonl", jsonl([{"id": "q", **row} for row in ROWS]), "line 2: id 'q' is already used at .*line 1"),
        ("a.json", '[{"input": "x",\n "answer": }]', "a.json, line 2: not JSON"),
        ("a.json", '{"rows": []}', "a list under 'data'"),
        ("a.json", "[]", "no items"),
        ("a.json", "[1]", "row 1: expected an object"),
        ("a.csv", "input,answer\n", "no items"),
        ("a.csv", "input,answer\nx,y,z\n", "line 2: 3 values for 2 columns"),
        ("a.csv", 'input,answer\n"a\nb",y\nx\n', "line 4: 1 values for 2 columns"),
        ("a.csv", 'input,answer\nx,y\n"x,y\n', "line 3: not CSV"),
        ("a.csv", "input,input\nx,y\n", "column 'input' occurs twice"),
        ("a.txt", "hello", "unknown kind of file '.txt'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, text: str | bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(file(tmp_path, name, text))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_text_of_any_length_is_read_from_any_format(tmp_path: Path, name: str) -> None:
    long = "so long " * 50_000
    made = f"input,answer\n{long},y\n" if name == "a.csv" else jsonl([{"input": long, "answer": "y"}])
    assert items(file(tmp_path, name, made))[0].text == long


def test_nesting_as_deep_as_allowed_is_read(tmp_path: Path) -> None:
    assert len(items(file(tmp_path, "a.jsonl", row_of("[" * 99 + "]" * 99)))) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "none.jsonl")


def test_duplicates_can_be_dropped(tmp_path: Path) -> None:
    assert len(items(file(tmp_path, "a.jsonl", jsonl([*ROWS, ROWS[0]])), drop_duplicates=True)) == 2


def test_a_column_beside_the_one_mapped_to_its_role_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "a.jsonl", jsonl([{"input": "x", "answer": "y", "label": "z"}]))
    with pytest.raises(UsageError, match="column 'answer' stands beside the column 'label'"):
        read(path, Reading({"answer": "label"}))


@pytest.mark.parametrize(
    ("fields", "says"), [("inptu=x", "did you mean 'input'"), ("input", "must look like"), ("=x", "must look")]
)
def test_wrong_field_mappings(fields: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_fields(fields)


def load(path: Path) -> dict[str, list[str]]:
    splits = datafile.load(path, datafile.PLAIN, ratio="1:1:1", seed=0)
    return {name: [item.text for item in splits[name]] for name in ("train", "val", "test")}


def row(text: str, **more: str) -> str:
    return json.dumps({"input": text, "answer": "y", **more}) + "\n"


def test_a_split_column_decides(tmp_path: Path) -> None:
    path = file(tmp_path, "a.jsonl", row("a", split="test") + row("b", split="train") + row("c", split="val"))
    assert load(path) == {"train": ["b"], "val": ["c"], "test": ["a"]}


def test_the_splits_of_a_folder_may_be_in_any_format(tmp_path: Path) -> None:
    file(tmp_path, "train/one.csv", "input,answer\na,y\n")
    file(tmp_path, "train/two.json", json.dumps([{"input": "b", "answer": "y"}]))
    file(tmp_path, "val.jsonl", row("c"))
    (tmp_path / "test").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist([{"input": "d", "answer": "y"}]), tmp_path / "test" / "x.parquet")
    assert load(tmp_path) == {"train": ["a", "b"], "val": ["c"], "test": ["d"]}


def test_a_folder_of_files_or_of_folders(tmp_path: Path) -> None:
    expected = {"train": ["a"], "val": ["b"], "test": ["c"]}
    for text, name in (("a", "train"), ("b", "val"), ("c", "test")):
        file(tmp_path, f"files/{name}.jsonl", row(text))
        file(tmp_path, f"folders/{name}/part.jsonl", row(text))
    file(tmp_path, "files/README.md", "about")
    assert load(tmp_path / "files") == load(tmp_path / "folders") == expected


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a.jsonl": row("a", split="train") + row("b")}, "line 2: no split, while other rows have one"),
        ({"a.jsonl": row("a", split="train") + row("b", split="dev")}, "line 2: unknown split 'dev'"),
        ({"a.jsonl": row("a", split="train") + row("b", split="val")}, "no items in test"),
        ({"d/train.jsonl": row("a"), "d/test.jsonl": row("b")}, "no data for val"),
        ({"d/train.jsonl": row("a"), "d/valid.jsonl": row("b"), "d/test.jsonl": row("c")}, "did you mean 'val'"),
        ({"d/train.jsonl": row("a"), "d/train/x.jsonl": row("b")}, "both .* hold train"),
        ({"d/train.jsonl": row("a"), "d/val.jsonl": row("b"), "d/test.jsonl": row("a")}, "occurs in train and in test"),
        (
            {"d/train.jsonl": row("a", id="1"), "d/val.jsonl": row("b"), "d/test.jsonl": row("a", id="2")},
            "splits must be disjoint",
        ),
        (
            {"d/train.jsonl": row("a", split="val"), "d/val.jsonl": row("b"), "d/test.jsonl": row("c")},
            "split 'val' in the data of train",
        ),
    ],
)
def test_splits_that_make_no_sense(tmp_path: Path, files: dict[str, str], says: str) -> None:
    for name, text in files.items():
        file(tmp_path, name, text)
    with pytest.raises(UsageError, match=says):
        load(tmp_path / min(files).split("/")[0])


values = st.text(max_size=12) | st.integers(-99, 99) | st.lists(st.integers(0, 9), max_size=2)


@given(
    st.lists(
        st.tuples(values, st.text(min_size=1, max_size=6).filter(str.strip)), min_size=1, max_size=6, unique_by=repr
    )
)
def test_any_rows_are_read_back(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[object, str]]) -> None:
    rows = [{"input": question, "answer": answer} for question, answer in pairs]
    path = file(tmp_path_factory.getbasetemp(), "any.jsonl", jsonl(rows))
    assert [(item.inputs["input"], item.reference) for item in items(path)] == pairs


def test_a_text_beyond_all_use_and_what_is_no_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datafile, "_LONGEST", 1000)
    (tmp_path / "long.jsonl").write_text('{"input": "' + "x" * 1001 + '", "answer": "a"}')
    with pytest.raises(
        UsageError, match=r"long\.jsonl, line 1: column 'input' has 1,001 characters; 1,000 are the most"
    ):
        datafile.read(tmp_path / "long.jsonl")
    (tmp_path / "endless.jsonl").symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="is no ordinary file"):
        datafile.read(tmp_path / "endless.jsonl")
