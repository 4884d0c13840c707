"""How the gates compare where the truth is known: false accepts, power, cost, and what a whole training run ends with.

    python benchmarks/gate.py [--decisions 400] [--runs 60]

100 validation items of which a fifth are coin flips; the incumbent's outcomes are stored once. A full pass is 100 rollouts
of either arm. In the simulated runs a climber gets proposals of known effect (60 % change nothing, 20 % break five items,
20 % repair three, five or ten) until its rollouts are spent; what an incumbent is known by is carried over from the decision
that accepted it. The last columns are the mean true score it ends with, its 95 % interval over runs, and the proposals
judged per run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sharpen.core.rng import Stream
from sharpen.gates import registry
from sharpen.gates.base import Draw, Evidence, Gate, Pair
from sharpen.stats.summary import summarise
from sharpen.testing.simulator import Scenario, play, scenario, simulate_decisions

ITEMS = 100
BUDGET_PASSES = 25
MOST_DECISIONS = 1000


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
    current = Stream(run, "start").shuffled(scenario(ITEMS).old)
    draws = Stream(run, "draws", gate.name)
    known: list[tuple[float | None, ...]] = [(float(draws.random() < p),) for p in current]
    spent = ITEMS
    for step in range(MOST_DECISIONS):
        offered = proposal(current, Stream(run, "proposal", step))
        truth = Scenario(tuple(offered), tuple(current))

        def fetch(draw: Draw, truth: Scenario = truth) -> float:
            return truth.draw(draw.arm, draw.item, draws)

        played = play(gate, fetch, Evidence(tuple(Pair((), old) for old in known), True, decision=step))
        spent += played.rollouts
        if spent > BUDGET_PASSES * ITEMS:
            return sum(current) / ITEMS, step
        if played.verdict.accepted:
            current = offered
        known = [pair.new if played.verdict.accepted else pair.old for pair in played.pairs]
    return sum(current) / ITEMS, MOST_DECISIONS


def row(name: str, decisions: int, runs: int) -> str:
    gate = registry.get(name)
    found = {
        label: simulate_decisions(gate, scenario(ITEMS, gains=gains, losses=losses), runs=decisions)
        for label, gains, losses in (("0", 0, 0), ("+5", 5, 0), ("+10", 10, 0), ("-5", 0, 5), ("5-10", 5, 10))
    }
    ends = [climb(gate, run) for run in range(runs)]
    end = summarise([score for score, _ in ends])
    judged = sum(count for _, count in ends) / runs
    rates = " ".join(f"{100 * found[label].rate:6.1f}" for label in ("0", "+5", "+10", "-5", "5-10"))
    mix = (found["0"].passes + found["+10"].passes) / 2
    costs = f"{found['0'].passes:6.2f} {found['+10'].passes:6.2f} {mix:6.2f}"
    return f"{name:11s} {rates}   {costs}   {end.mean:.3f} [{end.low:.3f}, {end.high:.3f}] {judged:7.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=400, help="decisions per gate and kind of candidate")
    parser.add_argument("--runs", type=int, default=60, help="training runs per gate")
    options = parser.parse_args()
    print(f"{'':11s} {'accepted, % of true effect':^34s}   {'full passes each':^20s}   a run of {BUDGET_PASSES} passes")
    heads = " ".join(f"{label:>6s}" for label in ("0", "+5", "+10", "-5", "+5-10"))
    print(f"{'gate':11s} {heads}   {'0':>6s} {'+10':>6s} {'mix':>6s}   {'ends at':21s} {'judged':>7s}")
    for name in ("force", "strict", "paired", "sequential"):
        print(row(name, options.decisions, options.runs), flush=True)


if __name__ == "__main__":
    main()
