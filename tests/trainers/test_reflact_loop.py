"""ReflACT stage by stage, and whole trainings of a task that can be learnt completely."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stages import LIMITS, append, made, rules, with_job

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.digest import Json
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events
from sharpen.skill.edits import Edit, Op
from sharpen.skill.leaks import LeakIndex
from sharpen.tasks.codebook import Codebook
from sharpen.testing.simulator import RuleTask
from sharpen.trainers.reflact import aggregate, screen, select
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.modes import MODES
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.patches import Patch, unite
from sharpen.trainers.reflact.rollout import items_of_step, steps_per_epoch
from sharpen.trainers.reflact.schedule import edit_budget
from sharpen.trainers.reflact.update import Update, update


def data_of(request: Request) -> Mapping[str, Json]:
    text = request.messages[-1].content
    found: Mapping[str, Json] = json.loads(text.partition("```json\n")[2].partition("\n```")[0])
    return found


class TestSchedule:
    def test_the_values_are_those_of_the_paper(self) -> None:
        cosine = [edit_budget("cosine", step, 5, most=8, least=2) for step in range(1, 6)]
        linear = [edit_budget("linear", step, 5, most=8, least=2) for step in range(1, 6)]
        assert (
            cosine == [math.floor(2 + 3 * (1 + math.cos(math.pi * n / 4)) + 0.5) for n in range(5)] == [8, 7, 5, 3, 2]
        )
        assert linear == [8, 7, 5, 4, 2]
        assert [edit_budget("constant", step, 5, most=8, least=2) for step in range(1, 6)] == [8] * 5

    @given(st.sampled_from(["linear", "cosine"]), st.integers(2, 60), st.integers(1, 9), st.integers(0, 9))
    def test_it_falls_from_most_to_least(self, schedule: str, steps: int, least: int, more: int) -> None:
        most = least + more
        budgets = [edit_budget(schedule, step, steps, most=most, least=least) for step in range(1, steps + 1)]
        assert budgets[0] == most and budgets[-1] == least
        assert budgets == sorted(budgets, reverse=True)

    def test_a_single_step_has_the_full_budget(self) -> None:
        assert edit_budget("cosine", 1, 1, most=4, least=2) == 4

    def test_a_least_budget_above_the_most_is_refused(self) -> None:
        with pytest.raises(ValueError, match="min_edit_budget 5 is above edit_budget 4"):
            ReflACTParams(min_edit_budget=5)


def test_every_train_item_is_attempted_once_per_epoch_in_another_order(tmp_path: Path) -> None:
    async def do(job: Job) -> None:
        size = 30
        per_epoch = steps_per_epoch(len(job.splits.train), size)
        epochs = [
            [
                item.id
                for step in range(e * per_epoch, (e + 1) * per_epoch)
                for item in items_of_step(job, step + 1, size)
            ]
            for e in range(2)
        ]
        assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(item.id for item in job.splits.train)
        assert epochs[0] != epochs[1]

    with_job(tmp_path, do)


class TestUnite:
    def test_edits_that_do_the_same_become_one_with_the_support_of_all(self) -> None:
        found = unite([append("a", 2, ("x",)), append("b", 1), append("a", 3, ("y", "x"))])
        assert [(edit.content, edit.support) for edit in found] == [("a", 5), ("b", 1)]
        assert found[0].items == ("x", "y")

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), max_size=12))
    def test_no_support_is_lost_and_none_is_made_up(self, given_edits: list[tuple[str, int]]) -> None:
        found = unite([append(content, support) for content, support in given_edits])
        wanted: Counter[str] = Counter()
        for content, support in given_edits:
            wanted[content] += support
        assert {edit.content: edit.support for edit in found} == dict(wanted)
        assert [edit.content for edit in found] == list(dict.fromkeys(content for content, _ in given_edits))


class TestMerge:
    def patches(self, count: int) -> list[Patch]:
        return [Patch((append(f"- rule {n % 3}", 1),), "analysts", f"reason {n}", 2) for n in range(count)]

    def merged(self, folder: Path, count: int, size: int, optimizer: Callable[[Request], str]) -> Patch | None:
        async def do(job: Job) -> Patch | None:
            desk = Desk(job, ReflACTParams())
            shown: dict[str, Json] = {"skill": "s"}
            return await aggregate.merge(
                desk, MODES["patch"], 1, self.patches(count), shown, size=size, label="failures"
            )

        return with_job(folder, do, optimizer)

    def test_patches_are_merged_level_by_level_with_their_support(self, tmp_path: Path) -> None:
        sizes: list[int] = []

        def optimizer(request: Request) -> str:
            patches = data_of(request)["patches"]
            sizes.append(len(patches))
            support: Counter[str] = Counter()
            for patch in patches:
                for edit in patch["edits"]:
                    support[edit["content"]] += edit["support"]
            edits = [{"op": "append", "content": content, "support": n} for content, n in support.items()]
            return json.dumps({"summary": f"of {len(patches)}", "edits": edits})

        merged = self.merged(tmp_path, 10, 4, optimizer)
        assert merged is not None and merged.support == 20
        assert {edit.content: edit.support for edit in merged.edits} == {"- rule 0": 4, "- rule 1": 3, "- rule 2": 3}
        assert sorted(sizes) == [2, 3, 4, 4]
        scopes = [event["scope"] for event in read_events(tmp_path / "events.jsonl")]
        assert [scope[3:] for scope in scopes] == [[0, 0], [0, 1], [0, 2], [1, 0]]

    def test_support_beyond_what_was_read_is_cut(self, tmp_path: Path) -> None:
        boast = json.dumps({"edits": [{"op": "append", "content": "x", "support": 999}]})
        merged = self.merged(tmp_path, 3, 4, lambda request: boast)
        assert merged is not None and merged.edits[0].support == 6

    def test_without_a_usable_answer_equal_edits_are_united(self, tmp_path: Path) -> None:
        merged = self.merged(tmp_path, 6, 8, lambda request: "I'd rather not.")
        assert merged is not None and merged.reason == "united without the optimizer"
        assert {edit.content: edit.support for edit in merged.edits} == {"- rule 0": 2, "- rule 1": 2, "- rule 2": 2}

    def test_a_single_patch_needs_no_merging_and_none_gives_none(self, tmp_path: Path) -> None:
        def never(request: Request) -> str:
            raise AssertionError("nothing to ask")

        assert self.merged(tmp_path / "one", 1, 4, never) == self.patches(1)[0]
        assert self.merged(tmp_path / "none", 0, 4, never) is None

    def test_alternatives_have_no_repeats_and_the_merged_one_first(self) -> None:
        a, b = Patch((append("a"),), "x"), Patch((append("b"),), "y")
        found = aggregate.alternatives(
            [a], [Patch((append("a"),), "z"), b, Patch((), "w"), Patch((append("c"),), "v")], most=3, budget=0
        )
        assert [patch.edits[0].content for patch in found] == ["a", "b", "c"] and found[0] is a
        assert len(aggregate.alternatives([a], [b], most=1, budget=0)) == 1
        assert aggregate.alternatives([], [b], most=3, budget=0) == [b]

    def test_ideas_of_different_sources_are_tried_together_where_they_fit_the_budget(self) -> None:
        one, other = Patch((append("a"),), "x", "one", 2), Patch((append("b"),), "y", "two", 5)
        assert aggregate.alternatives([], [one, other], most=8, budget=1) == [one, other]
        both = aggregate.alternatives([], [one, other], most=8, budget=2)[2]
        assert ([edit.content for edit in both.edits], both.source, both.support) == (["a", "b"], "x+y", 5)


class TestClip:
    patch = Patch(
        tuple(append(name, support) for name, support in (("a", 1), ("b", 5), ("c", 3), ("d", 5))), "analysts"
    )

    def clipped(
        self, folder: Path, optimizer: Callable[[Request], str] | None, patch: Patch | None = None
    ) -> list[str]:
        async def do(job: Job) -> Patch:
            return await select.clip(Desk(job, ReflACTParams()), 1, patch or self.patch, budget=2, shown={"skill": "s"})

        return [edit.content for edit in with_job(folder, do, optimizer).edits]

    def test_without_an_optimizer_the_best_supported_stay_in_their_order(self, tmp_path: Path) -> None:
        assert self.clipped(tmp_path, None) == ["b", "d"]

    def test_the_optimizers_ranking_decides(self, tmp_path: Path) -> None:
        assert self.clipped(tmp_path, lambda request: json.dumps({"order": [2, 0, 1, 3]})) == ["a", "c"]

    def test_numbers_that_mean_nothing_are_passed_over(self, tmp_path: Path) -> None:
        assert self.clipped(tmp_path, lambda request: json.dumps({"order": [9, -1, 2, 2, 3]})) == ["c", "d"]

    def test_an_unusable_ranking_leaves_it_to_the_support(self, tmp_path: Path) -> None:
        assert self.clipped(tmp_path, lambda request: "no") == ["b", "d"]

    def test_proposers_patches_are_not_sent_to_the_optimizer(self, tmp_path: Path) -> None:
        def never(request: Request) -> str:
            raise AssertionError("nothing to ask")

        assert self.clipped(tmp_path, never, Patch(self.patch.edits, "examples")) == ["b", "d"]

    def test_what_fits_is_left_alone(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            assert await select.clip(Desk(job, ReflACTParams()), 1, self.patch, budget=4, shown={}) is self.patch

        with_job(tmp_path, do)


async def contest(job: Job, updates: list[Update], most: int) -> list[screen.Trial]:
    """A competition after the whole train split was attempted with the initial candidate, as a step's batch is."""
    batch = job.splits.train if most else ()
    await job.evaluate(job.initial, batch, purpose="train")
    return await screen.compete(job, 1, job.initial, dict(enumerate(updates)), batch, most)


class TestCompete:
    def test_the_best_wins_and_the_weak_are_dropped_early(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            updates = [made(job, rules(count)) for count in (1, 4, 20, 8, 2, 19)]
            trials = await contest(job, updates, 24)
            assert trials[0].number == 2 and trials[0].score == 1.0
            assert {trial.number: trial.items for trial in trials} == {0: 12, 1: 12, 2: 24, 3: 12, 4: 12, 5: 24}

        with_job(tmp_path, do)

    def test_one_that_is_clearly_ahead_of_all_needs_no_more_items(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            trials = await contest(job, [made(job, rules(count)) for count in (2, 20, 4)], 24)
            assert trials[0].number == 1 and [trial.items for trial in trials] == [12, 12, 12]
            (alone,) = await contest(job, [made(job, rules(20))], 24)
            assert alone.promising and alone.items == 12

        with_job(tmp_path, do)

    def test_of_equals_the_shorter_one_wins(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            updates = [made(job, rules(20) + "\n\nTake care."), made(job, rules(20)), made(job, "Hello.")]
            assert (await contest(job, updates, 24))[0].number == 1

        with_job(tmp_path, do)

    def test_one_that_does_no_better_than_the_current_candidate_holds_no_promise(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            (idle,) = await contest(job, [made(job, "Take care.")], 24)
            (good,) = await contest(job, [made(job, rules(2))], 24)
            assert (idle.score, idle.current, idle.promising) == (0.0, 0.0, False)
            assert good.promising and good.items == 24

        with_job(tmp_path, do)

    def test_items_the_current_candidate_fails_come_first_and_are_weighed_by_their_number(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            half = made(job, rules(10)).candidate
            batch = await job.evaluate(half, job.splits.train, purpose="train")
            grown = update(
                half,
                Patch((append(rules(12).splitlines()[-1]),), "test"),
                LIMITS,
                LeakIndex(job.splits, job.task.answers),
                set(),
            )
            (trial,) = await screen.compete(job, 1, half, {0: grown}, job.splits.train, len(job.splits.train))
            whole = await job.evaluate(grown.candidate, job.splits.train, purpose="train")
            assert trial.score == pytest.approx(whole.mean) and trial.current == pytest.approx(batch.mean)
            assert trial.promising
            screened = [event for event in read_events(tmp_path / "events.jsonl") if event["purpose"] == "screen"]
            assert screened[0]["groups"][0]["hard"] == [0] * 8 + [1] * 4

        with_job(tmp_path, do)

    def test_who_falls_behind_the_current_candidate_is_out_and_alone_ends_the_competition(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            half, leaks = made(job, rules(10)).candidate, LeakIndex(job.splits, job.task.answers)
            await job.evaluate(half, job.splits.train, purpose="train")
            forgets = update(half, Patch((Edit(Op.DELETE, target=rules(10)),), "test"), LIMITS, leaks, frozenset())
            learns = update(half, Patch((append(rules(20)),), "test"), LIMITS, leaks, frozenset())
            best, worst = await screen.compete(job, 1, half, {0: forgets, 1: learns}, job.splits.train, 40)
            assert (best.number, best.items, best.promising) == (1, 12, True)
            assert (worst.number, worst.items, worst.promising) == (0, 12, False)
            (alone,) = await screen.compete(job, 2, half, {0: forgets}, job.splits.train, 40)
            assert (alone.items, alone.promising) == (4, False)

        with_job(tmp_path, do)

    def test_where_answers_vary_a_few_items_put_nobody_out(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            assert job.repeatable
            harms = made(job, f"break: {' '.join(map(str, range(100)))}")
            (alone,) = await screen.compete(job, 1, job.initial, {0: harms}, job.splits.train, 40)
            assert (alone.items, alone.promising) == (40, False)

        with_job(tmp_path, do, task=RuleTask(items=100, coins=0.2, base=0.4, seed=1), target="scripted/echo")

    def test_without_items_to_try_on_nothing_is_tried(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            (alone,) = await contest(job, [made(job, "x")], 0)
            assert (alone.number, alone.score, alone.items, alone.promising) == (0, None, 0, True)
            assert job.meter.total.calls == 0
            assert await contest(job, [], 24) == []

        with_job(tmp_path, do)

    def test_a_refused_update_is_not_tried(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            nothing = update(job.initial, Patch((), "x"), LIMITS, LeakIndex(job.splits, job.task.answers), frozenset())
            assert nothing.refusal == "no_change"
            trials = await contest(job, [nothing, made(job, rules(3)), made(job, rules(9))], 24)
            assert [trial.number for trial in trials] == [2, 1]
            assert await contest(job, [nothing], 24) == []

        with_job(tmp_path, do)

    def test_items_shown_as_examples_are_not_used_to_judge(self, tmp_path: Path) -> None:
        async def do(job: Job) -> None:
            shown = job.splits.train[:6]
            blocks = "\n\n".join(f"### Example\nInput: {item.text}\nOutput: {item.reference}" for item in shown)
            await contest(job, [made(job, blocks), made(job, "Take care.")], 1000)
            screened = [event for event in read_events(tmp_path / "events.jsonl") if event["purpose"] == "screen"]
            ids = {id for event in screened for group in event["groups"] for id in group["items"]}
            assert ids == {item.id for item in job.splits.train[6:]}

        with_job(tmp_path, do)


class TestUpdate:
    current = Candidate("# Skill\n\nAnswer.\n")

    def make(self, *edits: Edit, seen: frozenset[str] = frozenset()) -> Update:
        task = Codebook()
        return update(self.current, Patch(edits, "test"), LIMITS, LeakIndex(task.splits(), task.answers), seen)

    def test_edits_that_change_nothing_are_refused(self) -> None:
        assert self.make(Edit(Op.REPLACE, "x", "not there")).refusal == "no_change"

    def test_a_val_item_with_its_answer_is_refused(self) -> None:
        item = Codebook().splits().val[0]
        leaking = self.make(append(f"### Example\nInput: {item.text}\nOutput: {item.reference}"))
        assert leaking.refusal == "leak" and leaking.leaks[0].item_id == item.id and leaking.leaks[0].split == "val"

    def test_a_train_item_may_be_shown(self) -> None:
        item = Codebook().splits().train[0]
        assert self.make(append(f"### Example\nInput: {item.text}\nOutput: {item.reference}")).refusal is None

    def test_what_was_tried_before_is_refused(self) -> None:
        first = self.make(append("- a rule"))
        assert first.refusal is None
        assert self.make(append("- a rule"), seen=frozenset({first.candidate.digest})).refusal == "tried"
