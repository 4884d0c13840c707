"""Trace's optimizers as trainers hold to the contract, learn, and take back what did not help.

Needs the package trace-opt, which is no part of `make test`; `make test-extras` runs this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("opto")

import question_readers
from trainings import (
    Contract,
    Guarded,
    Parts,
    check_that_it_learnt,
    few,
    stories,
    told,
    training,
    undocumented,
    watched,
)

from sharpen.core.chat import Request
from sharpen.trainers import registry
from sharpen.trainers.adapters.trace_trainers import TraceOpro, TraceOptoPrime, TraceTextGrad
from sharpen.trainers.base import Trainer

SMALL: dict[str, Any] = {"iterations": 4, "batch_size": 6}


class TestTraceOptoPrime(Contract):
    kind = TraceOptoPrime
    params: ClassVar[Mapping[str, Any]] = {**SMALL, "memory_size": 2}
    reader = staticmethod(question_readers.trace)


class TestTraceOpro(Contract):
    kind = TraceOpro
    params = SMALL
    reader = staticmethod(question_readers.trace)


class TestTraceTextGrad(Contract):
    kind = TraceTextGrad
    params = SMALL
    reader = staticmethod(question_readers.trace)


CONTRACTS = [TestTraceOptoPrime, TestTraceOpro, TestTraceTextGrad]
KINDS = [TraceOptoPrime, TraceOpro, TraceTextGrad]


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_the_codebook(tmp_path: Path, kind: type[Trainer]) -> None:
    check_that_it_learnt(training(kind, question_readers.trace, iterations=8, batch_size=8).train(tmp_path), 0.4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_does_not_help_the_batch_is_taken_back(tmp_path: Path, kind: type[Trainer]) -> None:
    def useless(request: Request) -> str:
        said = request.messages[-1].content
        if "<VARIABLE>" in said:
            return "<IMPROVED_VARIABLE>Answer by default.</IMPROVED_VARIABLE>"
        return '{"suggestion": {"SKILL_md0": "Answer by default."}}'

    ran = training(kind, useless, **SMALL).train(tmp_path)
    assert {event["action"] for event in told(ran, "step_done")} <= {"reject", "skip_no_failures", "skip_no_rewrite"}
    start = told(ran, "job_started")[0]["candidate"]
    assert {event["candidate"] for event in told(ran, "tested")} == {start}
    candidates = {group["candidate"] for event in told(ran, "measured") for group in event["groups"]}
    assert len(candidates) == 2, "a text that holds the letters def is a text, and was tried"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", ["", "TERMINATE", "{", '{"suggestion": 3}'])
def test_answers_of_no_use_change_nothing(tmp_path: Path, kind: type[Trainer], answer: str) -> None:
    ran = training(kind, lambda request: answer, **SMALL).train(tmp_path)
    assert ran.status == "done"
    assert {event["action"] for event in told(ran, "step_done")} <= {"skip_no_rewrite", "skip_no_failures"}


@pytest.mark.parametrize("kind", KINDS)
def test_questions_show_train_items_alone_and_no_protected_region(tmp_path: Path, kind: type[Trainer]) -> None:
    asked, reader = watched(question_readers.trace)
    ran = training(kind, reader, Guarded, **SMALL).train(tmp_path)
    splits = few().splits()
    assert asked and any(item.text in asked[0] for item in splits.train)
    assert not [item for item in (*splits.val, *splits.test) for said in asked if item.text in said]
    assert not [said for said in asked if "Never say why." in said]
    revised = told(ran, "revised")
    assert revised and all(Guarded.region in event["texts"]["SKILL.md"] for event in revised)


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_may_be_changed(tmp_path: Path, kind: type[Trainer]) -> None:
    ran = training(kind, question_readers.trace, Parts, **SMALL).train(tmp_path)
    assert {"SKILL.md", "notes.md"} in [set(event["texts"]) for event in told(ran, "revised")]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_neither_the_process_nor_the_order_of_its_sets_has_a_say(tmp_path: Path, contract: type[Contract]) -> None:
    one, other = stories(contract, tmp_path)
    assert one == other


@pytest.mark.parametrize("contract", CONTRACTS)
def test_it_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str], contract: type[Contract]) -> None:
    contract().train(tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("contract", CONTRACTS)
def test_it_is_found_by_name_and_every_setting_is_on_the_page(contract: type[Contract]) -> None:
    assert registry.get(contract.kind.name) is contract.kind
    assert not undocumented(contract.kind)
