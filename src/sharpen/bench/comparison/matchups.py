"""Who meets whom: the arms of one source against its first or a named one, or several sources against each other; and who
has nothing to show, and is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sharpen.bench.comparison.measure import Measure, looked_over
from sharpen.bench.evidence.nouns import Arm, one_arm, picked
from sharpen.core.errors import UsageError

_MOST_REASONS = 2


def matchups(sources: Sequence[tuple[str, Sequence[Arm]]], baseline: str | None) -> list[tuple[Arm, Arm]]:
    """Pairs of (old, new) arms. Each source is its name as given and its arms."""
    given = [name.rstrip("/") for name, _ in sources]
    twice = next((name for name in given if given.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} was given twice; it is no better than itself")
    if len(sources) == 1:
        name, arms = sources[0]
        if len(arms) < 2:
            raise UsageError(f"{name} has one arm, {arms[0].name}; name a second source to compare it with")
        return _against(arms, baseline, name)
    if len(sources) == 2 and all(len(arms) > 1 for _, arms in sources):
        if baseline is not None:
            raise UsageError("--baseline chooses among the arms of one source, or among sources with one arm each")
        return _by_name(sources)
    each = [one_arm(arms, _label(name, arms), name) for name, arms in sources]
    return _against(_told_apart(each, [name for name, _ in sources]), baseline, "what was given")


def able(met: Sequence[tuple[Arm, Arm]], measure: Measure) -> tuple[list[tuple[Arm, Arm]], list[str]]:
    """The pairs whose arms have a run that can be used, and who was left out for want of one. Where that is the arm all
    others meet, the next one takes its place."""
    arms = list({id(arm): arm for pair in met for arm in pair}.values())
    why = _unable(arms, measure)
    if not why:
        return list(met), []
    left = [arm for arm in arms if id(arm) not in why]
    notes = list(dict.fromkeys(f"{arm.name} is left out: {why[id(arm)]}" for arm in arms if id(arm) in why))
    if len(left) < 2:
        who = f"only {left[0].name} is" if left else "none is"
        raise UsageError(f"it takes two arms to compare, and {who} left. {'. '.join(notes)}")
    first = met[0][0]
    if all(old is first for old, _ in met):
        if id(first) in why:
            first = left[0]
            notes.append(f"the others are compared with {first.name} instead")
        return [(first, arm) for arm in left if arm is not first], notes
    kept = [pair for pair in met if not any(id(arm) in why for arm in pair)]
    if not kept:
        raise UsageError(f"no two arms that belong together have runs to compare. {'. '.join(notes)}")
    return kept, notes


def _unable(arms: Sequence[Arm], measure: Measure) -> dict[int, str]:
    """Why an arm has no run with a number to give, by its identity: two arms may have one name and different tasks."""
    fit: set[int] = set()
    reasons: dict[int, dict[str, list[str]]] = {id(arm): {} for arm in arms}
    for task in dict.fromkeys(task for arm in arms for task in arm.tasks):
        pairs = [(arm, run) for arm in arms for run in arm.on(task)]
        for (arm, run), (_, good, why) in zip(pairs, looked_over([run for _, run in pairs], measure), strict=True):
            fit |= {id(arm)} if good else set()
            reasons[id(arm)].setdefault(why, []).append(run.name)
    return {id(arm): _said(reasons[id(arm)]) for arm in arms if id(arm) not in fit}


def _said(reasons: Mapping[str, Sequence[str]]) -> str:
    told = [f"{runs[0]}{f' and {len(runs) - 1} more' if len(runs) > 1 else ''}: {why}" for why, runs in reasons.items()]
    more = f"; and {len(told) - _MOST_REASONS} other reasons" if len(told) > _MOST_REASONS else ""
    return f"none of its runs can be used ({'; '.join(told[:_MOST_REASONS])}{more})"


def _against(arms: Sequence[Arm], baseline: str | None, source: str) -> list[tuple[Arm, Arm]]:
    first = arms[0] if baseline is None else picked(arms, baseline, source)
    return [(first, arm) for arm in arms if arm is not first]


def _by_name(sources: Sequence[tuple[str, Sequence[Arm]]]) -> list[tuple[Arm, Arm]]:
    (first, old), (second, new) = sources
    there = {arm.name: arm for arm in new}
    shared = [(arm, there[arm.name]) for arm in old if arm.name in there]
    if not shared:
        raise UsageError(
            f"{first} and {second} have several arms each and none of the same name; name one of each, as "
            f"{first}@{old[0].name} {second}@{new[0].name}"
        )
    one, other = (Path(name).name for name in (first, second))
    return [(replace(a, name=f"{one}@{a.name}"), replace(b, name=f"{other}@{b.name}")) for a, b in shared]


def _label(name: str, arms: Sequence[Arm]) -> str:
    """A source with one arm is called after that where it was picked or read from a log, else after itself."""
    if name == "latest":
        return Path(arms[0].runs[0].source).parent.parent.name
    if "@" in name or "checkpoints" in Path(name).parts:
        return arms[0].name
    return Path(name).stem if Path(name).suffix in (".csv", ".eval", ".json") else Path(name).name


def _told_apart(arms: Sequence[Arm], sources: Sequence[str]) -> list[Arm]:
    names = [arm.name for arm in arms]
    if len(set(names)) == len(names):
        return list(arms)
    return [replace(arm, name=source) for arm, source in zip(arms, sources, strict=True)]
