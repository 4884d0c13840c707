"""The trainers that need no pool: they hold to the contract, and each does what it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.errors import UsageError
from sharpen.core.task import Splits
from sharpen.models.base import Model
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.models.scripted_rules import rules
from sharpen.skill import examples
from sharpen.tasks.codebook import Codebook
from sharpen.testing.jobs import make_setup, running_job
from sharpen.testing.trainers import TrainerContract
from sharpen.trainers.base import Trainer
from sharpen.trainers.fewshot import FewShot, FewShotParams
from sharpen.trainers.noop import NoOp
from sharpen.trainers.opro import Opro, OproParams
from sharpen.trainers.search.course import CourseParams


class TestNoOp(TrainerContract):
    test_killed_at_any_write_and_resumed_it_ends_the_same = None
    test_a_cap_ends_a_killed_job_where_it_ends_an_undisturbed_one = None

    def make(self) -> Trainer:
        return NoOp(CourseParams())

    def test_it_changes_nothing_and_measures_the_start(self, tmp_path: Path) -> None:
        events = self.train(tmp_path).events
        start = self.task().seed().digest
        assert {event["candidate"] for event in events if event["type"] == "tested"} == {start}
        (confirmed,) = (event for event in events if event["type"] == "best_confirmed")
        assert confirmed["raw"] == 0.0
        assert not [event for event in events if event["type"] == "step_done"]


class TestFewShot(TrainerContract):
    test_a_cap_ends_a_killed_job_where_it_ends_an_undisturbed_one = None

    def make(self) -> Trainer:
        return FewShot(FewShotParams(num_candidate_programs=3, bootstrap_items=8))

    def models(self, noise: float) -> Mapping[str, Model]:
        return {"target": ScriptedModel(f"own/shots?noise={noise}" if noise else "own/shots", _by_example)}

    def test_what_the_model_gets_right_comes_first_and_with_its_own_answer(self, tmp_path: Path) -> None:
        task = self.task()
        events = self.train(tmp_path).events
        (tried,) = (e for e in events if e["type"] == "measured" and e["stage"] == "bootstrap")
        (group,) = tried["groups"]
        right = {item for item, score in zip(group["items"], group["hard"], strict=True) if score == 1.0}
        assert right, "the model knows some kinds from the start"
        items = {item.id: item for item in task.splits().train}
        for event in (event for event in events if event["type"] == "revised"):
            shown = [(edit["items"][0], examples.parse(edit["content"]).examples[0]) for edit in event["edits"]]
            own = [item in right for item, _ in shown[: len(right)]]
            assert own == sorted(own, reverse=True) and (own[0] or not right)
            for item, example in shown:
                assert example.output == (f"{items[item].reference}." if item in right else items[item].reference)

    def test_the_set_that_does_best_on_val_stays(self, tmp_path: Path) -> None:
        events = self.train(tmp_path).events
        scores = {event["current"]: event["current_score"] for event in events if event["type"] == "step_done"}
        (confirmed,) = (event for event in events if event["type"] == "best_confirmed")
        assert scores[confirmed["candidate"]] == max(scores.values()) == confirmed["raw"]
        start = next(event for event in events if event["type"] == "measured")["groups"][0]["hard"]
        assert confirmed["raw"] > sum(start) / len(start)


@cache
def _known() -> Mapping[str, str]:
    """The first five kinds, with a full stop."""
    return {item.type: f"{item.reference}." for item in Codebook().splits().train if item.type <= "kind-05"}


def _by_example(request: Request) -> str:
    """Knows a few kinds from the start, and further ones from worked examples."""
    skill = "\n".join(message.content for message in request.messages if message.role == "system")
    shown = {example.input.partition(":")[0]: example.output for example in examples.parse(skill).examples}
    return {**_known(), **shown}.get(last_said(request).partition(":")[0], "unknown")


class TestOpro(TrainerContract):
    test_a_cap_ends_a_killed_job_where_it_ends_an_undisturbed_one = None

    def make(self) -> Trainer:
        return Opro(OproParams(iterations=3, num_proposals=2, batch_size=6))

    def models(self, noise: float) -> Mapping[str, Model]:
        return {**super().models(noise), "optimizer": ScriptedModel("own/writer", self._write)}

    def _write(self, request: Request) -> str:
        data = json.loads(last_said(request).partition("```json\n")[2].partition("\n```")[0])
        self.asked = [*getattr(self, "asked", []), data]
        return rules(request)

    def test_versions_are_shown_worst_first_with_the_score_each_reached(self, tmp_path: Path) -> None:
        events = self.train(tmp_path).events
        val = {item.text for item in self.task().splits().val}
        reached = {event["current_score"] for event in events if event["type"] == "step_done"} | {0.0}
        for data in self.asked:
            scores = [version["score"] for version in data["memory"]["versions"]]
            assert scores == sorted(scores) and scores[0] == 0.0
            assert data["memory"]["versions"][-1]["text"] == data["skill"], (
                "the best version is the one to be rewritten"
            )
            assert not [text for text in val if text in json.dumps(data)]
        last = [version["score"] for version in self.asked[-1]["memory"]["versions"]]
        assert len(last) > 1 and {round(score, 4) for score in reached} & set(last[1:])

    def test_protected_regions_survive_every_rewriting(self, tmp_path: Path) -> None:
        region = "<!-- HOUSE_START -->\nNever say please.\n<!-- HOUSE_END -->"
        start = Candidate(f"Answer with the code word.\n\n{region}\n")
        setup = make_setup(self.task(), self.models(0.0), initial=start)

        async def go() -> Candidate:
            async with running_job(setup, tmp_path) as job:
                return (await self.make().train(job)).best

        best = asyncio.run(go())
        assert best != start and region in best.text
        assert not [data for data in self.asked if "Never say please" in json.dumps(data)]


def test_settings_that_can_do_nothing_are_refused() -> None:
    splits, start = Codebook().splits(), Candidate("Answer.")
    with pytest.raises(UsageError, match="needs an optimizer model"):
        Opro(OproParams()).check(splits, start, {"target"})
    with pytest.raises(UsageError, match="may use no example"):
        FewShot(FewShotParams(max_bootstrapped_demos=0, max_labeled_demos=0)).check(splits, start, {"target"})
    with pytest.raises(UsageError, match="train split is empty"):
        FewShot(FewShotParams()).check(Splits((), splits.val, splits.test), start, {"target"})
    with pytest.raises(UsageError, match="val split is empty"):
        NoOp(CourseParams()).check(Splits(splits.train, (), splits.test), start, {"target"})
