"""What else differs between two arms: settings, texts, cost, single items, and what makes a comparison unfair."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from sharpen.bench.comparison.rows import means_by_item
from sharpen.bench.evidence.nouns import Cost, Run

_POINT = 0.01
_AMOUNTS = ("calls", "tokens", "money", "seconds")
_ABOUT_SAME = 1e-9
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class ArmCost:
    """The mean over runs; None where some run's is not known. `per_point` is the cost of 0.01 of gain on test over the own
    start; None where there is none."""

    arm: str
    mean: Cost
    gain: float | None
    per_point: Cost | None


@dataclass(frozen=True, slots=True)
class Flips:
    """The items of a task that came out differently: (item, old, new), the largest change first."""

    task: str
    better: tuple[tuple[str, float, float], ...]
    worse: tuple[tuple[str, float, float], ...]
    same: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is not the same in both arms, as JSON; a dash where an arm has not got it."""

    name: str
    old: str
    new: str


def cost(arm: str, runs: Sequence[Run]) -> ArmCost:
    mean = Cost(**{name: _mean([getattr(run.cost, name) for run in runs]) for name in _AMOUNTS})
    gain = _mean([run.gain for run in runs])
    per_point = None
    if gain is not None and gain >= _POINT:
        amounts = {name: getattr(mean, name) for name in _AMOUNTS}
        per_point = Cost(**{name: None if one is None else one * _POINT / gain for name, one in amounts.items()})
    return ArmCost(arm, mean, gain, per_point)


def flips(task: str, old: Sequence[Run], new: Sequence[Run]) -> Flips | None:
    """Which items got better and which worse; None where they are not known of both arms."""
    before, after = means_by_item(old), means_by_item(new)
    shared = [item for item in before if item in after]
    if not shared:
        return None
    moved = sorted(((item, before[item], after[item]) for item in shared), key=lambda one: -abs(one[2] - one[1]))
    better = tuple(one for one in moved if one[2] - one[1] > _ABOUT_SAME)
    worse = tuple(one for one in moved if one[1] - one[2] > _ABOUT_SAME)
    return Flips(task, better, worse, len(shared) - len(better) - len(worse))


def settings(old: Sequence[Run], new: Sequence[Run]) -> tuple[Setting, ...]:
    """The settings that differ, those that both arms have first."""
    names = dict.fromkeys(name for run in (*old, *new) for name in run.settings)
    found = []
    for name in names:
        first, second = _values(old, name), _values(new, name)
        if first != second:
            found.append(Setting(name, " | ".join(first) or NOTHING, " | ".join(second) or NOTHING))
    return tuple(sorted(found, key=lambda one: NOTHING in (one.old, one.new)))


def text(old_name: str, new_name: str, old: Sequence[Run], new: Sequence[Run]) -> str:
    """The unified difference of the trained texts of the first runs that can be set side by side."""
    for run in old:
        other = next((one for one in new if one.task == run.task and one.draw == run.draw and one.text), None)
        if other is None:
            other = next((one for one in new if one.task == run.task and one.text), None)
        if run.text and other is not None:
            names = f"{old_name}: {run.name}", f"{new_name}: {other.name}"
            parts = dict.fromkeys([*run.text, *other.text])
            return "\n".join(
                line
                for part in parts
                for line in _unified(run.text.get(part, ""), other.text.get(part, ""), names, part)
            )
    return ""


def _unified(old: str, new: str, names: tuple[str, str], part: str) -> Iterator[str]:
    first, second = (f"{name} {part}" for name in names)
    return difflib.unified_diff(old.splitlines(), new.splitlines(), first, second, lineterm="", n=1)


def warnings(old_name: str, new_name: str, old: Sequence[Run], new: Sequence[Run]) -> list[str]:
    """What else than the arms may be behind a difference."""
    found = []
    for what, of in (
        ("versions", lambda run: run.version),
        ("git commits", lambda run: run.commit),
        ("parameter counts", lambda run: "" if run.parameters is None else f"{run.parameters:,.0f}"),
    ):
        found += _unlike(what, of, (old_name, old), (new_name, new))
    for task in dict.fromkeys(run.task for run in old):
        splits = [{json.dumps(run.settings.get("splits")) for run in runs if run.task == task} for runs in (old, new)]
        if splits[0] != splits[1] and all(splits):
            found.append(f"the data of {task} is not the same in both arms: they were scored on other items")
    return found


def _unlike(what: str, of: Callable[[Run], str], *arms: tuple[str, Sequence[Run]]) -> list[str]:
    kinds = [sorted({of(run) for run in runs} - {""}) for _, runs in arms]
    if not all(kinds) or (kinds[0] == kinds[1] and len(kinds[0]) == 1):
        return []
    told = "; ".join(f"{name}: {', '.join(kind[:3])}" for (name, _), kind in zip(arms, kinds, strict=True))
    return [f"the {what} are not the same ({told})"]


def _values(runs: Sequence[Run], name: str) -> list[str]:
    there = [run.settings[name] for run in runs if name in run.settings]
    return sorted({json.dumps(value, ensure_ascii=False, sort_keys=True) for value in there})


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
