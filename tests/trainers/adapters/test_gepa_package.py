"""GEPA by its own package holds to the contract of trainers, learns what can be learnt, and refuses what we refuse."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
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

from sharpen.core.errors import UsageError
from sharpen.trainers.adapters.gepa_package import GEPA, GEPAParams

gepa = partial(training, GEPA)


class TestGEPA(Contract):
    kind = GEPA
    params: ClassVar[Mapping[str, Any]] = {"iterations": 5, "reflection_minibatch_size": 4}
    reader = staticmethod(question_readers.gepa)


class OfParts(Contract):
    kind = GEPA
    params: ClassVar[Mapping[str, Any]] = {"iterations": 8, "reflection_minibatch_size": 6, "use_merge": True}
    reader = staticmethod(question_readers.gepa)

    def task(self) -> Parts:
        return Parts()


def test_it_learns_the_codebook(tmp_path: Path) -> None:
    check_that_it_learnt(gepa(question_readers.gepa, iterations=25, reflection_minibatch_size=6).train(tmp_path), 0.4)


def test_the_questions_are_gepas_own_and_show_train_items_alone(tmp_path: Path) -> None:
    asked, reader = watched(question_readers.gepa)
    gepa(reader, iterations=4).train(tmp_path)
    splits = few().splits()
    assert asked and all("I provided an assistant with the following instructions" in said for said in asked)
    assert any(item.text in asked[0] for item in splits.train)
    assert not [item for item in (*splits.val, *splits.test) for said in asked if item.text in said]


@pytest.mark.parametrize(("answer", "refusal"), [("", "no_rewrite"), ("long", "no_rewrite"), ("leak", "leak")])
def test_what_may_not_be_a_candidate_costs_no_rollout(tmp_path: Path, answer: str, refusal: str) -> None:
    val = few().splits().val[0]
    texts = {"": "", "long": "```\n" + "long " * 9000 + "\n```", "leak": f"```\n- {val.text}: {val.reference}\n```"}
    ran = gepa(lambda request: texts[answer], iterations=3, acceptance_criterion="improvement_or_equal").train(tmp_path)
    assert [event["action"] for event in told(ran, "step_done")] == [f"skip_{refusal}"] * 3
    start = told(ran, "job_started")[0]["candidate"]
    assert {group["candidate"] for event in told(ran, "measured") for group in event["groups"]} == {start}


def test_protected_regions_never_reach_the_optimizer_and_survive_it(tmp_path: Path) -> None:
    asked, reader = watched(question_readers.gepa)
    ran = gepa(reader, Guarded, iterations=4, reflection_minibatch_size=6).train(tmp_path)
    assert not [said for said in asked if "Never say why." in said]
    revised = told(ran, "revised")
    assert revised and all(Guarded.region in event["texts"]["SKILL.md"] for event in revised)


def test_parts_are_components_that_are_rewritten_in_turn(tmp_path: Path) -> None:
    texts = [event["texts"] for event in told(OfParts().train(tmp_path), "revised")]
    assert any("SKILL.md" in changed for changed in texts) and any("notes.md" in changed for changed in texts)


def test_neither_the_process_nor_the_order_of_its_sets_has_a_say(tmp_path: Path) -> None:
    one, other = stories(OfParts, tmp_path)
    assert one == other


def test_it_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gepa(question_readers.gepa, iterations=4).train(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_every_setting_is_on_the_page() -> None:
    assert not undocumented(GEPA)


def test_an_optimizer_model_is_asked_for_before_anything_is_paid_for() -> None:
    task = few()
    with pytest.raises(UsageError, match="trainer gepa needs an optimizer model"):
        GEPA(GEPAParams()).check(task.splits(), task.seed(), {"target"})
