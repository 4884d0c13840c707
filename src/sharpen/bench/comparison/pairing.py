"""Who is paired with whom: runs of the same seed, pairs that were named, or nobody.

Pairing by seed needs every seed once in each arm; where one seed is repeated, every repetition of it. Runs whose seed the
other arm has not got are left out and told.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.bench.evidence.nouns import Run
from sharpen.core.errors import UsageError, nearest

AUTO, SEED, NONE = "auto", "seed", "none"
_LEAST = 2

Named = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Pairing:
    """How runs are put side by side: `auto`, `seed`, `none`, or pairs of names."""

    how: str = AUTO
    named: Named = ()


BY_SEED = Pairing()
"""By seed where both arms have the same ones, else not at all."""


@dataclass(frozen=True)
class Paired:
    """Runs side by side, in the same order. `together` is false for two independent groups."""

    old: tuple[Run, ...]
    new: tuple[Run, ...]
    together: bool
    notes: tuple[str, ...] = ()


def parse(text: str) -> Pairing:
    """`auto`, `seed`, `none`, `a1=b1,a2=b2`, or a CSV file with two columns of names."""
    if text in (AUTO, SEED, NONE):
        return Pairing(text)
    if Path(text).is_file():
        with Path(text).open(encoding="utf-8", newline="") as file:
            rows = [tuple(cell.strip() for cell in row) for row in csv.reader(file) if row]
        rows = [row for row in rows if row not in (("old", "new"), ("control", "candidate"), ("a", "b"))]
    else:
        rows = [tuple(cell.strip() for cell in pair.split("=")) for pair in text.split(",")]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or not all(row):
            raise UsageError(
                f"pair {number} of {text!r} is {'='.join(row)!r}; write seed, none, run1=run2,run3=run4, "
                "or the name of a CSV file with two columns"
            )
    return Pairing("named", tuple((row[0], row[1]) for row in rows))


def paired(old: Sequence[Run], new: Sequence[Run], pairing: Pairing, names: tuple[str, str], where: str) -> Paired:
    """The runs of two arms on one task side by side."""
    if pairing.how == "named":
        return _by_name(old, new, pairing.named, where)
    if pairing.how == NONE:
        return Paired(tuple(old), tuple(new), False)
    seeds = [{run.draw for run in arm if run.draw is not None} for arm in (old, new)]
    shared = sorted(seeds[0] & seeds[1])
    whole = all(run.draw is not None for run in (*old, *new))
    if pairing.how == SEED and not (whole and shared):
        why = "some runs have no seed" if not whole else f"{names[0]} and {names[1]} have no seed in common"
        raise UsageError(f"can't pair by seed{where}: {why}; --pairs none compares independent groups")
    if whole:
        _once_each(old, names[0], where)
        _once_each(new, names[1], where)
    if not whole or len(shared) < min(_LEAST, len(old), len(new)) or not shared:
        many = f"{len(shared) or 'no'} {'seed' if len(shared) == 1 else 'seeds'}"
        why = "not all seeds are known" if not whole else f"they have {many} in common"
        note = (f"not paired{where}: {why}",) if len(old) > 1 or len(new) > 1 else ()
        return Paired(tuple(old), tuple(new), False, note)
    notes = []
    for name, own in zip(names, seeds, strict=True):
        alone = sorted(own - set(shared))
        if alone:
            notes.append(f"the seeds are not the same{where}: {_listed(alone)} only in {name}, left out")
    if len(shared) > 1 and len({seed for seed, _ in shared}) == 1:
        notes.append(
            f"all runs{where} are repetitions of seed {shared[0][0]}: what is shown holds for that seed, and says nothing "
            "of others"
        )
    first, second = ({run.draw: run for run in arm} for arm in (old, new))
    return Paired(tuple(first[s] for s in shared), tuple(second[s] for s in shared), True, tuple(notes))


def _by_name(old: Sequence[Run], new: Sequence[Run], named: Named, where: str) -> Paired:
    first, second = ({run.name: run for run in arm} for arm in (old, new))
    pairs = []
    for one, other in named:
        for name, known in ((one, first), (other, second)):
            if name not in known:
                raise UsageError(
                    f"no run {name!r}{where}{nearest(name, list(known))}; there are {', '.join(list(known)[:8])}"
                )
        pairs.append((first[one], second[other]))
    for place in (0, 1):
        twice = [pair[place] for pair in named if [row[place] for row in named].count(pair[place]) > 1]
        if twice:
            raise UsageError(f"the run {twice[0]!r} is in two pairs; a run counts once")
    return Paired(tuple(one for one, _ in pairs), tuple(other for _, other in pairs), True)


def _once_each(runs: Sequence[Run], name: str, where: str) -> None:
    seen: dict[tuple[int, int] | None, Run] = {}
    for run in runs:
        if run.draw in seen:
            raise UsageError(
                f"{name} has the {run.draw_words} twice{where}: {seen[run.draw].name} and {run.name}; name pairs with "
                "--pairs, or compare independent groups with --pairs none"
            )
        seen[run.draw] = run


def _listed(seeds: Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{seed}, repeat {repeat}" if repeat else str(seed) for seed, repeat in seeds[:8])
    return shown if len(seeds) <= 8 else f"{shown} and {len(seeds) - 8} more"
