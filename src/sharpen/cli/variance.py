"""`sharpen variance`: whether there are enough runs, from how they spread."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import measuring, options
from sharpen.cli.terminal import echo_json


@click.command(no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, metavar="RUNS...")
@measuring.measure_options
@click.option("--threshold", type=click.FloatRange(0, min_open=True), default=0.05, metavar="X",
              help="The wanted precision, as a share of the mean.")  # fmt: skip
@click.option(
    "--paired", is_flag=True, help="Plan for pairs: taken to spread as much as these runs, which is cautious."
)
@click.option("--most", type=click.IntRange(2, 10_000), metavar="N", help="The largest number of runs looked at.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw to a .svg, or a .png (extra `plots`).",
)
@click.option("--by", type=click.Choice(["arm", "trainer"]), default="arm", help="What makes an arm inside one run.")
@options.runs_option
@options.json_option
def command(
    sources: tuple[str, ...], metric: str | None, summary: str | None, window: str, points: int, reach: float | None,
    lower: bool, threshold: float, paired: bool, most: int | None, output: Path | None, by: str, runs: Path, as_json: bool,
) -> int:  # fmt: skip
    """Say how well RUNS pin down their mean, and how many would be enough.

    RUNS are read as by `sharpen compare`; SOURCE@ARM is one arm of several. Each arm and task is looked at on its own.
    """

    from sharpen.bench.comparison.measure import choose
    from sharpen.bench.comparison.spread import spreads
    from sharpen.bench.evidence.sources import arms_of
    from sharpen.cli.console import console, show
    from sharpen.core.errors import UsageError
    from sharpen.report import pictures, spread
    from sharpen.report.page import files
    from sharpen.stats.errors import BadData

    if output is not None:
        files.check(output)
    arms = [arm for source in sources for arm in arms_of(source, runs, by=by, scorer=metric)]
    try:
        measure = choose(
            arms, metric=metric, summary=summary, window=window, points=points, threshold=reach, lower=lower
        )
        found = spreads(arms, measure, threshold=threshold, most=most, paired=paired)
    except BadData as error:
        raise UsageError(str(error)) from error
    if output is not None:
        files.save(pictures.enough(found, measure, paired=paired), output)
    if as_json:
        echo_json(spread.as_json(found), allow_nan=False)
    else:
        show(console(), spread.blocks(found, measure, paired))
    return 0
