"""Recognising a log whose lines are at wrong positions because an earlier version of sharpen wrote them there.

Until log version 2, a question that failed while others were under way gave its position back, and the answers to later
questions moved up into it. On replay such a log looks like that of another program. It can be told apart: from the position
in question to the end of the log, or to the end of its budget, there is nothing but answers to questions that are being
asked side by side right now, in their order, and the first of these questions has no answer. A log of a program that has
changed goes on with something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharpen.engine.events import BudgetEnded, JobEnded


def project(record: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
    """The fields of a line that a question has too; in `groups`, those of each group that the question names."""
    fields = {key: record[key] for key in question if key in record}
    groups, asked = fields.get("groups"), question.get("groups")
    if isinstance(groups, list) and isinstance(asked, list) and asked:
        fields["groups"] = [{key: group[key] for key in asked[0] if key in group} for group in groups]
    return fields


def is_shifted(records: Sequence[dict[str, Any]], questions: Sequence[dict[str, Any]]) -> bool:
    """Whether `records`, the log from a position on, are answers that have moved there. `questions` are those side by side
    from that position on, the first of which does not match."""
    ends = (BudgetEnded.type, JobEnded.type)
    rest = []
    for record in records:
        if record.get("type") in ends:
            break
        rest.append(record)
    later = iter(questions[1:])
    in_order = all(any(_answers(record, question) for question in later) for record in rest)
    return bool(rest) and in_order and not any(_answers(record, questions[0]) for record in rest)


def _answers(record: dict[str, Any], question: dict[str, Any]) -> bool:
    return project(record, question) == question
