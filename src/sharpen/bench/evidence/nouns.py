"""The nouns of a comparison: an arm, its runs, what each measured and what it took. Frozen, and free of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sharpen.bench.policy_curve import RETURNS
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest
from sharpen.stats.curves import Curve
from sharpen.stats.errors import BadData
from sharpen.stats.normalise import Reference

TEST = "test"
"""The name of the final score on items that training did not see."""
SCORES = (TEST, "test_initial", "test_final", "confirmed", "val", "best", "train", *RETURNS)
"""What a run of sharpen measures in one unit, that of its task's score."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took; None where it is not known, which is not the same as nothing."""

    calls: float | None = None
    tokens: float | None = None
    money: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Run:
    """One repetition. `curves` are by metric, `finals` single numbers by name, `items` the final score of each item by id.
    `lacks` says what a run that is not at its end, or broken, has not got; it is empty for a whole one."""

    name: str
    source: str
    task: str = ""
    seed: int | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why a metric has no curve, such as a NaN in it: that matters only to who asks for this metric."""
    finals: Mapping[str, float] = field(default_factory=dict)
    items: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    """The group of each item by id, where the data declare groups: items of one group count as one in error bars."""
    cost: Cost = Cost()
    gain: float | None = None
    """How much better than at its own start, on test."""
    lacks: str = ""
    began: float | None = None
    """When its first event was told, in seconds since 1970; None where that is not known."""
    version: str = ""
    commit: str = ""
    parameters: float | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)
    text: Mapping[str, str] = field(default_factory=dict)
    """The trained texts by part."""
    reference: Reference | None = None
    """What 0 and 1 stand for in its `SCORES`, where its own configuration says so."""
    lower: bool = False
    """Whether less of those is better by its own configuration."""
    repeat: int = 0
    """Which repetition of its seed it is."""

    @property
    def draw(self) -> tuple[int, int] | None:
        """What tells the runs of an arm on a task apart: the seed, and its repetition. None where that is not known."""
        return None if self.seed is None else (self.seed, self.repeat)

    @property
    def draw_words(self) -> str:
        return said_draw(self.draw) if self.draw is not None else self.name


@dataclass(frozen=True)
class Arm:
    """What is compared: runs that differ in nothing but seed and task. `notes` are remarks on how it was read."""

    name: str
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.task for run in self.runs))

    def on(self, task: str) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.task == task)

    def metrics(self) -> tuple[str, ...]:
        """The names of all curves, in the order they are met."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.curves))


def said_draw(draw: tuple[int, int]) -> str:
    """`seed 3`, or `seed 3, repeat 1`."""
    seed, repeat = draw
    return f"seed {seed}, repeat {repeat}" if repeat else f"seed {seed}"


Points = Sequence[tuple[float, float]]


def curves(points: Mapping[str, Points], where: str) -> tuple[dict[str, Curve], dict[str, str]]:
    """The curves that can be made of points by metric, and why the others can't. `where` is what complaints begin with."""
    made: dict[str, Curve] = {}
    faults: dict[str, str] = {}
    for metric, row in points.items():
        try:
            made[metric] = Curve(tuple(step for step, _ in row), tuple(value for _, value in row), f"{where}: {metric}")
        except BadData as error:
            faults[metric] = str(error)
    return made, faults


def picked(arms: Sequence[Arm], name: str, source: str) -> Arm:
    """The arm of a source that was asked for by name."""
    for arm in arms:
        if arm.name == name:
            return arm
    known = [arm.name for arm in arms]
    raise UsageError(f"{source} has no arm {name!r}{nearest(name, known)}; there are {', '.join(known)}")


def one_arm(arms: Sequence[Arm], name: str, source: str) -> Arm:
    """A source as a whole, under another name; it must have one arm."""
    if len(arms) != 1:
        raise UsageError(
            f"{source} has {len(arms)} arms ({', '.join(arm.name for arm in arms[:6])}); name one as {source}@{arms[0].name}"
        )
    return replace(arms[0], name=name)
