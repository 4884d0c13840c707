"""Every published format is read: from samples of our own sentences, and the same again as Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import SPLITS
from sharpen.tasks import qa
from sharpen.tasks.textual import TextTask
from sharpen.testing.tasks import attempt

DATA = Path(__file__).parent / "data"

# family, folder or file, items of train, val and test
SAMPLES = [
    ("hotpot_qa", "hotpot_qa/site", (3, 2, 3)),
    ("hotpot_qa", "hotpot_qa/hub", (3, 2, 3)),
    ("musique", "musique", (3, 2, 3)),
    ("drop", "drop/site", (5, 4, 3)),
    ("drop", "drop/hub", (5, 4, 3)),
    ("quality", "quality/site", (3, 3, 2)),
    ("quality", "quality/hub", (3, 3, 2)),
    ("qasper", "qasper/site", (6, 3, 3)),
    ("qasper", "qasper/hub", (6, 3, 3)),
    ("gsm8k", "gsm8k", (3, 3, 2)),
    ("math", "math/site", (3, 3, 2)),
    ("math", "math/hub", (3, 2, 3)),
    ("aqua_rat", "aqua_rat", (4, 2, 2)),
    ("arc", "arc/site", (5, 3, 3)),
    ("arc_challenge", "arc/site", (4, 2, 2)),
    ("arc_easy", "arc/site", (1, 1, 1)),
    ("arc", "arc/hub", (4, 2, 2)),
    ("qasc", "qasc/site", (3, 2, 3)),
    ("qasc", "qasc/hub", (3, 2, 3)),
    ("mmlu", "mmlu/site", (4, 2, 2)),
    ("mmlu", "mmlu/hub", (4, 2, 2)),
    ("mmlu_pro", "mmlu_pro", (2, 2, 4)),
    ("strategy_qa", "strategy_qa/strategyqa_train.json", (3, 2, 3)),
    ("strategy_qa", "strategy_qa_hub", (3, 2, 3)),
    ("bbh", "bbh", (3, 3, 4)),
    ("bbh", "bbh_hub", (3, 2, 3)),
    ("bbeh", "bbeh", (3, 3, 4)),
    ("bbeh", "bbeh_hub", (3, 2, 3)),
]
TEXTS = [(family, where) for family, where, _ in SAMPLES]


def made(family: str, where: str | Path, **settings: object) -> TextTask:
    task = qa.make(family, data=str(DATA / where), **settings)  # type: ignore[arg-type]
    assert isinstance(task, TextTask)
    return task


def items(task: TextTask) -> list[Item]:
    return [item for name in SPLITS for item in task.splits()[name]]


def by_id(task: TextTask) -> dict[str, Item]:
    return {item.id: item for item in items(task)}


@pytest.mark.parametrize(("family", "where", "sizes"), SAMPLES)
def test_a_published_format_is_read_and_split(family: str, where: str, sizes: tuple[int, int, int]) -> None:
    assert tuple(len(made(family, where).splits()[name]) for name in SPLITS) == sizes


@pytest.mark.parametrize(("family", "where"), TEXTS)
def test_the_published_answer_scores_one_and_the_answer_to_another_question_does_not(family: str, where: str) -> None:
    task = made(family, where)
    for item in items(task):
        gold = task.gold(item)
        assert gold is not None
        for text in (gold, f"Let me think about it.\nAnswer: {gold}", f"So the final answer is {gold}."):
            outcome = attempt(task, item, text)
            assert (outcome.hard, outcome.soft) == (1.0, 1.0), (item, text)
        wrong = {"choice": "Z", "yes_no": "maybe", "number": "-1"}.get(task.family.scorer, "nothing of the kind")  # type: ignore[attr-defined]
        assert attempt(task, item, wrong).hard == 0.0


@pytest.mark.parametrize(
    ("family", "where"), [("hotpot_qa", "hotpot_qa"), ("drop", "drop"), ("qasc", "qasc"), ("qasper", "qasper")]
)
def test_the_export_of_a_hub_asks_the_same_as_the_original(family: str, where: str) -> None:
    site, hub = by_id(made(family, f"{where}/site")), by_id(made(family, f"{where}/hub"))
    assert {name: item.inputs for name, item in site.items()} == {name: item.inputs for name, item in hub.items()}


@pytest.mark.parametrize("where", [where for _, where, _ in SAMPLES if "hub" in where or where == "gsm8k"])
def test_parquet_holds_the_same(where: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for file in (DATA / where).rglob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        target = tmp_path / file.relative_to(DATA / where).with_name(f"{file.stem}-00000-of-00001.parquet")
        target.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(arrow.Table.from_pylist(rows), target)
    family = next(family for family, path in TEXTS if path == where)
    assert made(family, tmp_path).splits() == made(family, where).splits()


def test_answers_are_read_as_published() -> None:
    drop = by_id(made("drop", "drop/site"))
    assert drop["d0-1"].reference == ["7", "7 points"]
    assert drop["d0-2"].reference == [["Lowe", "Ash"]]
    assert drop["d0-3"].reference == ["2 May 1961"]
    assert by_id(made("drop", "drop/hub"))["d0-2"].reference == [["Lowe", "Ash"]]
    assert by_id(made("musique", "musique"))["2hop__100_200"].reference == ["Ilse Brandt", "Brandt"]
    assert by_id(made("qasper", "qasper/hub"))["1700.00000q2"].reference == ["Unanswerable"]
    assert {item.reference for item in items(made("gsm8k", "gsm8k"))} >= {"36", "4,500"}
    assert by_id(made("arc", "arc/site"))["S_4"].reference == "1"


def test_a_question_is_shown_with_its_passages_and_options() -> None:
    shown = by_id(made("quality", "quality/site"))["500_X_1"].text
    assert shown.startswith("Nora kept a lamp") and "Question: Why did Nora" in shown and shown.endswith("a storm")
    assert "(A) For the ferryman\n(B) For her cat" in shown
    assert made("gsm8k", "gsm8k").splits().test[0].text.endswith("get?")


def test_passages_that_share_no_word_with_the_question_are_left_out_first() -> None:
    item = by_id(made("musique", "musique", context_chars=140))["2hop__100_200"]
    assert "lies on the Wend" in item.text and "ninety pupils" not in item.text
    whole = by_id(made("musique", "musique"))["2hop__100_200"]
    assert "ninety pupils" in whole.text


def test_one_long_passage_is_cut_rather_than_dropped() -> None:
    item = by_id(made("drop", "drop/site", context_chars=40))["d0-1"]
    assert item.text.startswith("The Otters met the Herons") and " ...\n\nQuestion:" in item.text


def test_a_test_without_labels_is_not_used_and_said_so() -> None:
    said = made("quality", "quality/site").brief.description
    assert "The published test has no labels" in said and "The published validation is the test." in said
    with pytest.raises(UsageError, match="none of its 2 questions has an answer"):
        qa.make("quality", data=str(DATA / "quality/site/QuALITY.v1.0.1.htmlstripped.test"))


def test_published_splits_are_kept_and_the_rest_is_shuffled_by_seed() -> None:
    tests = [{i.id for i in made("gsm8k", "gsm8k", split_seed=seed).splits().test} for seed in (0, 1, 2)]
    assert tests[0] == tests[1] == tests[2]
    trains = {tuple(i.id for i in made("gsm8k", "gsm8k", split_seed=seed).splits().train) for seed in range(4)}
    assert len(trains) > 1


def test_a_question_that_stands_in_train_and_test_stays_in_test(tmp_path: Path) -> None:
    lines = (DATA / "gsm8k/train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "train.jsonl").write_text("".join(lines))
    (tmp_path / "test.jsonl").write_text(lines[0])
    task = made("gsm8k", tmp_path)
    assert len(items(task)) == 6 and len(task.splits().test) == 1
    assert "1 questions that stand twice are used once" in task.brief.description


def test_what_else_lies_beside_published_files_is_left_out(tmp_path: Path) -> None:
    for name in ("train.jsonl", "test.jsonl"):
        (tmp_path / name).write_text((DATA / "gsm8k" / name).read_text())
    (tmp_path / "example_model_solutions.jsonl").write_text('{"solution": "x"}\n')
    (tmp_path / "dataset_infos.json").write_text('{"main": {"description": "y"}}\n')
    (tmp_path / "test.tok.json").write_text('{"question": "to ken s ?", "answer": "#### 1"}\n')
    assert made("gsm8k", tmp_path).splits() == made("gsm8k", "gsm8k").splits()


def test_a_subset_is_chosen_by_task_subject_or_file() -> None:
    assert {item.type for item in items(made("bbh", "bbh", subset="word_sorting"))} == {"word_sorting"}
    assert {item.type for item in items(made("bbeh", "bbeh", subset="longer word"))} == {"bbeh_longer_word"}
    assert {item.type for item in items(made("mmlu", "mmlu/site"))} == {"garden_lore", "kitchen_science"}
    with pytest.raises(UsageError, match=r"no subset 'word_sort1ng' \(did you mean 'word_sorting'"):
        made("bbh", "bbh", subset="word_sort1ng")


def test_unknown_fields_are_named_with_those_that_were_looked_for(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"query": "1+1?", "response": "2"}\n')
    with pytest.raises(UsageError) as told:
        qa.make("hotpot_qa", data=str(tmp_path))
    assert "train.jsonl, line 1" in str(told.value) or "train.jsonl, row 1" in str(told.value)
    assert "(_id, question, context) or (id, question, context.title, context.sentences)" in str(told.value)
    assert "found query, response" in str(told.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            '{"id": "1", "question": "Q?", "choices": {"text": ["a"], "label": ["A", "B"]}, "answerKey": "A"}',
            "ValueError",
        ),
        (
            '{"id": "1", "question": "Q?", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "C"}',
            "none of its options",
        ),
        ("[1, 2]", "expected an object"),
        ("nonsense", "not JSON"),
        ("", "the file is empty"),
    ],
)
def test_broken_files_are_user_errors(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "arc.jsonl").write_text(content)
    with pytest.raises(UsageError, match=said):
        qa.make("arc", data=str(tmp_path / "arc.jsonl"))


def test_what_is_missing_is_said() -> None:
    with pytest.raises(UsageError, match="needs its files: --data PATH"):
        qa.make("gsm8k")
    with pytest.raises(UsageError, match="did you mean 'hotpot_qa'"):
        qa.make("hotpotqa", data=".")
    with pytest.raises(UsageError, match="no such file or folder"):
        qa.make("gsm8k", data="/nowhere")
