"""What every task must hold to, as a suite that a plugin's tests inherit.

    class TestMyTask(TaskContract):
        def make(self) -> Task:
            return MyTask()

`FakeAttempt` is the outside world of such a test: it answers with a function of the request and keeps what was asked.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sharpen.core.chat import Reply, Request
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import SPLITS, Task
from sharpen.skill.examples import Example, parse, write
from sharpen.tasks.render import STYLES
from sharpen.tasks.textual import TextTask


class FakeAttempt:
    """An `Attempt` without an engine behind it."""

    def __init__(self, answer: Callable[[Request], str] | str, *, render: str = "system") -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self._render = render
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def render(self) -> str:
        return self._render

    @property
    def rng(self) -> Stream:
        return Stream(0, "attempt")

    @property
    def scratch(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sharpen-")
        return Path(self._folder.name)

    async def complete(self, request: Request, *, role: str = "target") -> Reply:
        self.requests.append(request)
        return Reply(self._answer if isinstance(self._answer, str) else self._answer(request))


def attempt(task: Task, item: Item, answer: Callable[[Request], str] | str, *, render: str = "system") -> Outcome:
    """The outcome of the seed candidate on one item, with a fake model that answers `answer`."""
    return asyncio.run(task.rollout(item, task.seed(), FakeAttempt(answer, render=render)))


class TaskContract:
    """Inherit, and give `make`. It must build the task anew each time."""

    def make(self) -> Task:
        raise NotImplementedError

    def items(self) -> list[Item]:
        splits = self.make().splits()
        return [item for name in SPLITS for item in splits[name]]

    def few(self) -> list[Item]:
        """Some items of every split, where trying all would take long."""
        splits = self.make().splits()
        return [item for name in SPLITS for item in splits[name][:8]]

    def test_has_a_name_a_version_and_a_description(self) -> None:
        task = self.make()
        assert task.name and task.version and task.brief.description
        assert set(task.renders.values()) <= set(STYLES)
        assert task.calls_per_rollout >= 0

    def test_every_split_has_items(self) -> None:
        splits = self.make().splits()
        assert all(splits[name] for name in SPLITS)

    def test_ids_are_unique_and_splits_disjoint(self) -> None:
        items = self.items()
        assert len({item.id for item in items}) == len(items)
        assert len({item.digest for item in items}) == len(items)
        asked = {item.digest: (item.inputs, item.type) for item in items}
        inputs = [repr(sorted(fields.items())) + kind for fields, kind in asked.values()]
        assert len(set(inputs)) == len(items), "two items ask the same thing"

    def test_splits_and_versions_are_the_same_when_made_again(self) -> None:
        first, second = self.make(), self.make()
        assert first.version == second.version
        for name in SPLITS:
            assert [i.digest for i in first.splits()[name]] == [i.digest for i in second.splits()[name]]
            assert [i.digest for i in first.splits()[name]] == [i.digest for i in first.splits()[name]]

    def test_the_seed_says_something_and_stays_the_same(self) -> None:
        seed = self.make().seed()
        assert all(seed[part].strip() for part in seed)
        assert self.make().seed() == seed

    def test_instructions_are_single_lines(self) -> None:
        for line in self.make().brief.instructions:
            assert line.strip() == line and line and "\n" not in line

    def test_examples_survive_being_written_into_a_skill(self) -> None:
        task = self.make()
        for item in self.few():
            example = task.example(item)
            if example is not None:
                assert parse(f"Text.\n\n{write(Example(*example))}\n").examples == (Example(*example),)

    def test_an_empty_answer_is_scored_and_not_right(self) -> None:
        task = self.make()
        for item in self.few():
            outcome = attempt(task, item, "")
            assert outcome.item_id == item.id and outcome.scored
            assert outcome.hard is not None and outcome.hard < 1
            assert outcome.feedback, "a wrong answer deserves a sentence of feedback"

    def test_the_right_answer_scores_one_in_every_rendering(self) -> None:
        task = self.make()
        if not isinstance(task, TextTask):
            pytest.skip("only tasks of one question and one answer have a right answer text")
        for number, item in enumerate(self.items()):
            gold = task.gold(item)
            if gold is not None:
                outcome = attempt(task, item, gold, render=list(STYLES)[number % len(STYLES)])
                assert outcome.hard == 1.0
                assert outcome.soft == 1.0 or task.objectives, "with several aims, a right answer is not all"

    def test_a_rollout_asks_no_more_often_than_it_says(self) -> None:
        task = self.make()
        for render in STYLES:
            fake = FakeAttempt("something", render=render)
            asyncio.run(task.rollout(self.few()[0], task.seed(), fake))
            assert min(1, task.calls_per_rollout) <= len(fake.requests) <= task.calls_per_rollout

    def test_every_objective_is_measured(self) -> None:
        task = self.make()
        for item in self.few() if task.objectives else ():
            assert set(task.objectives) <= set(attempt(task, item, "something").measures)

    def test_a_rollout_depends_on_nothing_but_what_it_is_given(self) -> None:
        for item in self.few()[:3]:
            first, second = FakeAttempt("something"), FakeAttempt("something")
            outcomes = [asyncio.run(self.make().rollout(item, self.make().seed(), fake)) for fake in (first, second)]
            assert first.requests == second.requests
            assert outcomes[0] == outcomes[1]

    def test_the_reference_does_not_reach_the_model(self) -> None:
        """Two items that differ in their reference alone are asked in the same words."""
        task = self.make()
        for item in self.few()[:3]:
            other = Item(item.id, item.inputs, _other(item.reference), item.type)
            asked = []
            for version in (item, other):
                fake = FakeAttempt("something")
                asyncio.run(task.rollout(version, task.seed(), fake))
                asked.append(fake.requests)
            assert asked[0] == asked[1]

    @pytest.mark.parametrize("kind", list(ModelErrorKind))
    def test_a_failing_model_is_not_a_wrong_answer(self, kind: ModelErrorKind) -> None:
        def fail(request: Request) -> str:
            raise ModelError(kind, "not today")

        if not self.make().calls_per_rollout:
            pytest.skip("this task calls no model")
        with pytest.raises(ModelError):
            attempt(self.make(), self.few()[0], fail)


def _other(reference: object) -> object:
    """Another reference of the same sort, so that the scorer takes it."""
    if not isinstance(reference, str):
        return reference
    return '{"other": 77}' if reference.startswith("{") else "77"
