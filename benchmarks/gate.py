"""What the gates hold where the truth is known: false accepts, power, cost, and what a whole training run ends with.

    python benchmarks/gate.py [--decisions 1000] [--runs 60] [--gates sequential,paired] [--only nulls] [--jobs 2]

`nulls`: candidates whose true mean effect over the items is zero or less, to be accepted at most 5 % of the time.
`gains`: true gains, beside what a simple honest gate finds at its cost (items in random order; looks after half a pass, one
pass and two passes; exact sign flips). Cost is in passes: draws of both arms over the number of items, the incumbent's first
outcomes being there already. "0 inside": acceptances whose own interval contains zero.
`runs`: a climber gets proposals of known effect (60 % change nothing, 20 % break five items of 100, 20 % repair three, five
or ten) until its rollouts are spent; the last columns are the mean true score it ends with and its 95 % interval over runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pool

from sharpen.core.rng import Stream
from sharpen.gates import registry
from sharpen.gates.base import Draw, Evidence, Gate, Pair
from sharpen.stats.summary import summarise
from sharpen.testing.simulator import Awkward, Scenario, play, scenario, simulate_decisions

BUDGET_PASSES = 25
MOST_DECISIONS = 1000


class RareLosses(Scenario):
    """The new arm does a little better nearly always, and loses everything now and then: on the mean, nothing is gained."""

    share = 0.05

    def draw(self, arm: str, item: int, stream: Stream, shift: float = 0.0, luck: float | None = None) -> float:
        if arm == "old":
            return self.old[item]
        return 0.0 if stream.random() < self.share else min(1.0, self.old[item] / (1.0 - self.share))


@dataclass(frozen=True)
class Case:
    name: str
    truth: Scenario
    awkward: Awkward | None = None
    repeatable: bool = True
    floor: tuple[float, float] | None = None
    """Percent accepted and passes of the simple gate."""


def noisy(right: int, wrong: int, noise: float, mended: int = 0, broken: int = 0) -> Scenario:
    """Items that succeed or fail but for some noise, of which some are mended and some broken."""
    old = [1.0 - noise] * right + [noise] * wrong
    new = [noise] * broken + [1.0 - noise] * (right - broken + mended) + [noise] * (wrong - mended)
    return Scenario(tuple(new), tuple(old))


def level(items: int, old: float, new: float, spread: float | None = None) -> Scenario:
    return Scenario((new,) * items, (old,) * items, spread)


CRISP = Scenario(
    (1.0,) * 5 + (0.4,) * 25 + (1.0,) * 15 + (0.0,) * 15, (0.0,) * 5 + (0.6,) * 25 + (1.0,) * 15 + (0.0,) * 15
)
BREAKS = Scenario(
    (0.0,) * 5 + (0.6,) * 25 + (1.0,) * 15 + (0.0,) * 15, (1.0,) * 5 + (0.4,) * 25 + (1.0,) * 15 + (0.0,) * 15
)
EVEN, SWAPPED = noisy(30, 30, 0.1), noisy(30, 30, 0.1, 10, 10)
NULLS = [
    *(Case(f"no-op, noise {noise:g}", noisy(30, 30, noise)) for noise in (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)),
    Case("no-op, all items at .9", level(60, 0.9, 0.9)),
    Case("no-op, 20 items, noise .1", noisy(10, 10, 0.1)),
    Case("no-op, 200 items, noise .1", noisy(100, 100, 0.1)),
    *(
        Case(f"10 mended, 10 broken, noise {noise:g}", noisy(30, 30, noise, 10, 10))
        for noise in (0.0, 0.05, 0.1, 0.2, 0.3)
    ),
    Case("5 mended, 5 broken of 50, noise .05", noisy(25, 25, 0.05, 5, 5)),
    Case("10 mended, 10 broken of 100, noise .1", noisy(50, 50, 0.1, 10, 10)),
    Case("20 mended, 20 broken of 200, noise .1", noisy(100, 100, 0.1, 20, 20)),
    Case("10 mended, 11 broken, noise .1", noisy(30, 30, 0.1, 10, 11)),
    Case("5 crisp mends, 25 weak breaks", CRISP),
    Case("5 crisp breaks, 25 weak mends", BREAKS),
    Case("all items a little worse", level(60, 0.5, 0.48)),
    Case("graded, no-op", level(60, 0.6, 0.6, 0.3)),
    Case("graded, a little worse", level(60, 0.6, 0.59, 0.1)),
    Case("graded, small gains, rare large losses", RareLosses((0.9,) * 60, (0.9,) * 60)),
    Case("graded, half up, half down", Scenario((0.7,) * 30 + (0.5,) * 30, (0.6,) * 60, 0.2)),
    Case("lucky incumbent", EVEN, Awkward(lucky=8)),
    *(Case(f"stale incumbent, {stale:+g}", EVEN, Awkward(stale=stale)) for stale in (-0.2, 0.1, 0.2, 0.4)),
    Case("stale incumbent, 10/10 swapped", SWAPPED, Awkward(stale=0.2)),
    *(Case(f"drifting endpoint, {drift:+g} a pass", EVEN, Awkward(drift=drift)) for drift in (-0.2, -0.05, 0.05, 0.2)),
    Case("drifting endpoint, noise .5", level(60, 0.5, 0.5), Awkward(drift=-0.1)),
    Case("groups of 4, declared", level(60, 0.5, 0.5), Awkward(group=4)),
    Case("groups of 4, declared, noise .1", EVEN, Awkward(group=4)),
    Case("same answers, nothing changes", noisy(30, 30, 0.0), repeatable=False),
    Case("same answers, changes by chance", level(60, 0.5, 0.5), repeatable=False),
    Case("same answers, seldom changes", level(60, 0.9, 0.9), repeatable=False),
    Case("same answers, graded", level(60, 0.6, 0.6, 0.3), repeatable=False),
    Case("same answers, rare large losses", RareLosses((0.9,) * 60, (0.9,) * 60), repeatable=False),
]
GAINS = [
    Case("no-op, noise .1", EVEN, floor=(1.0, 1.88)),
    Case("no-op, crisp", noisy(30, 30, 0.0), floor=(0.0, 0.50)),
    Case("10 mended, 10 broken, noise .1", SWAPPED, floor=(0.0, 1.85)),
    Case("5 crisp mends, 25 weak breaks", CRISP, floor=(1.0, 1.91)),
    Case("all items .5 to .6", level(60, 0.5, 0.6), floor=(40.0, 2.68)),
    Case("all items .5 to .7", level(60, 0.5, 0.7), floor=(90.0, 2.42)),
    Case("all items .1 to .2, 100 items", level(100, 0.1, 0.2), floor=(82.0, 2.54)),
    Case("6 of 60 mended, noise .1", noisy(30, 30, 0.1, 6), floor=(36.0, 2.73)),
    Case("12 of 60 mended, noise .1", noisy(30, 30, 0.1, 12), floor=(93.0, 2.45)),
    Case("6 of 60 mended, crisp", noisy(30, 30, 0.0, 6), floor=(100.0, 3.00)),
    Case("same answers, 6 of 60 mended", noisy(30, 30, 0.0, 6), repeatable=False),
]


def row(work: tuple[str, Case, int]) -> str:
    name, case, decisions = work
    outcome = simulate_decisions(
        registry.get(name), case.truth, runs=decisions, repeatable=case.repeatable, awkward=case.awkward
    )
    inside = sum(v.accepted and v.low is not None and v.low <= 0.0 for v in outcome.verdicts)
    floor = "" if case.floor is None else f"{case.floor[0]:5.0f} % {case.floor[1]:5.2f}"
    return f"{case.name:42s} {100 * outcome.rate:6.1f} % {outcome.passes:7.2f} {inside:9d} {floor:>13s}"


def table(name: str, cases: Sequence[Case], decisions: int, jobs: int) -> None:
    print(f"\n{name:42s} {'accepted':>8s} {'passes':>7s} {'0 inside':>9s}   simple gate")
    with Pool(jobs) as pool:
        for line in pool.imap(row, [(name, case, decisions) for case in cases]):
            print(line.rstrip(), flush=True)


def proposal(current: Sequence[float], stream: Stream) -> list[float]:
    """A changed copy of the incumbent's success probabilities."""
    changed = list(current)
    kind = stream.random()
    if kind < 0.6:
        return changed
    right = stream.shuffled([i for i, p in enumerate(changed) if p == 1.0])
    wrong = stream.shuffled([i for i, p in enumerate(changed) if p == 0.0])
    if kind < 0.8:
        for i in right[:5]:
            changed[i] = 0.0
    else:
        for i in wrong[: stream.choice((3, 5, 10))]:
            changed[i] = 1.0
    return changed


def climb(gate: Gate, run: int) -> tuple[float, int]:
    """The true score a run ends with, and how many proposals it judged."""
    current = Stream(run, "start").shuffled(scenario(100).old)
    draws = Stream(run, "draws", gate.name)
    known: list[tuple[float | None, ...]] = [(float(draws.random() < p),) for p in current]
    spent = 100
    for step in range(MOST_DECISIONS):
        offered = proposal(current, Stream(run, "proposal", step))
        truth = Scenario(tuple(offered), tuple(current))

        def fetch(draw: Draw, truth: Scenario = truth) -> float:
            return truth.draw(draw.arm, draw.item, draws)

        pairs = tuple(Pair((), old, stored_old=max(1, len(old))) for old in known)
        played = play(gate, fetch, Evidence(pairs, True, decision=step))
        spent += played.rollouts
        if spent > BUDGET_PASSES * 100:
            return sum(current) / 100, step
        if played.verdict.accepted:
            current = offered
        known = [pair.new if played.verdict.accepted else pair.old for pair in played.pairs]
    return sum(current) / 100, MOST_DECISIONS


def climb_by_name(work: tuple[str, int]) -> tuple[float, int]:
    return climb(registry.get(work[0]), work[1])


def climbs(names: Sequence[str], runs: int, jobs: int) -> None:
    print(f"\n{'a run of 25 passes':20s} {'ends at':21s} {'judged':>7s}")
    for name in names:
        with Pool(jobs) as pool:
            ends = pool.map(climb_by_name, [(name, run) for run in range(runs)])
        end = summarise([score for score, _ in ends])
        judged = sum(count for _, count in ends) / runs
        print(f"{name:20s} {end.mean:.3f} [{end.low:.3f}, {end.high:.3f}] {judged:7.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=1000, help="decisions per gate and case")
    parser.add_argument("--runs", type=int, default=60, help="training runs per gate")
    parser.add_argument("--gates", default="sequential", help="whose decisions are simulated")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", choices=["nulls", "gains", "runs"], help="one table alone")
    options = parser.parse_args()
    for name in options.gates.split(","):
        if options.only in (None, "nulls"):
            table(name, NULLS, options.decisions, options.jobs)
        if options.only in (None, "gains"):
            table(name, GAINS, options.decisions, options.jobs)
    if options.only in (None, "runs"):
        climbs(("force", "strict", "paired", "sequential"), options.runs, options.jobs)


if __name__ == "__main__":
    main()
