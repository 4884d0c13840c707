"""DSPy's optimizers as trainers hold to the contract, learn, and stay within what a job grants them.

Needs the packages dspy and optuna, which are no part of `make test`; `make test-extras` runs this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("dspy")
pytest.importorskip("optuna")

import question_readers
from trainings import Contract, Parts, check_that_it_learnt, few, stories, told, training, undocumented

from sharpen.skill import examples
from sharpen.tasks.codebook import Codebook
from sharpen.trainers import registry
from sharpen.trainers.adapters.dspy_trainers import DspyBootstrap, DspyCopro, DspyMipro
from sharpen.trainers.base import Trainer


class TestDspyBootstrap(Contract):
    kind = DspyBootstrap
    params: ClassVar[Mapping[str, Any]] = {"num_candidate_programs": 2}
    reader = staticmethod(question_readers.dspy)


class TestDspyCopro(Contract):
    kind = DspyCopro
    params: ClassVar[Mapping[str, Any]] = {"breadth": 3, "depth": 2}
    reader = staticmethod(question_readers.dspy)


class TestDspyMipro(Contract):
    kind = DspyMipro
    params: ClassVar[Mapping[str, Any]] = {
        "num_candidates": 3,
        "num_trials": 4,
        "minibatch_size": 8,
        "minibatch_full_eval_steps": 2,
    }
    reader = staticmethod(question_readers.dspy)


CONTRACTS = [TestDspyBootstrap, TestDspyCopro, TestDspyMipro]


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (DspyBootstrap, {"num_candidate_programs": 12, "max_bootstrapped_demos": 8, "max_labeled_demos": 12}),
        (DspyCopro, {"breadth": 6, "depth": 3}),
        (DspyMipro, {"num_candidates": 6, "num_trials": 10, "minibatch_size": 12}),
    ],
)
def test_it_learns_the_codebook(tmp_path: Path, kind: type[Trainer], params: dict[str, Any]) -> None:
    check_that_it_learnt(training(kind, question_readers.dspy, **params).train(tmp_path), 0.2)


def test_demonstrations_are_worked_examples_of_train_items_at_the_end_of_the_text(tmp_path: Path) -> None:
    ran = TestDspyBootstrap().train(tmp_path)
    known = {(item.text, item.reference) for item in few().splits().train}
    texts = [event["texts"]["SKILL.md"] for event in told(ran, "revised")]
    shown = [examples.parse(text) for text in texts]
    assert shown and all(parsed.examples for parsed in shown)
    assert {(example.input, example.output) for parsed in shown for example in parsed.examples} <= known
    assert all(text.startswith(Codebook.skill) for text in texts)


def test_the_rollouts_of_an_evaluation_are_one_measurement(tmp_path: Path) -> None:
    ran = TestDspyCopro().train(tmp_path)
    sizes = [len(group["hard"]) for event in told(ran, "measured") for group in event["groups"]]
    assert set(sizes) == {24}


def test_answers_without_the_wanted_fields_end_the_search_and_not_the_job(tmp_path: Path) -> None:
    ran = training(DspyCopro, lambda request: "I'd rather not.").train(tmp_path)
    assert ran.status == "done"
    assert [event["action"] for event in told(ran, "step_done")] == ["skip_no_rewrite"]


def test_what_gives_val_items_away_is_not_measured(tmp_path: Path) -> None:
    val = few().splits().val[0]
    given = {"proposed_instruction": f"- {val.text}: {val.reference}", "proposed_prefix_for_output_field": "Word:"}
    fields = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in given.items())
    ran = training(DspyCopro, lambda request: fields, breadth=3, depth=2).train(tmp_path)
    assert {event["action"] for event in told(ran, "step_done")} == {"skip_leak"}
    start = told(ran, "job_started")[0]["candidate"]
    assert {group["candidate"] for event in told(ran, "measured") for group in event["groups"]} == {start}


def test_parts_are_predictors_and_a_text_that_is_not_changed_stays_as_it_is(tmp_path: Path) -> None:
    ran = training(DspyCopro, question_readers.dspy, Parts, breadth=3, depth=2).train(tmp_path)
    changed = [set(event["texts"]) for event in told(ran, "revised")]
    assert {"SKILL.md"} in changed


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
