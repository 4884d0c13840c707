"""A task of a data file meets what its metric cannot use when it is made, and says where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.errors import UsageError
from sharpen.tasks.datatask import DataSettings, DataTask


def task(folder: Path, answers: list[Any], **settings: Any) -> DataTask:
    path = folder / "d.jsonl"
    rows = [{"input": f"question {n}", "answer": answer} for n, answer in enumerate(answers)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DataTask(path, DataSettings(**settings))


@pytest.mark.parametrize(
    ("metric", "wrong", "says"),
    [
        ("numeric", "many", "metric numeric needs a number as the answer, got 'many'"),
        ("numeric", "1/2", "metric numeric needs one number as the answer, such as 0.5, .*, got '1/2'"),
        ("json_equal", "{", "metric json_equal needs JSON"),
        ("regex", "(", "'\\(' is not a regular expression"),
        ("exact_match", [], "no answer to compare with"),
        ("exact_match", ["3", None], "the answer .* holds an empty text or null"),
        ("f1", [" "], "the answer .* holds an empty text or null"),
        ("exact_match", {"a": 1}, "metric exact_match compares texts, and the answer is an object; take json_equal"),
        ("contains", [["3"]], "metric contains compares texts, and the answer is a list inside a list"),
    ],
)
def test_a_reference_the_metric_cannot_use_is_named_by_file_and_line(
    tmp_path: Path, metric: str, wrong: object, says: str
) -> None:
    with pytest.raises(UsageError, match=rf"d\.jsonl, line 7: {says}"):
        task(tmp_path, [*"123456", wrong, wrong, *"789"], metric=metric)


def test_in_a_folder_too_the_file_is_named(tmp_path: Path) -> None:
    for name, answer in (("train", "1"), ("val", "2/3"), ("test", "3")):
        (tmp_path / f"{name}.csv").write_text(f"input,answer\n{name},{answer}\n")
    with pytest.raises(UsageError, match=r"val\.csv, line 2: metric numeric needs one number"):
        DataTask(tmp_path, DataSettings(metric="numeric"))


def test_a_field_the_template_names_is_missed_by_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"d\.jsonl, line 1: no field 'inptu', which the template names .*'input'"):
        task(tmp_path, list("123"), template="{inptu}")


def test_json_may_hold_what_a_text_may_not(tmp_path: Path) -> None:
    assert task(tmp_path, [[None], [""], {"a": 1}], metric="json_equal").items()


def test_every_accepted_answer_is_a_label_commas_and_all(tmp_path: Path) -> None:
    made = task(tmp_path, ["No, never", ["Yes", "Yes, definitely"], "Yes"], metric="choice")
    assert made.labels == ("No, never", "Yes", "Yes, definitely")
    for item in made.items():
        assert made.scorer(str(made.gold(item)), item).hard == 1.0
