"""`sharpen power`: how many runs an effect takes, and which effect so many runs can show."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import measuring, options
from sharpen.cli.terminal import echo_json


@click.command()
@click.option("--effect", type=click.FloatRange(0, min_open=True), metavar="X", help="The difference to be found.")
@click.option("--n", "runs_each", type=click.IntRange(2), metavar="N", help="Pairs, or runs in each arm.")
@click.option("--paired/--unpaired", default=False, help="Pairs of runs with the same seed, or independent groups.")
@click.option("--spread", type=click.FloatRange(0), metavar="S",
              help="The standard deviation of runs; with --paired, of the differences.")  # fmt: skip
@click.option(
    "--pilot", "pilots", multiple=True, metavar="RUNS", help="Take the spread from these; twice with --paired."
)
@click.option("--task", metavar="NAME", help="The pilot's task, where it has several.")
@click.option(
    "--power", "target", type=click.FloatRange(0.05, 0.999), default=0.8, help="The wanted chance to find it."
)
@click.option("--alpha", type=click.FloatRange(0.0001, 0.5), default=0.05, help="The level of the test, two-sided.")
@measuring.measure_options
@options.runs_option
@options.json_option
def command(
    effect: float | None, runs_each: int | None, paired: bool, spread: float | None, pilots: tuple[str, ...],
    task: str | None, target: float, alpha: float, metric: str | None, summary: str | None, window: str, points: int,
    reach: float | None, lower: bool, runs: Path, as_json: bool,
) -> int:  # fmt: skip
    """Plan a comparison: give --effect to learn n, --n to learn the smallest effect, both for the power, none for a table.

    The spread is given, or taken from a pilot: one arm, or with --paired two arms with the same seeds.
    """
    import dataclasses

    from sharpen.bench.comparison.measure import choose
    from sharpen.bench.comparison.planning import pilot_of, plans, spreads_of
    from sharpen.bench.evidence.sources import arms_of
    from sharpen.cli.console import console, show
    from sharpen.core.errors import UsageError
    from sharpen.report import planning
    from sharpen.stats.errors import BadData

    if (spread is None) == (not pilots):
        raise UsageError("give the spread of runs with --spread, or runs to take it from with --pilot; one of the two")
    pilot = None
    try:
        if pilots:
            arms = [arm for source in pilots for arm in arms_of(source, runs, scorer=metric)]
            measure = choose(
                arms, metric=metric, summary=summary, window=window, points=points, threshold=reach, lower=lower
            )
            pilot = pilot_of(arms, measure, task, pairs=paired)
        found = plans(
            spreads_of(pilot, spread), pilot, paired=paired, effect=effect, n=runs_each, target=target, alpha=alpha
        )
    except BadData as error:
        raise UsageError(str(error)) from error
    if as_json:
        told = None if pilot is None else dataclasses.asdict(pilot)
        made = {
            "schema_version": 1,
            "paired": paired,
            "pilot": told,
            "plans": [dataclasses.asdict(plan) for plan in found],
        }
        echo_json(made, allow_nan=False)
        return 0
    asked = {(True, True): "power", (True, False): "n", (False, True): "effect", (False, False): "table"}
    which = asked[effect is not None, runs_each is not None]
    show(console(), planning.blocks(found, pilot, paired=paired, asked=which, target=target))
    return 0
