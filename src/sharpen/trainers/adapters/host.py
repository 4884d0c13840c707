"""What a foreign optimizer is given of a job: rollouts, questions, and steps that tell what became of its ideas.

Its methods are for the optimizer's thread; each carries itself out on the event loop. A candidate that is measured on all
deciding val items may become the best at once, by the score the job itself has seen, so that the best found is the best
reported, whatever the optimizer makes of it. What it returns in the end is measured too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar

from pydantic import Field

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import Json
from sharpen.core.errors import BudgetExhausted, MissingRequirement, UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.task import Splits
from sharpen.engine.evaluation import Evaluation
from sharpen.engine.events import BudgetEnded
from sharpen.engine.job import Job
from sharpen.engine.metric import mean_of
from sharpen.skill.leaks import LeakIndex
from sharpen.trainers.adapters.bridge import Bridge, in_thread
from sharpen.trainers.adapters.texts import Texts, Version
from sharpen.trainers.base import Trained
from sharpen.trainers.reflact.events import Revised
from sharpen.trainers.search.course import Course, CourseParams, CourseTrainer
from sharpen.trainers.search.events import Offered


def needed(package: str, extra: str) -> str:
    """The version of a package that a trainer needs; whoever asks for the trainer without it is told what to install."""
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise MissingRequirement(f"this trainer needs the package {package}: pip install 'sharpen[{extra}]'") from error


class ForeignParams(CourseParams):
    """What every foreign optimizer has beside its own settings."""

    context_tokens: int = Field(32_000, ge=512, description="The optimizer's context, where its model does not tell.")
    answer_tokens: int = Field(8_192, ge=64, description="The longest answer of the optimizer.")
    temperature: float = Field(1.0, ge=0.0, le=2.0, description="Temperature of questions to the optimizer.")
    max_length: int = Field(20_000, ge=1, description="The most characters the candidate may have.")


class ForeignTrainer(CourseTrainer):
    """A trainer whose candidates another package finds."""

    params: ForeignParams
    asks: ClassVar[bool] = True
    """Whether it needs an optimizer model."""
    pools: ClassVar[bool] = False
    """Whether it keeps candidates that do not lead."""

    def check(self, splits: Splits, initial: Candidate, roles: Collection[str]) -> None:
        super().check(splits, initial, roles)
        if self.asks and "optimizer" not in roles:
            raise UsageError(
                f"trainer {self.name} needs an optimizer model, which writes the new versions; set models.optimizer"
            )

    def steps(self, train: int) -> int:
        """How many steps there will be at most, with so many train items."""
        raise NotImplementedError

    def items_per_step(self, train: int) -> int:
        """Train items of a step; 0 where it has none."""
        return 0

    def remarks(self, job: Job) -> list[str]:
        """Where these settings do not fit the job."""
        return []

    def optimize(self, host: Host) -> Mapping[str, str] | None:
        """Run the foreign optimizer to its end. Returns the texts it ended with, where it has an opinion."""
        raise NotImplementedError

    async def train(self, job: Job) -> Trained:
        course, train = Course(job, self.params), len(job.splits.train)
        steps = self.steps(train)
        course.open(steps, steps, min(train, self.items_per_step(train)), self.remarks(job))
        final, out_of_budget = None, False
        host = Host(course, self.params, self.name, pools=self.pools)
        try:
            await course.begin()
            ended = await in_thread(lambda bridge: self.optimize(host.over(bridge)))
            final = await host.conclude(ended)
        except BudgetExhausted as error:
            job.emit(BudgetEnded(str(error)))
            out_of_budget = True
        return course.trained(final, out_of_budget=out_of_budget)


@dataclass(frozen=True)
class Seen:
    """What some items came to with a version: scores by the deciding metric, None where a rollout failed; whole outcomes
    where they were asked for. Both are empty where the version was refused."""

    version: Version
    scores: tuple[float | None, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    @property
    def mean(self) -> float | None:
        return mean_of(self.scores)

    def filled(self, refused: float, count: int) -> list[float]:
        """A number for each of `count` items: a rollout that failed gets the mean of the others, which tells neither for
        nor against; one that was refused gets `refused`."""
        if self.version.refusal is not None:
            return [refused] * count
        mean = self.mean
        return [(0.0 if mean is None else mean) if score is None else score for score in self.scores]


@dataclass
class _Step:
    number: int
    offered: list[tuple[Version, int]] = field(default_factory=list)
    lost: int = 0
    measured: list[tuple[Version, str]] = field(default_factory=list)
    """Versions measured on all deciding items, and what became of each."""
    batch: Evaluation | None = None


class Host:
    """The job as an optimizer's thread sees it."""

    def __init__(self, course: Course, params: ForeignParams, source: str, *, pools: bool) -> None:
        self.course, self.params, self.job = course, params, course.job
        leaks = LeakIndex(self.job.splits, self.job.task.answers)
        self.texts = Texts(self.job.initial, leaks, params.max_length, source)
        self.items = {item.id: item for item in (*self.job.splits.train, *course.val.deciding)}
        self.source = source
        self._behind = "kept_in_pool" if pools else "reject"
        self._train = {item.id for item in self.job.splits.train}
        self._judged = {self.job.initial}
        self._noticed = {self.job.initial}
        self._questions = 0
        self._step: _Step | None = None
        self._steps = 0
        self._bridge: Bridge | None = None

    def over(self, bridge: Bridge) -> Host:
        """This host, reached over a bridge."""
        self._bridge = bridge
        return self

    @property
    def bridge(self) -> Bridge:
        assert self._bridge is not None, "only the optimizer's thread calls over the bridge"
        return self._bridge

    @property
    def train(self) -> tuple[Item, ...]:
        return self.job.splits.train

    @property
    def val(self) -> tuple[Item, ...]:
        """The val items that decide."""
        return self.course.val.deciding

    def seed(self) -> int:
        """A seed for the package's own generators."""
        return self.job.rng(self.source, "seed").below(2**31)

    def measure(self, texts: Mapping[str, str], items: Sequence[Item], *, parent: int = 0, whole: bool = False) -> Seen:
        """Attempt these items with these texts. `whole` brings the outcomes too, of train items: val items only judge."""
        return self.bridge.call(self._measure, texts, items, parent, whole)

    def ask(self, messages: Sequence[Message]) -> str:
        """Ask the optimizer model; nothing comes back where the answer was of no use."""
        return self.bridge.call(self._ask, messages)

    def begin_step(self) -> None:
        self.bridge.call(self._begin_step)

    def end_step(self, skipped: str = "skip_no_edits") -> None:
        """Say how the step ended; `skipped` is what to call it where nothing was proposed."""
        self.bridge.call(self._end_step, skipped)

    def judged(self, texts: Mapping[str, str]) -> bool:
        """Whether these texts were measured on all deciding val items before."""
        found = self.texts.back(texts)
        return found.refusal is None and found.candidate in self._judged

    def lost(self) -> None:
        """Say that an answer the optimizer can't go on without was of no use: a step that came to nothing."""
        self.bridge.call(self._lost)

    async def conclude(self, ended: Mapping[str, str] | None) -> Candidate | None:
        """Measure what the optimizer ended with, where that was not done yet."""
        if ended is None:
            return None
        found = self.texts.back(ended)
        if found.refusal is not None:
            return None
        if found.candidate not in self._judged:
            await self._begin_step()
            self._notice(found, 0)
            await self._judge(found)
            await self._end_step("skip_no_edits")
        return found.candidate

    async def _measure(self, texts: Mapping[str, str], items: Sequence[Item], parent: int, whole: bool) -> Seen:
        found = self.texts.back(texts)
        self._notice(found, parent)
        if found.refusal is not None:
            return Seen(found)
        if {item.id for item in items} == {item.id for item in self.val}:
            await self._judge(found)
            return Seen(found, await self._scores(found.candidate, items))
        on_train = all(item.id in self._train for item in items)
        with self.job.stage(self._steps, "rollout" if on_train else "validate"):
            seen = await self.job.evaluate(found.candidate, items, purpose="train" if on_train else "validate")
        if on_train and self._step is not None and self._step.batch is None:
            self._step.batch = seen
            self.job.progress.score = seen.mean
        outcomes = tuple(seen.outcome(number) for number in range(len(items))) if whole and on_train else ()
        return Seen(found, tuple(self.course.metric.values(seen)), outcomes)

    async def _scores(self, candidate: Candidate, items: Sequence[Item]) -> tuple[float | None, ...]:
        known = [self.job.known(candidate, item, 0) for item in items]
        return tuple(None if score is None else self.course.metric.of(*score) for score in known)

    async def _judge(self, found: Version) -> None:
        """Measure a version on all deciding val items; it leads from now on if it does better than the leader."""
        if found.candidate in self._judged:
            return
        if self._step is None:
            await self._begin_step()
        assert self._step is not None
        with self.job.stage(self._steps, "validate"):
            (score,) = await self.course.measure([found.candidate], "validate")
        self._judged.add(found.candidate)
        initial = self.job.initial
        texts = {name: text for name, text in found.candidate.parts.items() if text != initial[name]}
        edits: list[dict[str, Json]] = [{"summary": f"written by {self.source}", "source": self.source}]
        self.job.emit(Revised(self._steps, found.candidate.digest, edits, [], [], texts))
        self._step.measured.append((found, self.course.challenge(self._steps, found.candidate, score)))

    async def _ask(self, messages: Sequence[Message]) -> str:
        self._questions += 1
        context = self.job.context("optimizer") or self.params.context_tokens
        with self.job.stage(self._steps, "reflect"):
            answer = await self.job.ask(
                "optimizer",
                messages,
                scope=(self.source, self._questions),
                max_tokens=min(self.params.answer_tokens, context // 3),
                temperature=self.params.temperature,
            )
        if answer.error is not None and self._step is not None:
            self._step.lost += 1
        return "" if answer.error is not None else str(answer.value)

    async def _lost(self) -> None:
        await self._begin_step()
        assert self._step is not None
        self._step.lost += 1
        await self._end_step("skip_no_rewrite")

    async def _begin_step(self) -> None:
        self._steps += 1
        self._step = _Step(self._steps)
        self.job.progress.step = self._steps

    async def _end_step(self, skipped: str) -> None:
        step, course = self._step, self.course
        if step is None:
            return
        self._step = None
        usable = [found for found, _ in step.offered if found.refusal is None]
        records = [found.record(parent) for found, parent in step.offered]
        self.job.emit(Offered(step.number, len(usable), records, step.lost))
        action, current = self._outcome(step, usable, skipped), course.best
        if step.measured and action == self._behind:
            current = step.measured[-1][0].candidate
        score = mean_of(await self._scores(current, self.val)) if current != course.best else course.best_score
        course.tell(step.number, action, current, score, batch=step.batch)

    def _outcome(self, step: _Step, usable: Sequence[Version], skipped: str) -> str:
        if step.measured:
            return "accept" if any(action == "accept" for _, action in step.measured) else self._behind
        if usable:
            return "reject"
        return f"skip_{step.offered[0][0].refusal}" if step.offered else skipped

    def _notice(self, found: Version, parent: int) -> None:
        """Remember a version that was not seen before as something this step brought."""
        if self._step is None or (found.refusal is None and found.candidate in self._noticed):
            return
        if found.refusal is not None and any(found is other for other, _ in self._step.offered):
            return
        self._noticed.add(found.candidate)
        self._step.offered.append((found, parent))
