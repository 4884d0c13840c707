"""Families whose questions are about given passages: HotpotQA, MuSiQue, DROP, QuALITY and Qasper.

Each shape is a published format: the one of the data set's own site, and the export that is common on model hubs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from sharpen.core.digest import Json
from sharpen.tasks.qa.family import Draft, Family, Row, Shape, labelled, letter, paragraphs, rows_of, several
from sharpen.tasks.qa.reading import KEY

_FROM_PASSAGES = (
    "Answer the question from the passages. Think it through in a sentence or two, then end with a line\n"
    "Answer: the shortest text that answers the question, with no other words"
)
_SHORT = ("Only the final answer is scored: a name, a date, a number or yes or no, without a sentence around it.",)


def _hotpot_site(row: Row) -> Iterator[Draft]:
    passages = tuple(f"{title}: {''.join(sentences).strip()}" for title, sentences in row["context"])
    yield Draft(row["question"], labelled(row.get("answer")), row["_id"], passages, type=row.get("type", ""))


def _hotpot_hub(row: Row) -> Iterator[Draft]:
    found = rows_of(row["context"])
    passages = tuple(f"{one['title']}: {''.join(one['sentences']).strip()}" for one in found)
    yield Draft(row["question"], labelled(row.get("answer")), row["id"], passages, type=row.get("type") or "")


def _musique(row: Row) -> Iterator[Draft]:
    if row.get("answerable") is False:
        return
    passages = tuple(f"{one['title']}: {one['paragraph_text']}" for one in rows_of(row["paragraphs"]))
    answers = several([row.get("answer"), *(row.get("answer_aliases") or ())])
    hops = str(row["id"]).partition("__")[0]
    yield Draft(row["question"], answers, row["id"], passages, type=hops if hops != row["id"] else "")


def _drop_site(row: Row) -> Iterator[Draft]:
    for pair in row["qa_pairs"]:
        given = [pair.get("answer"), *(pair.get("validated_answers") or ())]
        answers = several([_drop_answer(answer) for answer in given if answer])
        yield Draft(pair["question"], answers, pair.get("query_id") or "", (row["passage"],))


def _drop_answer(answer: Row) -> Json:
    """A number, a date or spans; several spans make one answer of several parts."""
    if labelled(answer.get("number")):
        return str(answer["number"])
    spans = [str(span) for span in answer.get("spans") or ()]
    if spans:
        return spans if len(spans) > 1 else spans[0]
    date = answer.get("date") or {}
    return " ".join(str(date[part]) for part in ("day", "month", "year") if labelled(date.get(part)))


def _drop_hub(row: Row) -> Iterator[Draft]:
    """The export writes the parts of one answer and the answers of several people as one list. A value that is repeated
    tells the second: then each will do by itself."""
    spans = [str(span) for span in row["answers_spans"]["spans"]]
    distinct = several(spans)
    parts = distinct is not None and len(distinct) == len(spans) > 1
    yield Draft(row["question"], [distinct] if parts else distinct, row["query_id"], (row["passage"],))


def _quality_site(row: Row) -> Iterator[Draft]:
    passages = paragraphs(row["article"])
    for one in row["questions"]:
        gold = one.get("gold_label")
        yield Draft(
            one["question"],
            letter(gold - 1) if isinstance(gold, int) else None,
            one.get("question_unique_id") or "",
            passages,
            tuple(one["options"]),
            type="hard" if one.get("difficult") else "easy",
        )


def _quality_hub(row: Row) -> Iterator[Draft]:
    options = row["options"] if isinstance(row["options"], list) else ast.literal_eval(row["options"])
    kind = "hard" if row.get("hard") in (True, "True") else "easy"
    yield Draft(
        row["question"], letter(row["answer"]), "", paragraphs(row["article"]), tuple(map(str, options)), type=kind
    )


def _qasper_site(row: Row) -> Iterator[Draft]:
    yield from _qasper(row, row.get(KEY) or row.get("id") or "")


def _qasper_hub(row: Row) -> Iterator[Draft]:
    yield from _qasper(row, row["id"])


def _qasper(row: Row, paper: str) -> Iterator[Draft]:
    passages = [f"{row['title']}\n{row['abstract']}"]
    for section in rows_of(row["full_text"]):
        passages += [f"{section['section_name'] or ''}: {text}" for text in section["paragraphs"] if text.strip()]
    for number, one in enumerate(rows_of(row["qas"])):
        given = one["answers"]
        given = given["answer"] if isinstance(given, Mapping) else [answer["answer"] for answer in given]
        answers = several([_qasper_answer(answer) for answer in given])
        yield Draft(one["question"], answers, one.get("question_id") or f"{paper}-{number}", tuple(passages))


def _qasper_answer(answer: Row) -> str:
    if answer.get("unanswerable"):
        return "Unanswerable"
    if answer.get("yes_no") is not None:
        return "Yes" if answer["yes_no"] else "No"
    return ", ".join(answer.get("extractive_spans") or ()) or str(answer.get("free_form_answer") or "")


FAMILIES = (
    Family(
        "hotpot_qa",
        "HotpotQA: questions whose answer takes two of the given passages.",
        (
            Shape(("_id", "question", "context"), _hotpot_site),
            Shape(("id", "question", "context.title", "context.sentences"), _hotpot_hub),
        ),
        "text",
        _FROM_PASSAGES,
        notes=_SHORT,
    ),
    Family(
        "musique",
        "MuSiQue: questions of two to four hops over twenty passages.",
        (Shape(("id", "paragraphs", "question"), _musique),),
        "text",
        _FROM_PASSAGES,
        notes=_SHORT,
    ),
    Family(
        "drop",
        "DROP: counting, adding and comparing over one passage.",
        (
            Shape(("passage", "qa_pairs"), _drop_site),
            Shape(("passage", "question", "query_id", "answers_spans.spans"), _drop_hub),
        ),
        "spans",
        _FROM_PASSAGES,
        notes=(*_SHORT, "Where several things are asked for, separate them by commas."),
    ),
    Family(
        "quality",
        "QuALITY: multiple choice about a long article.",
        (
            Shape(("article", "questions"), _quality_site),
            Shape(("article", "question", "options", "answer"), _quality_hub),
        ),
        "choice",
        "Choose the option that the article supports. End with a line\nAnswer: the letter of the option",
    ),
    Family(
        "qasper",
        "Qasper: questions about a research paper.",
        (
            Shape(("id", "title", "abstract", "full_text.section_name", "qas"), _qasper_hub),
            Shape(("title", "abstract", "full_text", "qas"), _qasper_site),
        ),
        "text",
        "Answer the question from the paper. End with a line\n"
        "Answer: a few words taken from the paper, Yes, No, or Unanswerable",
        notes=("Where the paper does not say it, the answer is Unanswerable.",),
    ),
)
