"""Every search on tasks whose truth is known: it finds something better, says so honestly, and reports what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from searching import Ran, carry_out, example_models, rule_models

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.item import Item
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.simulator import RuleTask

POOLS: dict[str, dict[str, Any]] = {
    "gepa-base": {"iterations": 8},
    "gepa-ucb": {"iterations": 8},
    "gepa-beam": {"iterations": 4},
    "pareto-search": {"iterations": 8},
    "priority-search": {"iterations": 4},
    "polca": {"iterations": 4, "epsilon": 0.01},
    "basic-search": {"iterations": 4},
    "beam-search": {"max_depth": 3, "num_proposals": 2},
    "ucb-search": {"iterations": 8},
    "minibatch": {"epochs": 2},
}
RULES = {"batch_size": 10, "proposers": []}


def rules(items: int = 40) -> RuleTask:
    return RuleTask(items=items, coins=0.1, base=0.4)


@pytest.mark.parametrize("name", [*POOLS, "opro"])
def test_what_is_vouched_for_is_truly_better_and_its_honest_score_is_near_the_truth(tmp_path: Path, name: str) -> None:
    task = rules()
    settings = {**RULES, **POOLS[name]} if name in POOLS else {"iterations": 4, "batch_size": 10, "num_proposals": 2}
    ran = carry_out(name, task, rule_models(), tmp_path, **settings)
    truth = task.true_score(ran.saved("best"))
    assert truth >= task.true_score(task.seed()) + 0.15
    (confirmed,) = ran.told("best_confirmed")
    assert confirmed["how"] == "val items held back" and abs(confirmed["value"] - truth) < 0.15


@pytest.mark.parametrize("name", POOLS)
def test_the_best_found_is_the_best_reported(tmp_path: Path, name: str) -> None:
    ran = carry_out(name, rules(), rule_models(), tmp_path, **{**RULES, **POOLS[name]})
    (measured,) = ran.told("finalists_measured")
    scores = dict(measured["finalists"])
    best = ran.trained.best.digest
    assert ran.trained.initial.digest in scores
    assert scores[best] == max(scores.values()) == ran.trained.raw
    assert measured["best"] == best == ran.saved("best").digest == ran.told("best_confirmed")[0]["candidate"]
    assert best in {event["candidate"] for event in ran.told("checkpointed") if event["path"] != "checkpoints/best"}


@pytest.mark.parametrize("name", ["gepa-base", "priority-search", "basic-search", "few-shot"])
def test_without_an_optimizer_worked_examples_are_found(tmp_path: Path, name: str) -> None:
    settings = {"iterations": 5} if name != "few-shot" else {"num_candidate_programs": 6, "max_labeled_demos": 8}
    ran = carry_out(name, Codebook(Deal(limit=60)), example_models(), tmp_path, **settings)
    tested = {event["which"]: event["score"][0] for event in ran.told("tested")}
    assert tested["initial"] == 0.0 and tested["best"] >= 0.15


def test_the_gepa_searches_differ_in_whom_they_build_on(tmp_path: Path) -> None:
    found = {}
    for name in ("gepa-base", "gepa-ucb", "gepa-beam"):
        ran = carry_out(
            name, rules(), rule_models(), tmp_path / name, **{**RULES, "iterations": 8, "acceptance": "always"}
        )
        found[name] = [[row[0] for row in event["parents"]] for event in ran.told("explored")]
    assert all(len(parents) == 1 for name in ("gepa-base", "gepa-ucb") for parents in found[name])
    assert max(map(len, found["gepa-beam"])) == 3
    assert found["gepa-base"] != found["gepa-ucb"]


@pytest.mark.parametrize("acceptance", ["always", "minibatch", "strict", "sequential"])
def test_who_is_let_in_can_be_switched(tmp_path: Path, acceptance: str) -> None:
    settings = {**RULES, "iterations": 5, "acceptance": acceptance}
    ran = carry_out("gepa-base", rules(), rule_models(), tmp_path, **settings)
    rows = [row for event in ran.told("admitted") for row in event["children"]]
    assert {event["how"] for event in ran.told("admitted")} == {acceptance}
    assert any(admitted for *_, admitted in rows)
    if acceptance == "always":
        assert all(admitted for *_, admitted in rows)
    if acceptance == "minibatch":
        assert all(admitted == (after > before) for _, before, after, admitted in rows)
    if acceptance in ("strict", "sequential"):
        verdicts = {event["new"]: event["accepted"] for event in ran.told("decided")}
        assert verdicts == {candidate: admitted for candidate, *_, admitted in rows}


def test_steps_end_in_the_way_that_every_report_reads(tmp_path: Path) -> None:
    ran = carry_out("gepa-ucb", rules(), rule_models(), tmp_path, **{**RULES, "iterations": 6})
    steps = ran.told("step_done")
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert ran.told("planned")[0]["steps"] == 6
    saved = {event["candidate"] for event in ran.told("checkpointed")}
    assert {step["best"] for step in steps} <= saved
    for step in steps:
        if step["action"] == "accept":
            decided = [event for event in ran.told("decided") if event["step"] == step["step"]]
            assert [event["accepted"] for event in decided] == [True]


class TwoParts(RuleTask):
    """The same rules, in two documents."""

    def seed(self) -> Candidate:
        return Candidate({"SKILL.md": "# Rules\n", "references/more.md": "# More rules\n"})

    def probability(self, candidate: Candidate, item: Item) -> float:
        return super().probability(Candidate("\n".join(candidate.parts.values())), item)


def test_parts_of_two_members_are_merged_and_stay_only_if_better_than_both(tmp_path: Path) -> None:
    settings = {**RULES, "iterations": 6, "merge_every": 1, "acceptance": "always"}
    ran = carry_out("gepa-beam", TwoParts(items=40, coins=0.0, base=0.3), rule_models(), tmp_path, **settings)
    crossed = [event for event in ran.told("crossed") if event["candidate"] is not None]
    assert crossed and {event["stays"] for event in crossed} == {True, False}
    assert all(event["stays"] == (event["score"] > event["better_parent"]) for event in crossed)
    members = {row[1]: row[2] for event in ran.told("pool_changed") for row in event["members"]}
    assert all(members[event["candidate"]] == event["parents"] for event in crossed if event["stays"])


def test_a_skill_of_one_part_is_not_merged_and_that_is_said(tmp_path: Path) -> None:
    ran: Ran = carry_out("gepa-base", rules(), rule_models(), tmp_path, **{**RULES, "iterations": 2, "merge_every": 1})
    assert not ran.told("crossed")
    assert [remark for remark in ran.told("planned")[0]["remarks"] if "nothing to merge" in remark]


def test_no_children_too_near_to_a_member_get_into_polca(tmp_path: Path) -> None:
    ran = carry_out("polca", rules(), rule_models(), tmp_path, **{**RULES, "iterations": 3, "epsilon": 1.3})
    offered = [child for event in ran.told("offered") for child in event["children"]]
    assert {child["refusal"] for child in offered} == {"not_novel"}
    assert ran.trained.best == ran.trained.initial


@pytest.mark.parametrize("name", ["gepa-base", "priority-search"])
def test_who_copies_val_items_into_the_skill_is_refused_and_never_sees_them(tmp_path: Path, name: str) -> None:
    task = Codebook(Deal(limit=24))
    val = task.splits().val

    def copying(request: Request) -> str:
        assert not [item for item in val if item.text in last_said(request)], "val items reach no optimizer"
        content = f"{val[0].text} -> {val[0].reference}"
        return json.dumps({"edits": [{"op": "append", "content": content}]})

    models = {"target": ScriptedModel("scripted/rules"), "optimizer": ScriptedModel("own/copying", copying)}
    ran = carry_out(name, task, models, tmp_path, iterations=2, proposers=[])
    assert {child["refusal"] for event in ran.told("offered") for child in event["children"]} == {"leak"}
    assert {event["action"] for event in ran.told("step_done")} == {"skip_leak"}
    assert ran.trained.best == ran.trained.initial
