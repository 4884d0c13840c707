"""Whole trainings of the ReflACT loop: what they reach, what their story says, and where a budget ends them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from stages import made, rules, with_job

from sharpen.bench import artifacts
from sharpen.bench.config import load
from sharpen.bench.runner import Session, build, prepare
from sharpen.core.chat import Request
from sharpen.core.errors import UsageError
from sharpen.engine.budget import Caps
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events
from sharpen.models.scripted import ScriptedModel
from sharpen.report import steps
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.testing.jobs import make_setup, running_job
from sharpen.testing.trainers import without_clock
from sharpen.trainers.base import Trained
from sharpen.trainers.finish import finish
from sharpen.trainers.reflact.loop import ReflACT
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.promote import reserve
from sharpen.trainers.reflact.training import Training


def settings(**params: Any) -> dict[str, Any]:
    return {
        "task": "codebook",
        "models": {"target": "scripted/rules", "optimizer": "scripted/rules"},
        "trainer": {"params": {"epochs": 4, "batch_size": 20, **params}},
    }


def trained(folder: Path, given_settings: dict[str, Any]) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    run, parts = prepare(load(None, given_settings), folder)
    session = Session(parts, run)
    status = asyncio.run(session.run())
    found = json.loads((session.job_folder / "results.json").read_text())
    return status, found, read_events(session.job_folder / "events.jsonl")


class TestWholeTrainings:
    def test_codebook_is_learnt_completely(self, tmp_path: Path) -> None:
        status, found, _ = trained(tmp_path, settings())
        assert status == "done"
        assert found["test"]["initial"]["mean"] == 0.0 and found["test"]["best"]["mean"] == 1.0
        gain = found["gain"]["best"]
        assert gain["mean"] == 1.0 and gain["low"] > 0.5
        confirmed = found["best"]["confirmed"]
        assert confirmed["value"] == 1.0 and confirmed["how"] == "val items held back"

    def test_accept_reject_and_merge_all_happen(self, tmp_path: Path) -> None:
        """Without trying on train items first, the optimizer's bad ideas reach the gate, and are turned down there."""
        _, found, events = trained(tmp_path, settings(screen_items=0, proposers=[], drafts=False))
        actions = Counter(step["action"] for step in found["steps"])
        assert actions["accept"] >= 3 and actions["reject"] >= 1
        merges = [event for event in events if event["type"] == "asked" and event["scope"][0] == "merge"]
        assert merges and all(event["error"] is None for event in merges)
        assert found["test"]["best"]["mean"] > 0.8

    def test_what_was_accepted_is_what_the_checkpoints_hold(self, tmp_path: Path) -> None:
        _, found, events = trained(tmp_path, settings())
        accepted = {step["step"] for step in found["steps"] if step["action"] == "accept"}
        saved = {event["step"] for event in events if event["type"] == "checkpointed" and "/step_" in event["path"]}
        assert saved == accepted | {0}
        by_step = {step["step"]: step["current"] for step in found["steps"]}
        for event in events:
            if event["type"] == "checkpointed" and event["step"] in accepted and "/step_" in event["path"]:
                assert event["candidate"] == by_step[event["step"]]

    def test_a_rejected_step_leaves_the_current_candidate_alone(self, tmp_path: Path) -> None:
        _, found, _ = trained(tmp_path, settings())
        before = None
        for step in found["steps"]:
            if step["action"] != "accept" and before is not None:
                assert step["current"] == before
            before = step["current"]

    def test_every_edit_has_a_row_in_the_report(self, tmp_path: Path) -> None:
        _, found, _ = trained(tmp_path, settings(drafts=False))
        assert any(step["edits"] for step in found["steps"])
        assert all(len(step["edits"]) <= len(step["report"]) for step in found["steps"])  # refused ones have a row too

    def test_the_edit_budget_is_kept(self, tmp_path: Path) -> None:
        _, found, events = trained(tmp_path, settings(edit_budget=3, min_edit_budget=1))
        budgets = {event["step"]: event["edit_budget"] for event in events if event["type"] == "selected"}
        assert all(len(step["report"]) <= budgets[step["step"]] for step in found["steps"] if step["report"])
        assert budgets[1] == 3

    def test_held_back_val_items_decide_nothing(self, tmp_path: Path) -> None:
        _, _, events = trained(tmp_path, settings())
        deciding: set[str] = set()
        confirming: set[str] = set()
        for event in events:
            if event["type"] == "measured" and event["purpose"] in ("gate", "confirm"):
                ids = deciding if event["purpose"] == "gate" else confirming
                ids.update(id for group in event["groups"] for id in group["items"])
        assert len(confirming) >= 10 and confirming.isdisjoint(deciding)

    def test_a_noisy_best_is_confirmed_on_items_that_decided_nothing(self, tmp_path: Path) -> None:
        noisy = settings() | {"models": {"target": "scripted/rules?noise=0.1", "optimizer": "scripted/rules"}}
        _, found, events = trained(tmp_path, noisy)
        assert found["best"]["confirmed"]["how"] == "val items held back"
        measured = [event for event in events if event["type"] == "measured"]
        used, before = (
            {item for e in measured if e["purpose"] == purpose for group in e["groups"] for item in group["items"]}
            for purpose in ("confirm", "gate")
        )
        assert used and used.isdisjoint(before)
        assert found["test"]["best"]["mean"] > 0.6

    def test_without_an_optimizer_proposers_alone_train(self, tmp_path: Path) -> None:
        alone = settings() | {"models": {"target": "scripted/rules"}}
        status, _, events = trained(tmp_path, alone)
        assert status == "done" and not [event for event in events if event["type"] == "asked"]
        assert {"rollout", "reflect", "aggregate", "select"} <= {
            e["stage"] for e in events if e["type"] == "stage_done"
        }

    def test_the_force_gate_lets_everything_in_and_the_best_is_not_the_worst(self, tmp_path: Path) -> None:
        _, found, _ = trained(tmp_path, settings(gate="force"))
        actions = Counter(step["action"] for step in found["steps"])
        assert actions["accept"] and not actions["reject"]
        accepted = [step["current_score"] for step in found["steps"] if step["action"] == "accept"]
        assert found["best"]["raw"] == max(accepted)

    def test_the_force_gate_lets_a_worse_candidate_in_but_does_not_vouch_for_it(self, tmp_path: Path) -> None:
        spoilt = "\n".join(f"- {kind}: wrong" for kind in code_words())

        def spoil(request: Request) -> str:
            return json.dumps({"edits": [{"op": "append", "content": spoilt}]})

        class Knowing(Codebook):
            skill = rules(15)

        async def do(job: Job) -> None:
            params = ReflACTParams(gate="force", max_steps=1, proposers=(), screen_items=0)
            result = await ReflACT(params).train(job)
            assert result.final != job.initial and result.final.text.endswith(": wrong\n")
            assert result.best == job.initial and result.best_step == 0

        with_job(tmp_path, do, spoil, Knowing())

    def test_ideas_of_others_are_tried_only_where_the_analysts_come_to_nothing(self, tmp_path: Path) -> None:
        _, _, events = trained(tmp_path, settings())
        seen = set()
        for proposed, selected in zip(
            [event for event in events if event["type"] == "proposed"],
            [event for event in events if event["type"] == "selected"],
            strict=True,
        ):
            by_analysts = {n for n, one in enumerate(proposed["alternatives"]) if one["source"] == "analysts"}
            fine = any(score > current for n, score, current, *_ in selected["tried"] if n in by_analysts)
            others = {row[0] for row in selected["tried"]} - by_analysts
            assert not (fine and others), selected
            seen.add("analysts" if fine else "others")
        assert seen == {"analysts", "others"}

    def test_changes_that_cannot_be_made_are_told_to_the_user_and_to_the_analysts(self, tmp_path: Path) -> None:
        start, end = "<!-- PROTECTED:house START -->", "<!-- PROTECTED:house END -->"
        asked: list[str] = []

        def touch(request: Request) -> str:
            asked.append("\n".join(message.content for message in request.messages))
            return json.dumps({"edits": [{"op": "insert_after", "target": "Be kind.", "content": rules(9)}]})

        class House(Codebook):
            skill = f"Answer.\n\n{start}\nBe kind.\n{end}\n"

        async def do(job: Job) -> None:
            await ReflACT(ReflACTParams(max_steps=2, batch_size=20, proposers=())).train(job)

        with_job(tmp_path, do, touch, House())
        events = read_events(tmp_path / "events.jsonl")
        refused = [event["alternatives"] for event in events if event["type"] == "refused"]
        assert refused == [[[0, "analysts", "no_change", "would change the protected region 'PROTECTED:house'"]]] * 2
        done = next(event for event in events if event["type"] == "step_done")
        line = steps.line(artifacts.step(events, done))
        assert line.endswith("the analysts' changes can't be made: would change the protected region 'PROTECTED:house'")
        assert not any('"refused"' in text for text in asked[: len(asked) // 2])
        assert any('"refused"' in text and "protected region" in text for text in asked[len(asked) // 2 :])

    @pytest.mark.parametrize("gate", ["strict", "paired"])
    def test_other_gates_train_too(self, tmp_path: Path, gate: str) -> None:
        status, found, _ = trained(tmp_path, settings(gate=gate))
        assert status == "done" and found["test"]["best"]["mean"] > 0.5

    def test_unknown_parameters_are_named(self) -> None:
        with pytest.raises(UsageError, match=r"trainer reflact: unknown key 'epoch' \(did you mean 'epochs'\?\)"):
            build(load(None, settings(epoch=1)))


class TestBudgetEnds:
    def test_no_more_is_kept_for_the_final_check_than_is_not_known_yet(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            training = Training(job, ReflACTParams())
            val, state = training.val.deciding, training.state

            def kept() -> int:
                reserve(training)
                return job.budget.aside

            assert kept() == 0
            state.current = state.best = made(job, rules(2)).candidate
            state.draft = made(job, rules(3)).candidate
            assert kept() == 3 * len(val)
            await job.evaluate(job.initial, val[:20], purpose="gate")
            await job.evaluate(state.best, val, purpose="gate")
            assert kept() == 2 * len(val) - 20

        with_job(tmp_path, do)

    def test_out_of_budget_it_still_tests_and_then_goes_on_with_more(self, tmp_path: Path) -> None:
        small = settings() | {"budget": {"calls": 1100}}
        run, parts = prepare(load(None, small), tmp_path / "small")
        session = Session(parts, run)
        assert asyncio.run(session.run()) == "budget"
        found = json.loads((session.job_folder / "results.json").read_text())
        assert found["status"] == "budget" and set(found["test"]) == {"initial", "best", "final"}
        assert found["usage"]["total"]["calls"] <= 1100

        more = Session(build(load(None, settings()), run), run)
        assert asyncio.run(more.run(more_budget=True)) == "done"
        _, whole, events = trained(tmp_path / "whole", settings())
        after = json.loads((session.job_folder / "results.json").read_text())
        assert without_clock(after) == without_clock(whole)
        assert len(read_events(session.job_folder / "events.jsonl")) == len(events)

    @pytest.mark.parametrize("room", [False, True])
    def test_where_the_last_candidate_cannot_be_tested_too_training_ends_with_the_best(
        self, tmp_path: Path, room: bool
    ) -> None:
        setup = make_setup(Codebook(), {"target": ScriptedModel("scripted/rules")})
        calls = (3 if room else 2) * len(setup.splits.test)

        async def told_twice() -> None:
            for _ in range(2):
                async with running_job(setup, tmp_path, caps=Caps(calls=calls)) as job:
                    best, last = made(job, rules(3)).candidate, made(job, rules(2)).candidate
                    with job.budget.closing():
                        assert await finish(job, Trained(job.initial, best, last, 1, 0.5), step=2) is room
                    events = read_events(tmp_path / "events.jsonl")
                    tested = {event["which"]: event["candidate"] for event in events if event["type"] == "tested"}
                    assert tested == {
                        "initial": job.initial.digest,
                        "best": best.digest,
                        "final": (last if room else best).digest,
                    }
                    kept = tmp_path / "checkpoints" / "final" / "parts" / "SKILL.md"
                    assert kept.read_text() == (last if room else best).text

        asyncio.run(told_twice())

    def test_resumed_without_more_it_ends_where_it_ended(self, tmp_path: Path) -> None:
        run, parts = prepare(load(None, settings() | {"budget": {"calls": 1100}}), tmp_path)
        session = Session(parts, run)
        assert asyncio.run(session.run()) == "budget"
        before = (session.job_folder / "results.json").read_text()
        assert asyncio.run(session.run()) == "budget"
        after = (session.job_folder / "results.json").read_text()
        first, second = json.loads(before), json.loads(after)
        assert {**first, "clock": None} == {**second, "clock": None}
