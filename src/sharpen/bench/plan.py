"""A comparison fixed before there are results: what counts, who is compared, how often somebody looks, how it is judged.

A plan is strict YAML. Locking it writes its digest, the time and the git revision beside it; from then on the plan must stay
as it is. What was done is held against it by `comparison/planned.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Literal

import yaml
from pydantic import Field, ValidationError, model_validator

import sharpen
from sharpen.bench import layout, strict_yaml
from sharpen.bench.config import Strict, validated
from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError
from sharpen.files import write_json
from sharpen.stats.curves import Window
from sharpen.stats.errors import BadData
from sharpen.stats.looks import Look, bounds

SCHEMA_VERSION = 1
ALL = "all"
_ON = " on "


class Plan(Strict):
    """What a comparison will be. Arms and tasks are named as `sharpen compare` names them."""

    metric: str = Field(description="The curve or final score that counts, as for --metric.")
    summary: Literal["test", "auc", "mean", "last", "final", "best", "slope", "steps_to"]
    window: str = "all"
    points: int = Field(5, ge=1)
    reach: float | None = None
    lower: bool = False
    baseline: str
    arms: list[str] = Field(min_length=1)
    tasks: list[str] = Field([""], min_length=1, description="Left out where runs have no task's name.")
    pairs: str = "auto"
    over: Literal["auto", "seeds", "items"] = "auto"
    margin: float | None = Field(None, gt=0)
    normalise: str | None = Field(None, description="A table of references or LOW:HIGH, as for --normalise.")
    alpha: float = Field(0.05, gt=0, lt=1)
    family: str | list[str] = ALL
    seeds: int = Field(ge=2)
    looks: list[int] = Field(default_factory=list)
    spending: Literal["pocock", "obrien-fleming"] = "obrien-fleming"

    @model_validator(mode="after")
    def _fits_together(self) -> Plan:
        if self.baseline in self.arms:
            raise ValueError(f"the baseline {self.baseline!r} is among the arms that are compared with it")
        for name in ("arms", "tasks", "family"):
            given = getattr(self, name)
            twice = next((one for one in given if given.count(one) > 1), None) if isinstance(given, list) else None
            if twice is not None:
                raise ValueError(f"{name}: {twice!r} is there twice")
        if self.looks and (self.looks != sorted(set(self.looks)) or self.looks[0] < 2 or self.looks[-1] != self.seeds):
            raise ValueError(f"looks must be rising numbers of seeds from 2 on, the last one {self.seeds} (seeds)")
        if self.summary == "steps_to" and self.reach is None:
            raise ValueError("summary steps_to needs a value to reach")
        if isinstance(self.family, list):
            self._check_family(self.family)
        elif self.family != ALL:
            raise ValueError(f"family must be {ALL!r} or a list of tests, got {self.family!r}")
        try:
            Window.parse(self.window)
        except BadData as error:
            raise ValueError(str(error)) from None
        return self

    def _check_family(self, family: list[str]) -> None:
        if not family:
            raise ValueError(f"family: name at least one test, or {ALL!r}")
        for entry in family:
            arm, _, task = entry.partition(_ON)
            if arm not in self.arms:
                raise ValueError(f"family: {entry!r} is no ARM or ARM on TASK; the arms are {', '.join(self.arms)}")
            if task and task not in self.tasks:
                raise ValueError(f"family: {entry!r} names a task that the plan does not: {', '.join(self.tasks)}")

    @property
    def digest(self) -> str:
        told = self.model_dump(mode="json")
        # Plans that were locked before this key existed keep their digest.
        return digest({name: value for name, value in told.items() if name != "normalise" or value is not None})

    @property
    def planned_looks(self) -> list[int]:
        return self.looks or [self.seeds]

    def bars(self, alpha: float) -> list[Look]:
        """The level each look has to reach, where all of them together may err with probability `alpha`."""
        if not self.looks or len(self.looks) == 1:
            return [Look(self.seeds, NormalDist().inv_cdf(1 - alpha / 2), alpha, alpha)]
        return bounds(self.looks, alpha, self.spending)

    @property
    def listed(self) -> list[str] | None:
        """The tests of the family by name; None where it has all there are."""
        return self.family if isinstance(self.family, list) else None

    def decides(self, arm: str) -> bool:
        """Whether the verdict over all tasks on an arm belongs to the family."""
        if arm not in self.arms:
            return False
        if self.listed is None or arm in self.listed:
            return True
        return self.one_task and f"{arm}{_ON}{self.tasks[0]}" in self.listed

    def covers(self, arm: str, task: str) -> bool:
        """Whether an arm's row on one task belongs to the family."""
        if arm not in self.arms or task not in self.tasks:
            return False
        if self.listed is None or f"{arm}{_ON}{task}" in self.listed:
            return True
        return arm in self.listed and self.one_task

    @property
    def one_task(self) -> bool:
        """Whether an arm's verdict and its only row are one test."""
        return len(self.tasks) == 1

    @property
    def tests(self) -> int:
        """How many verdicts are adjusted together."""
        return len(self.arms if self.listed is None else self.listed)

    @property
    def row_tests(self) -> int:
        """How many rows are adjusted together."""
        return len(self.arms) * len(self.tasks) if self.listed is None else len(self.listed)


@dataclass(frozen=True)
class Lock:
    """A plan as it was when it was fixed."""

    digest: str
    at: float
    revision: str | None
    plan: dict[str, Json]


def load(path: Path) -> Plan:
    """A plan from its file, with errors a person can act on."""
    try:
        content = strict_yaml.parse(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise UsageError(f"no plan {path}; docs/comparing.md shows one") from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no plan; a plan is a mapping of keys to values")
    found = validated(Plan, content, str(path))
    assert isinstance(found, Plan)
    return found


def lock_of(path: Path) -> Path:
    """Where the lock of a plan is."""
    return path.with_suffix(".lock.json")


def locked(path: Path) -> Lock | None:
    """The lock beside a plan, where there is one."""
    place = lock_of(path)
    if not place.exists():
        return None
    try:
        found = layout.read_json(place)
        lock = Lock(found["digest"], float(found["at"]), found["git"]["revision"], found["plan"])
        if Plan.model_validate(lock.plan).digest != lock.digest:
            raise ValueError("its digest is not that of the plan it holds")
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise UsageError(
            f"{place} is damaged ({type(error).__name__}); it is written by `sharpen plan {path}`"
        ) from None
    return lock


def fix(path: Path) -> tuple[Plan, Lock, bool]:
    """Check a plan and lock it; the last value says whether that was done just now. A plan that was locked and is another
    one now is refused: what was promised can't be promised differently afterwards."""
    plan, before = load(path), locked(path)
    if before is not None:
        if before.digest != plan.digest:
            changed = ", ".join(differing(plan, before))
            raise UsageError(
                f"{path} was locked {when(before.at)} and has been changed since ({changed}); put it back, or give the "
                "new plan a name of its own"
            )
        return plan, before, False
    git = layout.revision()
    lock = Lock(plan.digest, time.time(), git["revision"], plan.model_dump(mode="json"))
    about = {"schema_version": SCHEMA_VERSION, "digest": lock.digest, "at": lock.at, "time": when(lock.at)}
    write_json(lock_of(path), {**about, "git": git, "sharpen": sharpen.__version__, "plan": lock.plan})
    return plan, lock, True


def differing(plan: Plan, lock: Lock) -> list[str]:
    """What is not as it was locked, as `margin 0.02 then, 0.05 now`."""
    now = plan.model_dump(mode="json")
    return [f"{name} {lock.plan.get(name)} then, {now[name]} now" for name in now if now[name] != lock.plan.get(name)]


def looks_taken(path: Path) -> list[int]:
    """At how many seeds results were held against this plan before."""
    place = path.with_suffix(".looks.json")
    try:
        return [int(one["seeds"]) for one in layout.read_json(place)] if place.exists() else []
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{place} is damaged; it holds the looks taken by `sharpen compare --plan {path}`") from None


def note_look(path: Path, seeds: int) -> None:
    """Remember that somebody looked. Looking again at as many seeds tells nothing new."""
    if seeds in looks_taken(path):
        return
    place = path.with_suffix(".looks.json")
    before = layout.read_json(place) if place.exists() else []
    write_json(place, [*before, {"seeds": seeds, "time": when(time.time())}])


def when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
