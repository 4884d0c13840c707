"""The handle a trainer gets: evaluate, ask, compare, rng, checkpoint, emit, stage, budget. That is the whole surface.

A trainer is a deterministic program over this handle. It reaches the outside only through `measure` (and its short form
`evaluate`) and `ask`; both find in the ledger what was paid for before, count each result once per job, and leave an
event. So a job that is started again replays to where it was, and a trainer contains no code for resuming.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import Json
from sharpen.core.errors import TooManyFailures
from sharpen.core.item import Item
from sharpen.core.outcome import Failure, FailureKind, Outcome
from sharpen.core.rng import Stream
from sharpen.core.task import SPLITS, Splits, Task
from sharpen.core.usage import Usage
from sharpen.engine import checkpoints
from sharpen.engine.asking import Answer, Question, put
from sharpen.engine.budget import Budget
from sharpen.engine.evaluation import Evaluation, Group
from sharpen.engine.events import Checkpointed, Event, Measured, StageDone
from sharpen.engine.executor import run_all
from sharpen.engine.gateway import Gateway
from sharpen.engine.meter import Meter, Tally, minus, rows
from sharpen.engine.replay import Slot, Story
from sharpen.engine.rollouts import LiveAttempt, Sampling, attempt_item
from sharpen.engine.spec import JobSpec
from sharpen.ledger.keys import RolloutKeys
from sharpen.ledger.store import Ledger, Scored

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sharpen.engine.comparing import Comparison
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
    _known: dict[bytes, tuple[float, float]] = field(default_factory=dict)
    _flying: dict[bytes, asyncio.Future[None]] = field(default_factory=dict)
    _failed: dict[bytes, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Who writes the edits does not matter to a rollout: jobs with different optimizers share theirs.
        models = {role: identity for role, identity in self.spec.models.items() if role != "optimizer"}
        self._keys = RolloutKeys(self.spec.task, self.spec.task_version, models, self.spec.render, self.sampling.seed)
        self._ids = {name: [item.id for item in self.splits[name]] for name in SPLITS}

    @property
    def repeatable(self) -> bool:
        """Whether attempting an item again may end differently."""
        return self.sampling.seed is not None

    @property
    def budget(self) -> Budget:
        return self.runtime.budget

    def has_model(self, role: str) -> bool:
        return role in self.runtime.gateway.models

    def rng(self, *scope: str | int) -> Stream:
        """Randomness that depends on the job's seed and on `scope`, and on nothing else."""
        return Stream(self.spec.seed, *scope)

    def emit(self, event: Event) -> None:
        """Add an event to the story."""
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

    async def measure(self, groups: Sequence[Group], *, purpose: str) -> list[Evaluation]:
        """The outcomes of several groups at once, as one event. Results are in item order, whatever finished first."""
        keys = [[self._keys.key(g.candidate, item, g.sample) for item in g.items] for g in groups]
        work = {
            key: (g, item) for g, ks in zip(groups, keys, strict=True) for key, item in zip(ks, g.items, strict=True)
        }
        fresh = [key for key in work if key not in self._known and key not in self._flying]
        self.runtime.story.stop_where_it_stopped()
        self.budget.admit(len(fresh) * self.task.calls_per_rollout, told=self.runtime.story.replaying)
        slot = self.runtime.story.reserve()
        self.progress.done, self.progress.total = len(work) - len(fresh), len(work)
        try:
            used = await self._obtain(fresh, work, slot)
            for landing in {self._flying[key] for key in work if key in self._flying}:
                await asyncio.shield(landing)
            self.runtime.ledger.flush()
            self._check_failures(work)
        except BaseException:
            self.runtime.story.cancel(slot)
            raise
        self.meter.add(self._stage, purpose, used)
        evaluations = [self._evaluation(g, ks) for g, ks in zip(groups, keys, strict=True)]
        described = [self._describe(g, e, ks) for g, e, ks in zip(groups, evaluations, keys, strict=True)]
        event = Measured(self._stage, purpose, described, rows(used), len(work) - len(fresh))
        self.runtime.story.fill(slot, event)
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
        self, new: Candidate, old: Candidate, items: Sequence[Item], gate: Gate, *, step: int, planned: int = 1
    ) -> Comparison:
        """Let a gate decide between two candidates, fetching the outcomes it asks for."""
        from sharpen.engine.comparing import compare

        return await compare(self, new, old, items, gate, step=step, planned=planned)

    def known_score(self, candidate: Candidate, item: Item, sample: int) -> float | None:
        """A score this job has measured before; None where it has not."""
        known = self._known.get(self._keys.key(candidate, item, sample))
        return None if known is None else known[0]

    def checkpoint(self, candidate: Candidate, step: int, metrics: Mapping[str, Json], *, name: str = "") -> None:
        """Save a candidate with its scores, under its step's name or a name of its own."""
        path = checkpoints.save(self.folder, candidate, step, metrics, name=name)
        self.emit(Checkpointed(step, candidate.digest, path, dict(metrics)))

    async def _obtain(
        self, fresh: list[bytes], work: Mapping[bytes, tuple[Group, Item]], slot: Slot
    ) -> dict[str, Usage]:
        """Get the outcomes of `fresh` from the ledger, from the story, or by carrying them out. Returns what they used."""
        usage = Tally()
        todo = self._look_up(fresh, work, _failures_on_record(slot), usage)
        landed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flying.update(dict.fromkeys(todo, landed))
        self.progress.done += len(fresh) - len(todo)

        async def carry_out(key: bytes) -> None:
            group, item = work[key]
            outcome = await self._roll_out(group, item, key)
            usage.add(outcome.usage)
            self.progress.done += 1

        try:
            await run_all(todo, carry_out, at_once=self.runtime.workers)
            landed.set_result(None)
        except BaseException as error:
            # A measurement that waits for some of these must not go on as if they were there.
            landed.set_exception(error)
            landed.exception()  # marks it as seen: often nobody else waits for it
            raise
        finally:
            for key in todo:
                del self._flying[key]
        return usage.by_role()

    def _look_up(
        self,
        fresh: list[bytes],
        work: Mapping[bytes, tuple[Group, Item]],
        failed_before: Mapping[tuple[str, int, str], Outcome],
        usage: Tally,
    ) -> list[bytes]:
        """Take what the ledger or the story knows, adding to `usage`; return the keys that must be carried out."""
        todo: list[bytes] = []
        for start in range(0, len(fresh), _CHUNK):
            chunk = fresh[start : start + _CHUNK]
            stored = self.runtime.ledger.scores(chunk)
            for key in chunk:
                group, item = work[key]
                failed = failed_before.get((group.candidate.digest, group.sample, item.id)) if failed_before else None
                if failed is not None:
                    self._failed[key] = failed
                    self._count(failed.usage, usage)
                elif key in stored:
                    self._take(key, stored[key], usage)
                else:
                    todo.append(key)
        return todo

    def _take(self, key: bytes, score: Scored, usage: Tally) -> None:
        self._known[key] = _pair(score.hard, score.soft)
        self._failed.pop(key, None)
        self._count(score.usage, usage)

    def _count(self, used: Mapping[str, Usage], tally: Tally) -> None:
        """Count what was paid for before as if it were paid now."""
        tally.add(used)
        for role, one in used.items():
            self.budget.charge(one, role)

    async def _roll_out(self, group: Group, item: Item, key: bytes) -> Outcome:
        scope = (item.digest, group.candidate.digest, group.sample)
        attempt = LiveAttempt(self.runtime.gateway, self.sampling, self.spec.render, scope)
        outcome = await attempt_item(self.task, item, group.candidate, attempt)
        if outcome.failure is not None:
            self._failed[key] = outcome
            return outcome
        assert outcome.hard is not None and outcome.soft is not None
        self._known[key] = _pair(outcome.hard, outcome.soft)
        self._failed.pop(key, None)
        self.runtime.ledger.add_rollout(key, self.spec.task, group.candidate.digest, group.sample, outcome)
        return outcome

    def _check_failures(self, work: Mapping[bytes, tuple[Group, Item]]) -> None:
        failed = [self._failed[key] for key in work if key in self._failed]
        share = self.runtime.max_failures
        allowed = 0.0 if share == 0 else min(max(1.0, share * len(work)), len(work) - 1)
        if failed and len(failed) > allowed:
            last = failed[-1].failure
            assert last is not None
            kinds = sorted({str(outcome.failure.kind) for outcome in failed if outcome.failure is not None})
            raise TooManyFailures(
                f"{len(failed)} of {len(work)} rollouts failed for reasons that are not the agent's ({', '.join(kinds)}); "
                f"at most {self.runtime.max_failures:.0%} may. The last one said: {last.message}"
            )

    def _evaluation(self, group: Group, keys: list[bytes]) -> Evaluation:
        scores = [self._known.get(key) for key in keys]
        failures = {
            item.id: failure
            for item, key in zip(group.items, keys, strict=True)
            if key in self._failed and (failure := self._failed[key].failure) is not None
        }
        hard = [None if score is None else score[0] for score in scores]
        soft = [None if score is None else score[1] for score in scores]
        return Evaluation(group.candidate, group.items, hard, soft, failures, self._loader(keys))

    def _loader(self, keys: list[bytes]) -> Callable[[int], Outcome]:
        def load(index: int) -> Outcome:
            outcome = self.runtime.ledger.outcome(keys[index])
            assert outcome is not None, "a scored rollout is in the ledger"
            return outcome

        return load

    def _describe(self, group: Group, evaluation: Evaluation, keys: list[bytes]) -> dict[str, Json]:
        ids: Json = [item.id for item in group.items]
        whole = next((name for name in SPLITS if ids == self._ids[name]), None)
        failed = {}
        for item, key in zip(group.items, keys, strict=True):
            if item.id in evaluation.failures:
                failure = evaluation.failures[item.id]
                failed[item.id] = [failure.kind, failure.message, rows(self._failed[key].usage)]
        soft = None if evaluation.soft == evaluation.hard else [_compact(score) for score in evaluation.soft]
        return {
            "candidate": group.candidate.digest,
            "sample": group.sample,
            "items": whole or ids,
            "hard": [_compact(score) for score in evaluation.hard],
            "soft": soft,
            "failed": failed,
        }


def _failures_on_record(slot: Slot) -> dict[tuple[str, int, str], Outcome]:
    """What the story says about failures at this place: history is not tried again, only what it did not reach is."""
    if slot.expected is None or slot.expected.get("type") != Measured.type:
        return {}
    found = {}
    for group in slot.expected["groups"]:
        for item_id, (kind, message, used) in group["failed"].items():
            usage = {role: Usage.from_told(row) for role, row in used.items()}
            failure = Failure(FailureKind(kind), message)
            found[(group["candidate"], group["sample"], item_id)] = Outcome(
                item_id, None, None, usage=usage, failure=failure
            )
    return found


_ZERO, _ONE = (0.0, 0.0), (1.0, 1.0)


def _pair(hard: float, soft: float) -> tuple[float, float]:
    """Hard and soft score together; the two commonest pairs are shared, since there may be very many."""
    if hard == soft:
        if hard == 0.0:
            return _ZERO
        if hard == 1.0:
            return _ONE
    return (hard, soft)


def _compact(score: float | None) -> float | int | None:
    """0 and 1 as integers: most scores are, and the file is half as long."""
    return int(score) if score in (0.0, 1.0) else score
