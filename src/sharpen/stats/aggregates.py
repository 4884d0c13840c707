"""Scores of several runs on several tasks as one number, with the interval of the stratified bootstrap.

`iqm` is the mean of the middle half of all scores pooled, `mean` that of the task means, `median` the median over task
means, `gap` how far scores below 1 fall short of it on average (less is better); `run_median` is the median of all scores
pooled, for one task, where the median over task means is the mean. Runs are drawn again within each task,
independently, as they were made; with `tasks_too` the tasks are drawn as well, which asks about tasks nobody has run
and gives a much wider answer. All statistics of one arm come from the same draws. Tasks may have different numbers of
runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpen.stats.errors import BadData
from sharpen.stats.means import Estimate
from sharpen.stats.resampling import numbers, percentile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sharpen.stats.resampling import Floats

RESAMPLES = 50_000
STATISTICS = ("iqm", "median", "mean", "gap")
KNOWN = (*STATISTICS, "run_median")
_CHUNK = 1_000_000
_TRIM = 0.25
_GOAL = 1.0


class Scores:
    """One arm's scores, by task. Kept as one row, task after task."""

    def __init__(self, by_task: Mapping[str, Sequence[float]], name: str = "the arm") -> None:
        if not by_task:
            raise BadData(f"{name} has no scores")
        self.name = name
        self.tasks = tuple(by_task)
        rows = [numbers(values, 1, f"runs of {name} on {task}") for task, values in by_task.items()]
        self.sizes = np.array([len(row) for row in rows])
        self.flat: Floats = np.concatenate(rows)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def rows(self) -> list[Floats]:
        """The scores of each task."""
        return np.split(self.flat, self.starts[1:])

    def draws(
        self, resamples: int, seed: int, *, tasks_too: bool = False
    ) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """Blocks of resampled scores, a resample a row, and the sizes of the tasks within a row."""
        generator = np.random.Generator(np.random.PCG64(seed))
        rows = max(1, _CHUNK // len(self.flat))
        even = len(set(self.sizes.tolist())) == 1
        for start in range(0, resamples, rows):
            count = min(rows, resamples - start)
            if tasks_too:
                yield self._with_tasks(generator, count)
            elif even:
                size = int(self.sizes[0])
                kind = np.uint8 if size < 256 else np.int64
                places = generator.integers(0, size, size=(count, len(self.tasks), size), dtype=kind)
                yield self.flat[(places + self.starts[None, :, None]).reshape(count, -1)], self.sizes
            else:
                parts = [row[generator.integers(0, len(row), size=(count, len(row)))] for row in self.rows()]
                yield np.concatenate(parts, axis=1), self.sizes

    def _with_tasks(self, generator: np.random.Generator, count: int) -> tuple[Floats, NDArray[np.int64]]:
        if len(set(self.sizes.tolist())) > 1:
            raise BadData(f"{self.name}: drawing tasks as well needs the same number of runs on every task")
        size, tasks = int(self.sizes[0]), len(self.tasks)
        chosen = generator.integers(0, tasks, size=(count, tasks))
        places = generator.integers(0, size, size=(count, tasks, size))
        return self.flat[(places + self.starts[chosen][:, :, None]).reshape(count, -1)], self.sizes


def aggregate(
    scores: Scores,
    statistics: Sequence[str] = STATISTICS,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    tasks_too: bool = False,
) -> dict[str, Estimate]:
    """Each statistic with its percentile interval."""
    unknown = [name for name in statistics if name not in KNOWN]
    if unknown:
        raise BadData(f"no statistic {unknown[0]!r}; there are {', '.join(KNOWN)}")
    seen = {name: values[0] for name, values in _statistics(scores.flat[None, :], scores.sizes, statistics).items()}
    found: dict[str, list[Floats]] = {name: [] for name in statistics}
    for block, sizes in scores.draws(resamples, seed, tasks_too=tasks_too):
        for name, values in _statistics(block, sizes, statistics).items():
            found[name].append(values)
    method = "bootstrap of runs and tasks" if tasks_too else "stratified bootstrap"
    return {
        name: Estimate(
            float(seen[name]), *percentile(np.concatenate(found[name]), level), len(scores.flat), method, level
        )
        for name in statistics
    }


def task_means(block: Floats, sizes: NDArray[np.int64]) -> Floats:
    """The mean of each task in each row."""
    if (sizes == sizes[0]).all():
        result: Floats = block.reshape(len(block), len(sizes), -1).mean(axis=2)
        return result
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sums: Floats = np.add.reduceat(block, starts, axis=1)
    return sums / sizes


def _statistics(block: Floats, sizes: NDArray[np.int64], names: Sequence[str]) -> dict[str, Floats]:
    result: dict[str, Floats] = {}
    if "mean" in names or "median" in names:
        means = task_means(block, sizes)
        result["mean"], result["median"] = means.mean(axis=1), np.median(means, axis=1)
    if "gap" in names:
        result["gap"] = _GOAL - task_means(np.minimum(block, _GOAL), sizes).mean(axis=1)
    if "run_median" in names:
        result["run_median"] = np.median(block, axis=1)
    if "iqm" in names:
        cut = int(_TRIM * block.shape[1])
        ordered = np.partition(block, (cut, block.shape[1] - cut - 1), axis=1) if cut else block
        result["iqm"] = ordered[:, cut : block.shape[1] - cut].mean(axis=1)
    return {name: result[name] for name in names}
