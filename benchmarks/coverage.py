"""Do the intervals hold what they say? Simulated where the truth is known.

    python benchmarks/coverage.py [--trials 2000] [--resamples 1000] [--only items|compare|means|looks]

First, paired differences of item scores (`stats.paired`), for scores of many shapes: how often the interval holds the true
mean, how often a verdict is false ("better" or "worse" where there is no difference; where there is one, how often it is
found, in brackets), and the interval's width beside Student's. Discrete scores are over-covered where few of them move: an
exact test has no smaller step. The last shapes are those that no test of their mean can hold without the falls in sight.

Then false findings of whole comparisons: independent groups of unlike size and spread, and tasks that share seeds. Then,
how often a 95 % interval of a mean holds the true one, and its width beside that of Student's interval (the median
over trials, and the mean, which a few absurdly wide ones spoil). `0..1` is a beta distribution that sits near its ends, as
success rates do. Then, how often a comparison of a thing with itself "finds" something when it is looked at as runs come in:
at 0.05 after every run, at planned looks with bounds that share the error out, and with the interval that holds at any time.
The bounds are for a normal statistic; here, as in use, t tests are held against their nominal levels.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from sharpen.stats import arms, looks, means, student
from sharpen.stats.paired import OPEN, mean_difference
from sharpen.testing.scores import BEYOND, Shape, clustered
from sharpen.testing.scores import SHAPES as SCORES

SIZES = (3, 5, 10, 15, 30)
ITEMS = (8, 12, 20, 40, 80, 120)
GROUPS = ((8, 5), (15, 4), (30, 4))
METHODS = ("t", "percentile", "bca", "studentised")
PLANS = ((5, 10, 15), (6, 12, 18, 24, 30))
MOST_RUNS = 50

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
SHAPES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda generator, size: generator.normal(size=size), 0.0),
    "lognormal": (lambda generator, size: generator.lognormal(size=size), math.exp(0.5)),
    "uniform": (lambda generator, size: generator.random(size), 0.5),
    "0..1": (lambda generator, size: generator.beta(0.6, 0.2, size), 0.75),
}
NULLS: dict[str, Draw] = {
    "normal": lambda generator, size: generator.normal(size=size),
    "lognormal": lambda generator, size: generator.lognormal(size=size) - generator.lognormal(size=size),
    "lognormal, one mean": lambda generator, size: generator.lognormal(size=size) - math.exp(0.5),
}


def item_row(shape: Shape, trials: int) -> str:
    """One row of the first table: a cell for each number of items."""
    cells = []
    for n in ITEMS:
        rows = shape.draw(np.random.Generator(np.random.PCG64(n)), (trials, n))
        found = [mean_difference(row) for row in rows]
        held = np.mean([one.low - 1e-12 <= shape.mean <= one.high + 1e-12 for one in found])
        said = np.mean([one.verdict != OPEN for one in found])
        plain = 2 * student.critical(0.95, n - 1) * rows.std(axis=1, ddof=1).mean() / math.sqrt(n)
        width = np.mean([one.high - one.low for one in found]) / plain
        claims = f"{100 * said:4.1f}" if shape.mean == 0.0 else f"({100 * said:3.0f})"
        cells.append(f"{100 * held:5.1f} {claims:>5s} {width:4.2f}")
    return f"{shape.name:32s} " + "   ".join(cells)


def group_row(groups: int, size: int, trials: int) -> str:
    """Items in groups that share half of their variance: counted by group, and as if independent."""
    rng = np.random.Generator(np.random.PCG64(groups))
    held = {"by group": 0, "as if independent": 0}
    for _ in range(trials):
        row, names = clustered(rng, groups, size, 0.5)
        held["by group"] += mean_difference(row, groups=names).verdict == OPEN
        held["as if independent"] += mean_difference(row).verdict == OPEN
    cells = "   ".join(f"{name} {100 * (1 - count / trials):4.1f}" for name, count in held.items())
    return f"{groups:3d} groups of about {size} items   false verdicts, %: {cells}"


def unpaired_row(sizes: tuple[int, int], ratio: float, trials: int) -> str:
    """Two groups with the same mean: the plain difference permuted, and what a comparison does."""
    rng = np.random.Generator(np.random.PCG64(sum(sizes)))
    raw = now = 0
    for _ in range(trials):
        new, old = rng.normal(0, ratio, sizes[0]), rng.normal(0, 1, sizes[1])
        pool, seen = np.concatenate([new, old]), abs(new.mean() - old.mean())
        order = rng.random((499, len(pool))).argpartition(sizes[0], axis=1)[:, : sizes[0]]
        sums = pool[order].sum(axis=1)
        far = np.abs(sums / sizes[0] - (pool.sum() - sums) / sizes[1]) >= seen - 1e-12
        raw += (far.sum() + 1) / 500 <= 0.05
        now += arms.unpaired_p(new.tolist(), old.tolist(), resamples=499) <= 0.05
    told = f"difference permuted {100 * raw / trials:4.1f}   as compared {100 * now / trials:4.1f}"
    return f"{sizes[0]:2d} against {sizes[1]:2d} runs, spreads {ratio:g} to 1      false, %: {told}"


def tasks_row(tasks: int, seeds: int, shared: float, trials: int) -> str:
    """Tasks whose runs share seeds: every pair of a task and a seed as independent, and a seed counted once."""
    rng = np.random.Generator(np.random.PCG64(tasks))
    apart = once = 0
    for _ in range(trials):
        own = rng.normal(size=(tasks, seeds))
        values = math.sqrt(shared) * rng.normal(size=seeds) + math.sqrt(1 - shared) * own
        error = math.sqrt((values.var(axis=1, ddof=1) / seeds).sum()) / tasks
        apart += abs(values.mean()) > student.critical(0.95, tasks * (seeds - 1)) * error
        once += mean_difference(values.mean(axis=0), span=math.inf).verdict != OPEN
    told = f"as independent {100 * apart / trials:4.1f}   a seed counted once {100 * once / trials:4.1f}"
    return f"{tasks} tasks, {seeds} seeds that share {shared:g} of variance   false, %: {told}"


def print_compare(trials: int) -> None:
    print("\ncomparisons of arms that do not differ")
    for sizes, ratio in (((4, 15), 4.0), ((15, 4), 4.0), ((6, 6), 4.0), ((8, 8), 1.0)):
        print(unpaired_row(sizes, ratio, trials), flush=True)
    for tasks, seeds, shared in ((3, 8, 0.0), (3, 8, 0.3), (3, 8, 0.9), (5, 10, 0.5), (5, 10, 1.0)):
        print(tasks_row(tasks, seeds, shared, trials), flush=True)


def coverage(shape: str, n: int, trials: int, resamples: int) -> str:
    """One row: of each method, the coverage and the width relative to Student's."""
    draw, truth = SHAPES[shape]
    samples = draw(np.random.Generator(np.random.PCG64(n)), (trials, n))
    chosen = means.interval(samples[0].tolist(), resamples=resamples).method
    cells, widths = {}, {}
    for method in METHODS:
        found = [
            means.interval(row, method=method, resamples=resamples, seed=k) for k, row in enumerate(samples.tolist())
        ]
        widths[method] = np.array([2 * estimate.half_width for estimate in found])
        held = np.mean([estimate.low <= truth <= estimate.high for estimate in found])
        shares = [float(f(widths[method]) / f(widths["t"])) for f in (np.median, np.mean)]
        cells[method] = f"{100 * held:5.1f} {shares[0]:5.2f} {shares[1]:5.2f}"
    row = "   ".join(cells[method] for method in (chosen, *METHODS))
    return f"{shape:10s} {n:3d}   {row}"


def false_findings(shape: str, trials: int) -> Iterator[str]:
    """Rows of the second table for one shape of differences."""
    samples = NULLS[shape](np.random.Generator(np.random.PCG64(1)), (trials, MOST_RUNS))
    counts = np.arange(1, MOST_RUNS + 1)
    middle = samples.cumsum(axis=1) / counts
    away = samples.cumsum(axis=1) ** 2 / counts
    spread = np.sqrt(((samples**2).cumsum(axis=1) - away) / np.maximum(counts - 1, 1))

    def erring(runs: list[int], factors: list[float]) -> float:
        """The share of trials that leave the interval of mean +- factor x spread at one of these numbers of runs."""
        places = np.array(runs) - 1
        beyond = np.abs(middle[:, places]) > np.array(factors) * spread[:, places]
        return float(100 * beyond.any(axis=1).mean())

    def plain(runs: list[int], levels: list[float]) -> float:
        return erring(runs, [student.critical(1 - p, n - 1) / math.sqrt(n) for n, p in zip(runs, levels, strict=True)])

    for first, last in ((3, 15), (6, 50)):
        runs = list(range(first, last + 1))
        yield f"{shape:20s} {f't at 0.05 after every run, {first} to {last}':44s} {plain(runs, [0.05] * len(runs)):5.1f}"
    for plan in PLANS:
        text = ", ".join(map(str, plan))
        yield f"{shape:20s} {f't at 0.05 at {text}':44s} {plain(list(plan), [0.05] * len(plan)):5.1f}"
        for spending in looks.SPENDING:
            levels = [look.level for look in looks.bounds(plan, spending=spending)]
            yield f"{shape:20s} {f'{spending} at {text}':44s} {plain(list(plan), levels):5.1f}"
    runs = list(range(looks.LEAST_RUNS, MOST_RUNS + 1))
    told = [looks.anytime(samples[0, :n].tolist()).half_width / samples[0, :n].std(ddof=1) for n in runs]
    yield f"{shape:20s} {f'any-time interval after every run, {runs[0]} to {runs[-1]}':44s} {erring(runs, told):5.1f}"


def print_items(trials: int) -> None:
    print("item scores, 95 %: coverage, false verdicts (found, where there is a difference), width beside Student's")
    print(f"{'items':32s} " + "   ".join(f"{n:^16d}" for n in ITEMS))
    for shape in (*SCORES, *BEYOND):
        print(item_row(shape, trials), flush=True)
    for groups, size in GROUPS:
        print(group_row(groups, size, trials), flush=True)


def print_means(trials: int, resamples: int) -> None:
    print("\ncoverage of 95 % intervals, %; width beside Student's: median, mean")
    print(" " * 17 + "   ".join(f"{name:^17s}" for name in ("auto", *METHODS)).rstrip())
    for shape in SHAPES:
        for n in SIZES:
            print(coverage(shape, n, trials, resamples), flush=True)


def print_looks(trials: int) -> None:
    print(f"\nfalse findings in {trials:,} comparisons of a thing with itself, %")
    for shape in NULLS:
        for row in false_findings(shape, trials):
            print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000, help="simulated data sets per row")
    parser.add_argument("--resamples", type=int, default=1000, help="of each bootstrap interval")
    parser.add_argument("--only", choices=["items", "compare", "means", "looks"], help="one table")
    options = parser.parse_args()
    tables: dict[str, Callable[[], None]] = {
        "items": lambda: print_items(options.trials),
        "compare": lambda: print_compare(options.trials),
        "means": lambda: print_means(options.trials, options.resamples),
        "looks": lambda: print_looks(10 * options.trials),
    }
    for name, show in tables.items():
        if options.only in (None, name):
            show()


if __name__ == "__main__":
    main()
