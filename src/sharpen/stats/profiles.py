"""Arms against each other over many tasks: who tends to win, at which scores, and in which order they stand.

`improvement` is the probability that a run of one arm beats a run of the other on a task, ties as half, averaged over
tasks. `profile` is the share of runs above each threshold, averaged over tasks. `ranks` is how often each arm stands
first, second and so on by its mean on a task. Intervals are those of the stratified bootstrap: how often each run was
drawn is counted once and multiplied with what all pairs or thresholds say, which makes fifty thousand resamples cheap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats.aggregates import RESAMPLES, Scores, task_means
from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate
from sharpen.stats.resampling import percentile, tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sharpen.stats.resampling import Floats

_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class Profile:
    """The share of runs above each threshold, with a band."""

    thresholds: tuple[float, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def improvement(
    new: Scores, old: Scores, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """P(new > old) with its interval."""
    same_tasks([new, old])
    pairs = [_wins(x, y) for x, y in zip(new.rows(), old.rows(), strict=True)]
    seen = float(np.mean([wins.mean() for wins in pairs]))
    tables = [(wins / (wins.size * len(pairs))).astype(np.float32) for wins in pairs]
    found = []
    for ours, theirs in zip(_times(new, resamples, seed), _times(old, resamples, seed + 1), strict=True):
        met = np.concatenate(
            [part @ table for part, table in zip(_by_task(ours, new), tables, strict=True)], axis=1, dtype=np.float32
        )
        found.append(np.einsum("ij,ij->i", met, theirs))
    low, high = percentile(np.concatenate(found).astype(np.float64), level)
    return Estimate(seen, low, high, len(new.flat) + len(old.flat), "stratified bootstrap", level)


def profile(
    scores: Scores, thresholds: Sequence[float], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Profile:
    """The performance profile over `thresholds`."""
    levels = np.asarray(thresholds, dtype=np.float64)
    weights = np.repeat(1.0 / (scores.sizes * len(scores.tasks)), scores.sizes)
    exact = (scores.flat[:, None] > levels[None, :]) * weights[:, None]
    table = exact.astype(np.float32)
    found = np.concatenate([times @ table for times in _times(scores, resamples, seed)])
    shares = np.minimum(exact.sum(axis=0), 1.0)
    # Single precision is enough for the ends of a band, but may overstep 1 in its last digit.
    low, high = np.quantile(found, tails(level), axis=0, overwrite_input=True).clip(0.0, 1.0)
    return Profile(tuple(levels.tolist()), tuple(shares.tolist()), tuple(low.tolist()), tuple(high.tolist()))


def ranks(arms: Sequence[Scores], *, resamples: int = 2_000, seed: int = 0) -> dict[str, tuple[float, ...]]:
    """For each arm how often it stands first, second, ... by its mean on a task, over tasks and resamples."""
    same_tasks(arms)
    means = [
        np.concatenate([task_means(block, sizes) for block, sizes in arm.draws(resamples, seed + number)])
        for number, arm in enumerate(arms)
    ]
    table = np.stack(means)
    return {arm.name: _places(table, number) for number, arm in enumerate(arms)}


def _places(table: Floats, number: int) -> tuple[float, ...]:
    """How often an arm takes each place. Arms that tie share the places they take together, so order does not matter."""
    better = (table > table[number]).sum(axis=0)
    equal = (table == table[number]).sum(axis=0)
    return tuple(float((((better <= place) & (place < better + equal)) / equal).mean()) for place in range(len(table)))


def same_tasks(arms: Sequence[Scores]) -> None:
    """Complain unless all arms have scores on the same tasks."""
    first = arms[0]
    for arm in arms[1:]:
        missing = sorted(set(first.tasks) ^ set(arm.tasks))
        if missing:
            where = arm.name if missing[0] in first.tasks else first.name
            raise BadData(f"{where} has no scores on {missing[0]}: arms can be compared on the tasks all of them ran")
        if arm.tasks != first.tasks:
            raise BadData(f"{arm.name} has its tasks in another order than {first.name}")


def scores_of(by_arm: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Scores]:
    """Scores of several arms, their tasks in one order."""
    tasks = sorted({task for by_task in by_arm.values() for task in by_task})
    for arm, by_task in by_arm.items():
        missing = [task for task in tasks if task not in by_task]
        if missing:
            raise BadData(f"{arm} has no scores on {missing[0]}: arms can be compared on the tasks all of them ran")
    return [Scores({task: by_task[task] for task in tasks}, arm) for arm, by_task in by_arm.items()]


def _wins(x: Floats, y: Floats) -> Floats:
    result: Floats = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
    return result


def _times(scores: Scores, resamples: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """How often each run was drawn, a resample a row, in blocks."""
    generator = np.random.Generator(np.random.PCG64(seed))
    width = len(scores.flat)
    size = np.repeat(scores.sizes, scores.sizes)
    start = np.repeat(scores.starts, scores.sizes).astype(np.int64)
    for begin in range(0, resamples, _ROWS):
        rows = min(_ROWS, resamples - begin)
        places = (generator.random((rows, width), dtype=np.float32) * size).astype(np.int64)
        np.minimum(places, size - 1, out=places)
        places += start
        places += (np.arange(rows, dtype=np.int64) * width)[:, None]
        yield np.bincount(places.ravel(), minlength=rows * width).reshape(rows, width).astype(np.float32)


def _by_task(times: NDArray[np.float32], scores: Scores) -> list[NDArray[np.float32]]:
    return np.split(times, scores.starts[1:], axis=1)
