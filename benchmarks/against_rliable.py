"""The aggregates beside those of rliable, on the same scores.

    python benchmarks/against_rliable.py [--resamples 2000] [--data-sets 3]

Random scores of two arms on several tasks: IQM, median, mean and gap with their intervals, the probability of improvement,
and a profile. The values must agree to rounding. The ends of the intervals come from different draws; they must agree within
what two bootstraps of this size differ by, told here as a share of the interval's width. It exits with 1 where they do not.

rliable needs an environment of its own, with this program in it too:

    python3 -m venv /tmp/rliable && /tmp/rliable/bin/pip install rliable 'pandas<3' -e .
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from sharpen.stats.aggregates import STATISTICS, Scores, aggregate
from sharpen.stats.profiles import improvement, profile

try:
    from rliable import library, metrics
except ImportError as problem:
    sys.exit(
        f"rliable can't be imported ({problem}). It needs an environment of its own:\n"
        "  python3 -m venv /tmp/rliable && /tmp/rliable/bin/pip install rliable 'pandas<3' -e ."
    )

SHAPES = ((10, 8), (5, 26), (15, 4))
"""Runs and tasks."""
THRESHOLDS = np.linspace(0.0, 3.0, 13)
ROUNDING = 1e-9
WITHIN = 0.08
"""Of the width. With 2,000 draws an end of a 95 % interval is off by 2 % of it (one standard error); two by 3."""

Row = tuple[str, float, float, tuple[float, float], tuple[float, float]]


def compare(runs: int, tasks: int, seed: int, resamples: int) -> Iterator[Row]:
    """What is compared, our value and theirs, our interval and theirs."""
    generator = np.random.Generator(np.random.PCG64(seed))
    one, other = (generator.lognormal(mean, 0.6, size=(runs, tasks)) for mean in (0.1, 0.0))
    new, old = (Scores({f"task{k}": row for k, row in enumerate(t.T.tolist())}) for t in (one, other))
    np.random.seed(seed)  # The library draws from the global generator, whatever it is given.

    ours = aggregate(new, resamples=resamples, seed=seed)
    theirs, ends = library.get_interval_estimates(
        {"x": one},
        lambda x: np.array(
            [
                metrics.aggregate_iqm(x),
                metrics.aggregate_median(x),
                metrics.aggregate_mean(x),
                metrics.aggregate_optimality_gap(x),
            ]
        ),
        reps=resamples,
    )
    for place, name in enumerate(STATISTICS):
        estimate = ours[name]
        yield name, estimate.value, theirs["x"][place], (estimate.low, estimate.high), tuple(ends["x"][:, place])

    # The Mann-Whitney test it makes of every task in every draw is slow, so there are fewer draws.
    fewer = resamples // 4
    wins = improvement(new, old, resamples=fewer, seed=seed)
    value, end = library.get_interval_estimates({"x": (one, other)}, metrics.probability_of_improvement, reps=fewer)
    yield "P(new > old)", wins.value, float(value["x"]), (wins.low, wins.high), tuple(np.ravel(end["x"]))

    shares = profile(new, THRESHOLDS.tolist(), resamples=resamples, seed=seed)
    value, end = library.create_performance_profile({"x": one}, THRESHOLDS, reps=resamples)
    for place, threshold in enumerate(THRESHOLDS.tolist()):
        if 0.05 < shares.shares[place] < 0.95:
            band = (shares.low[place], shares.high[place])
            yield f"above {threshold:g}", shares.shares[place], value["x"][place], band, tuple(end["x"][:, place])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--resamples", type=int, default=2_000)
    parser.add_argument("--data-sets", type=int, default=3)
    options = parser.parse_args()
    print(
        f"{'runs':>4s} {'tasks':>5s} {'':13s} {'value':>8s} {'theirs':>8s}   {'interval':^19s} {'theirs':^19s} ends apart"
    )
    wrong = 0
    for seed in range(options.data_sets):
        runs, tasks = SHAPES[seed % len(SHAPES)]
        for name, value, their_value, ours, theirs in compare(runs, tasks, seed, options.resamples):
            apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / (theirs[1] - theirs[0])
            # Shares of few runs move in steps, so that ends differ by a step where they differ at all.
            step = 1 / (runs * tasks) / (theirs[1] - theirs[0]) if name.startswith("above") else 0.0
            bad = abs(value - their_value) > ROUNDING or apart > WITHIN + step
            wrong += bad
            spans = "  ".join(f"{low:8.4f}, {high:8.4f}"[:19] for low, high in (ours, theirs))
            mark = "  WRONG" if bad else ""
            print(
                f"{runs:4d} {tasks:5d} {name:13s} {value:8.5f} {their_value:8.5f}   {spans} {100 * apart:6.1f} %{mark}"
            )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
