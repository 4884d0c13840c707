"""How long the bootstraps of many runs on many tasks take.

    python benchmarks/stats_speed.py [--resamples 50000]

Three arms, 26 tasks, 15 runs of each: IQM, median, mean and gap of every arm, the probability of improvement of every pair
of arms, and a profile of 81 thresholds of every arm, each with intervals. CPU seconds of one process on one thread (numpy's
linear algebra is told to use no more), which other work on the machine hardly changes; the best of three.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from itertools import combinations

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from sharpen.stats import arms, exact, means
from sharpen.stats.aggregates import Scores, aggregate
from sharpen.stats.profiles import improvement, profile

ARMS, TASKS, RUNS = 3, 26, 15
THRESHOLDS = np.linspace(0.0, 8.0, 81).tolist()
REPEATS = 3


def seconds(work: Callable[[], object]) -> float:
    """The CPU seconds of the fastest of a few repetitions."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--resamples", type=int, default=50_000)
    count = parser.parse_args().resamples
    generator = np.random.Generator(np.random.PCG64(1))
    table = generator.lognormal(size=(ARMS, TASKS, RUNS))
    scores = [Scores({f"task{k}": list(row) for k, row in enumerate(arm)}, f"arm{a}") for a, arm in enumerate(table)]
    pairs = list(combinations(scores, 2))
    new, old = generator.normal(0.3, 1, 15).tolist(), generator.normal(0, 1, 15).tolist()
    differences = [a - b for a, b in zip(new, old, strict=True)]
    rows: dict[str, Callable[[], object]] = {
        f"IQM, median, mean, gap of {ARMS} arms": lambda: [aggregate(arm, resamples=count) for arm in scores],
        f"probability of improvement, {len(pairs)} pairs": lambda: [improvement(*p, resamples=count) for p in pairs],
        f"profiles of {len(THRESHOLDS)} thresholds, {ARMS} arms": lambda: [
            profile(arm, THRESHOLDS, resamples=count) for arm in scores
        ],
        "runs and tasks drawn, 3 arms": lambda: [aggregate(arm, resamples=count, tasks_too=True) for arm in scores],
        "one mean of 15 runs, 10,000 resamples": lambda: means.interval(new),
        "15 pairs, every sign flip": lambda: exact.sign_flip(differences),
        "15 pairs, everything": lambda: arms.paired(new, old),
    }
    print(f"{ARMS} arms x {TASKS} tasks x {RUNS} runs, {count:,} resamples, one thread: CPU seconds")
    for name, work in rows.items():
        print(f"{name:42s} {seconds(work):7.3f}", flush=True)


if __name__ == "__main__":
    main()
