"""The handle a trainer gets: evaluate, ask, compare, rng, checkpoint, emit, stage, budget. That is the whole surface.

A trainer is a deterministic program over this handle. It reaches the outside only through `measure` (and its short form
`evaluate`) and `ask`; both find in the ledger what was paid for before, count each result once per job, and leave an
event. So a job that is started again replays to where it was, and a trainer contains no code for resuming.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from sharpen.core.benchmark import Benchmark
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import Json
from sharpen.core.item import Item
from sharpen.core.outcome import FailureKind, Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import Splits, Task
from sharpen.core.usage import Usage
from sharpen.engine.asking import Answer, Question, put
from sharpen.engine.budget import Budget
from sharpen.engine.durability import go_back
from sharpen.engine.evaluation import Evaluation, Group, Scores
from sharpen.engine.events import BudgetEnded, Checkpointed, Event, Measured, StageDone
from sharpen.engine.executor import run_all
from sharpen.engine.failures import check_crashes, check_failures
from sharpen.engine.gateway import Gateway, Stopped
from sharpen.engine.meter import Meter, Tally, minus, rows
from sharpen.engine.metric import HARD, Metric
from sharpen.engine.recounting import describe, describe_wish, failures_on_record
from sharpen.engine.replay import Place, Story
from sharpen.engine.rollouts import LiveAttempt, Sampling, attempt_item
from sharpen.engine.scoreboard import NOBODY, Scoreboard, Wishes
from sharpen.engine.shelf import Retention, Shelf
from sharpen.engine.spec import JobSpec
from sharpen.ledger.keys import RolloutKeys
from sharpen.ledger.store import Ledger

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sharpen.engine.comparing import Comparison
    from sharpen.engine.stretches import Grown
    from sharpen.gates.base import Gate


_CHUNK = 500
"""Rollouts looked up in the ledger at a time."""


@dataclass
class Progress:
    """Where a job is, for people to watch. Never part of its story."""

    step: int = 0
    steps: int = 0
    stage: str = "starting"
    done: int = 0
    total: int = 0
    score: float | None = None
    best: float | None = None
    retries: int = 0
    last_retry: str = ""
    notices: list[str] = field(default_factory=list)
    """What a person should know, to be shown once."""


@dataclass(frozen=True)
class Runtime:
    """What a job runs on; none of it may change a result."""

    gateway: Gateway
    ledger: Ledger
    story: Story
    budget: Budget
    workers: int = 64
    max_failures: float = 0.1
    """Share of one measurement's rollouts that may fail before the job stops."""
    keep: Retention | None = None
    """How many checkpoints of a policy stay."""


@dataclass(eq=False)
class Job:
    """One cell of a run, alive."""

    spec: JobSpec
    task: Task
    splits: Splits
    initial: Candidate
    folder: Path
    sampling: Sampling
    runtime: Runtime
    progress: Progress = field(default_factory=Progress)
    meter: Meter = field(default_factory=Meter)
    _stage: str = "start"
    _board: Scoreboard = field(default_factory=Scoreboard)
    _failed: dict[int, Outcome] = field(default_factory=dict)
    """By number on the board: rollouts whose last attempt has no score."""
    _landings: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    """By flight: the end of a measurement that is carrying out rollouts."""
    _flights: Iterator[int] = field(default_factory=lambda: count(NOBODY + 1))

    def __post_init__(self) -> None:
        # Who writes the edits does not matter to a rollout: jobs with different optimizers share theirs.
        models = {role: identity for role, identity in self.spec.models.items() if role != "optimizer"}
        self._keys = RolloutKeys(
            self.spec.task,
            self.spec.task_version,
            models,
            self.spec.render,
            self.sampling.seed,
            repeat=self.spec.repeat,
        )
        self.shelf = Shelf(self.folder, Benchmark.from_row(self.spec.benchmark), self.runtime.keep)

    @property
    def repeatable(self) -> bool:
        """Whether attempting an item again may end differently."""
        return self.sampling.seed is not None

    @property
    def budget(self) -> Budget:
        return self.runtime.budget

    def has_model(self, role: str) -> bool:
        return role in self.runtime.gateway.models

    def context(self, role: str) -> int | None:
        """The tokens a question to that model and its answer may have together, where the model tells."""
        found: int | None = getattr(self.runtime.gateway.models[role], "context", None)
        return found

    def rng(self, *scope: str | int) -> Stream:
        """Randomness that depends on the job's seed and on `scope`, and on nothing else."""
        return Stream(self.spec.seed, *scope)

    def emit(self, event: Event) -> None:
        """Add an event to the log. After `BudgetExhausted`, a trainer says `BudgetEnded` before it goes on."""
        if isinstance(event, BudgetEnded):
            recorded = self.runtime.story.emit(event, spent=self.budget.record())
            self.budget.go_on(None if recorded is None else recorded["clock"].get("spent"))
        else:
            self.runtime.story.emit(event)

    @contextmanager
    def stage(self, step: int, name: str) -> Iterator[None]:
        """Work inside belongs to this stage: its cost and time are recorded when it ends well."""
        outer, self._stage = self._stage, name
        self.progress.step, self.progress.stage = step, name
        before, began = self.meter.by_role(), time.monotonic()
        try:
            yield
        finally:
            self._stage = outer
        used = rows(minus(self.meter.by_role(), before))
        self.runtime.story.emit(StageDone(step, name, used), seconds=round(time.monotonic() - began, 3))

    async def evaluate(
        self, candidate: Candidate, items: Sequence[Item], *, purpose: str, sample: int = 0
    ) -> Evaluation:
        """The outcomes of one candidate on `items`."""
        return (await self.measure([Group(candidate, items, sample)], purpose=purpose))[0]

    async def measure(self, groups: Sequence[Group], *, purpose: str, any_failures: bool = False) -> list[Evaluation]:
        """The outcomes of several groups at once, as one event. Results are in item order, whatever finished first. With
        `any_failures` the job goes on however many rollouts failed."""
        stage, share = self._stage, None if any_failures else self.runtime.max_failures
        wishes = Wishes(groups, self._keys, self._board)
        async with self.runtime.story.place(lambda: describe_wish(stage, purpose, groups, self.splits)) as place:
            fresh = array("i", (n for n in wishes.firsts if self._is_fresh(wishes.numbers[n])))
            reused = len(wishes.firsts) - len(fresh)
            calls, free = len(fresh) * self.task.calls_per_rollout, 0 if self.task.calls_per_rollout else len(fresh)
            self.budget.admit(calls, free=free, told=place.recorded is not None)
            self.progress.done, self.progress.total = reused, len(wishes.firsts)
            try:
                used = await self._obtain(fresh, wishes, place, share)
                await self._wait_for_flights(wishes, place)
                self.runtime.ledger.flush()
                self._check_failures(wishes, share)
                evaluations = [self._evaluation(group, numbers) for group, numbers in wishes.by_group()]
                described = [
                    describe(e, g.sample, self.splits, [self._failed.get(number) for number in ns])
                    for (g, ns), e in zip(wishes.by_group(), evaluations, strict=True)
                ]
                await self.runtime.story.fill(place, Measured(stage, purpose, described, rows(used), reused))
            except BaseException:
                # What is not in the log must not be known to a trainer that goes on: a replay would not know it.
                for number in fresh:
                    self._board.forget(wishes.numbers[number])
                raise
        self.meter.add(stage, purpose, used)
        return evaluations

    async def ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        schema: type[BaseModel] | None = None,
        scope: Sequence[str | int] = (),
        max_tokens: int = 4096,
        temperature: float = 0.0,
    ) -> Answer:
        """Put a question to a model. An answer that is not usable comes back as such; it never stops the job by itself."""
        question = Question(role, tuple(messages), schema, tuple(scope), max_tokens, temperature)
        return await put(self.runtime.gateway, self.runtime.story, self.meter, question, self.spec.seed, self._stage)

    async def compare(
        self,
        new: Candidate,
        old: Candidate,
        items: Sequence[Item],
        gate: Gate,
        *,
        step: int,
        decision: int | None = None,
        planned: int = 1,
        metric: Metric = HARD,
    ) -> Comparison:
        """Let a gate decide between two candidates, fetching the outcomes it asks for."""
        from sharpen.engine.comparing import compare

        return await compare(self, new, old, items, gate, step=step, decision=decision, planned=planned, metric=metric)

    def known(self, candidate: Candidate, item: Item, sample: int) -> tuple[float, float] | None:
        """The hard and soft score this job has measured before; None where it has not."""
        number = self._board.find(self._keys.key(candidate, item, sample))
        if number is None or not self._board.is_known(number):
            return None
        return self._board.hard[number], self._board.soft[number]

    def checkpoint(
        self, candidate: Candidate, step: int, metrics: Mapping[str, Json], *, name: str = "", leads: bool = False
    ) -> None:
        """Save a candidate with its scores, under its step's name or a name of its own. One that `leads` is the best so far,
        by its score on val."""
        path = self.shelf.save(candidate, step, metrics, name=name)
        self.emit(Checkpointed(step, candidate.digest, path, dict(metrics)))
        if leads:
            value = metrics.get("val")
            self.shelf.led(candidate, step, value if isinstance(value, int | float) else None)
            if not self.runtime.story.replaying:
                self.shelf.settle(candidate)

    async def advance(self, work: Callable[[], Awaitable[Grown]]) -> tuple[Candidate, int]:
        """A policy trained for another stretch by `work`, saved with all that going on needs, and the step it is at. What
        was trained before is not trained again."""
        from sharpen.engine.stretches import advance

        return await advance(self, work)

    def evaluated(self, policy: Candidate, step: int, found: Evaluation) -> bool:
        """Take down how a policy did on the episodes that select. Says whether it is the best so far; it is kept, then."""
        from sharpen.engine.stretches import evaluated

        return evaluated(self, policy, step, found)

    async def _wait_for_flights(self, wishes: Wishes, place: Place) -> None:
        """Wait for rollouts that measurements before this one carry out."""
        flights = {self._board.carrier[number] for number in wishes.numbers} - {NOBODY}
        for landing in [self._landings[flight] for flight in flights]:
            await asyncio.shield(landing)
        if flights:
            self.runtime.story.check(place)

    def _check_failures(self, wishes: Wishes, share: float | None) -> None:
        numbers = (wishes.numbers[place] for place in wishes.firsts)
        failed = [self._failed[number] for number in numbers if number in self._failed]
        check_failures(failed, len(wishes.firsts), share)

    def _is_fresh(self, number: int) -> bool:
        """Whether a rollout is neither known nor about to be."""
        return not self._board.is_known(number) and self._board.carrier[number] == NOBODY

    async def _obtain(self, fresh: array[int], wishes: Wishes, place: Place, share: float | None) -> dict[str, Usage]:
        """Get the outcomes of `fresh` from the ledger, from the story, or by carrying them out. Returns what they used."""
        usage, crashed = Tally(), list[Outcome]()
        todo = self._look_up(fresh, wishes, failures_on_record(place.recorded), usage)
        if todo and place.recorded is not None:
            story = self.runtime.story
            go_back(story, story.number_of(place), self.runtime.ledger.path, f"{len(todo)} rollouts")
        self.progress.done += len(fresh) - len(todo)

        async def carry_out(place: int) -> None:
            if self.runtime.gateway.stopping:
                raise Stopped("stopped")  # rollouts that call no model do not pass the gateway
            group, item = wishes.at(place)
            outcome = await self._roll_out(group, item, wishes.numbers[place])
            usage.add(outcome.usage)
            self.progress.done += 1
            if outcome.failure is not None and outcome.failure.kind is FailureKind.CRASHED:
                crashed.append(outcome)
                check_crashes(crashed, len(wishes.firsts), share)

        with self._flight(array("i", (wishes.numbers[place] for place in todo))):
            began = time.monotonic()
            # The answers of a model that always answers the same can't drift, and it is faster one prompt after another.
            await run_all(wishes.in_turns(todo) if self.repeatable else todo, carry_out, at_once=self.runtime.workers)
            if not self.task.calls_per_rollout:
                self.budget.rolled_out(len(todo), time.monotonic() - began)
        return usage.by_role()

    @contextmanager
    def _flight(self, numbers: array[int]) -> Iterator[None]:
        """While inside, these rollouts are being carried out: measurements that want them too wait for the end of it."""
        flight, landed = next(self._flights), asyncio.get_running_loop().create_future()
        self._landings[flight] = landed
        for number in numbers:
            self._board.carrier[number] = flight
        try:
            yield
            landed.set_result(None)
        except BaseException as error:
            # A measurement that waits for some of these must not go on as if they were there.
            landed.set_exception(error)
            landed.exception()  # marks it as seen: often nobody else waits for it
            raise
        finally:
            del self._landings[flight]
            for number in numbers:
                self._board.carrier[number] = NOBODY

    def _look_up(
        self,
        fresh: array[int],
        wishes: Wishes,
        failed_before: Mapping[tuple[str, int, str], Outcome],
        usage: Tally,
    ) -> array[int]:
        """Take what the ledger or the story knows, adding to `usage`; return the places that must be carried out."""
        todo = array("i")
        for start in range(0, len(fresh), _CHUNK):
            keys = {place: self._board.key(wishes.numbers[place]) for place in fresh[start : start + _CHUNK]}
            stored = self.runtime.ledger.scores(keys.values())
            for place, key in keys.items():
                number, (group, item) = wishes.numbers[place], wishes.at(place)
                failed = failed_before.get((group.candidate.digest, group.sample, item.id)) if failed_before else None
                if failed is not None:
                    self._failed[number] = failed
                    self._count(failed.usage, usage)
                elif key in stored:
                    score = stored[key]
                    self._note(number, score.hard, score.soft, score.measures)
                    self._count(score.usage, usage)
                else:
                    todo.append(place)
        return todo

    def _note(self, number: int, hard: float, soft: float, measures: Mapping[str, float]) -> None:
        self._board.note(number, hard, soft, measures)
        self._failed.pop(number, None)

    def _count(self, used: Mapping[str, Usage], tally: Tally) -> None:
        """Count what was paid for before as if it were paid now."""
        tally.add(used)
        for role, one in used.items():
            self.budget.charge(one, role)

    async def _roll_out(self, group: Group, item: Item, number: int) -> Outcome:
        scope = (item.digest, group.candidate.digest, group.sample)
        attempt = LiveAttempt(self.runtime.gateway, self.sampling, self.spec.render, scope)
        outcome = await attempt_item(self.task, item, group.candidate, attempt)
        if outcome.failure is not None:
            self._failed[number] = outcome
            return outcome
        assert outcome.hard is not None and outcome.soft is not None
        self._note(number, outcome.hard, outcome.soft, outcome.measures)
        key = self._board.key(number)
        self.runtime.ledger.add_rollout(key, self.spec.task, group.candidate.digest, group.sample, outcome)
        return outcome

    def _evaluation(self, group: Group, numbers: array[int]) -> Evaluation:
        hard = Scores(self._board.hard[number] for number in numbers)
        soft = Scores(self._board.soft[number] for number in numbers)
        failures = {
            item.id: failure
            for item, number in zip(group.items, numbers, strict=True)
            if number in self._failed and (failure := self._failed[number].failure) is not None
        }
        measures = {name: Scores(values) for name, values in self._board.measures(numbers).items()}
        return Evaluation(group.candidate, group.items, hard, soft, failures, self._loader(group), measures)

    def _loader(self, group: Group) -> Callable[[int], Outcome]:
        def load(index: int) -> Outcome:
            outcome = self.runtime.ledger.outcome(self._keys.key(group.candidate, group.items[index], group.sample))
            assert outcome is not None, "a scored rollout is in the ledger"
            return outcome

        return load
