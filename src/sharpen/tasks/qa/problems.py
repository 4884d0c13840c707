"""Families of questions that stand by themselves: sums, multiple choice, yes or no, the hard tasks of BIG-Bench.

Each shape is a published format: the one of the data set's own site, and the export that is common on model hubs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sharpen.tasks.qa.extracting import boxed
from sharpen.tasks.qa.family import Draft, Family, Row, Shape, labelled, letter, rows_of

_LETTER = "End with a line\nAnswer: the letter of the option"
_REASON = "Work the answer out step by step. End with a line\nAnswer: "
_ONE_LETTER = ("The final answer is one letter; an answer that names two options counts as wrong.",)


def _gsm8k(row: Row) -> Iterator[Draft]:
    _, mark, gold = str(row["answer"]).rpartition("####")
    yield Draft(row["question"], labelled(gold) if mark else None)


def _math(row: Row) -> Iterator[Draft]:
    gold = labelled(row.get("answer")) or boxed(str(row.get("solution") or ""))
    yield Draft(row["problem"], gold, row.get("unique_id") or "", type=row.get("type") or row.get("subject") or "")


def _aqua(row: Row) -> Iterator[Draft]:
    options = tuple(re.sub(r"^\s*[A-E]\s*\)\s*", "", option) for option in row["options"])
    yield Draft(row["question"], labelled(row.get("correct")), options=options)


def _choices_site(row: Row) -> Iterator[Draft]:
    yield _choices(row, row["question"]["stem"], rows_of(row["question"]["choices"]))


def _choices_hub(row: Row) -> Iterator[Draft]:
    yield _choices(row, row["question"], rows_of(row["choices"]))


def _choices(row: Row, question: str, choices: list[Row]) -> Draft:
    options = tuple(str(choice["text"]) for choice in choices)
    labels = tuple(str(choice["label"]) for choice in choices)
    return Draft(question, labelled(row.get("answerKey")), row["id"], options=options, labels=labels)


def _mmlu_site(row: Row) -> Iterator[Draft]:
    yield Draft(row["question"], labelled(row["answer"]), options=tuple(row[name] for name in "ABCD"))


def _mmlu_hub(row: Row) -> Iterator[Draft]:
    yield Draft(
        row["question"], letter(row["answer"]), options=tuple(map(str, row["choices"])), type=row.get("subject") or ""
    )


def _mmlu_pro(row: Row) -> Iterator[Draft]:
    options = tuple(str(option) for option in row["options"] if option != "N/A")
    yield Draft(
        row["question"], labelled(row.get("answer")), str(row["question_id"]), options=options, type=row["category"]
    )


def _strategy_qa(row: Row) -> Iterator[Draft]:
    answer = row.get("answer")
    said = "yes" if str(answer).lower() in ("true", "yes") else "no"
    yield Draft(row["question"], None if answer in (None, "") else said, row["qid"])


def _big_bench(row: Row) -> Iterator[Draft]:
    yield Draft(row["input"], labelled(row.get("target")), type=str(row.get("task") or "").replace(" ", "_"))


_CHOICES = (
    Shape(("id", "question.stem", "question.choices"), _choices_site),
    Shape(("id", "question", "choices.text", "choices.label"), _choices_hub),
)
_INPUT_AND_TARGET = (Shape(("input", "target"), _big_bench),)

FAMILIES = (
    Family(
        "gsm8k",
        "GSM8K: sums of the first school years, told as stories.",
        (Shape(("question", "answer"), _gsm8k),),
        "number",
        f"{_REASON}the number alone",
    ),
    Family(
        "math",
        "MATH: problems of school competitions, answered in a box.",
        (Shape(("problem", "solution"), _math), Shape(("problem", "answer"), _math)),
        "boxed",
        "Work the answer out step by step. End with the final answer in \\boxed{}.",
        max_tokens=1024,
    ),
    Family(
        "aqua_rat",
        "AQuA-RAT: algebra told as stories, five options.",
        (Shape(("question", "options", "correct"), _aqua), Shape(("question", "options", "rationale"), _aqua)),
        "choice",
        f"{_REASON}the letter of the option",
        notes=_ONE_LETTER,
    ),
    Family(
        "arc",
        "ARC: science questions of school tests, easy and challenge.",
        _CHOICES,
        "choice",
        f"Choose the option that answers the question. {_LETTER}",
        by_file=True,
        notes=_ONE_LETTER,
    ),
    Family(
        "qasc",
        "QASC: science questions that join two facts, eight options.",
        _CHOICES,
        "choice",
        f"Choose the option that answers the question. {_LETTER}",
        notes=_ONE_LETTER,
    ),
    Family(
        "mmlu",
        "MMLU: four options, 57 subjects.",
        (
            Shape(("question", "A", "B", "C", "D", "answer"), _mmlu_site),
            Shape(("question", "choices", "answer"), _mmlu_hub),
        ),
        "choice",
        f"Choose the option that answers the question. {_LETTER}",
        columns=("question", "A", "B", "C", "D", "answer"),
        dev_is_train=True,
        by_file=True,
        notes=_ONE_LETTER,
    ),
    Family(
        "mmlu_pro",
        "MMLU-Pro: up to ten options, harder than MMLU.",
        (Shape(("question_id", "question", "options", "answer", "category"), _mmlu_pro),),
        "choice",
        f"{_REASON}the letter of the option",
        notes=_ONE_LETTER,
    ),
    Family(
        "strategy_qa",
        "StrategyQA: yes or no, with steps that the question does not name.",
        (Shape(("qid", "question"), _strategy_qa),),
        "yes_no",
        f"{_REASON}yes or no",
    ),
    Family(
        "bbh",
        "BIG-Bench Hard: 27 tasks that are hard for language models.",
        _INPUT_AND_TARGET,
        "fuzzy",
        f"{_REASON}the answer alone, in the form the question asks for",
        max_tokens=1024,
        by_file=True,
    ),
    Family(
        "bbeh",
        "BIG-Bench Extra Hard: 23 tasks that are harder still.",
        _INPUT_AND_TARGET,
        "fuzzy",
        f"{_REASON}the answer alone, in the form the question asks for",
        max_tokens=2048,
        by_file=True,
    ),
)
