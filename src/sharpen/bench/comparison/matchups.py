"""Who meets whom: the arms of one source against its first or a named one, or several sources against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sharpen.bench.evidence.nouns import Arm, one_arm, picked
from sharpen.core.errors import UsageError


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
