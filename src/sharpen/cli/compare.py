"""`sharpen compare`: which of two or more arms is better, from runs of sharpen or from what others logged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharpen.cli import measuring, options

if TYPE_CHECKING:
    from sharpen.bench.comparison.assembly import Compared
    from sharpen.bench.evidence.nouns import Arm


@click.command(no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, metavar="A [B]...")
@click.option("--by", type=click.Choice(["arm", "trainer"]), default="arm", help="What makes an arm inside one run.")
@click.option("--baseline", metavar="NAME", help="The arm the others are compared with; else the first.")
@measuring.measure_options
@click.option(
    "--pairs", default="auto", metavar="HOW", help="auto, seed, none, run1=run2,run3=run4, or a CSV file of pairs."
)
@click.option(
    "--over", type=click.Choice(["auto", "seeds", "items"]), default="auto", help="What is counted: seeds, or items."
)
@click.option(
    "--margin", type=float, metavar="X", help="A difference that would not matter; then equality can be shown."
)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows here.")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write one page here.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw to a .png or .svg (extra `plots`).")
@options.runs_option
@options.json_option
def command(
    sources: tuple[str, ...], by: str, baseline: str | None, metric: str | None, summary: str | None, window: str,
    points: int, reach: float | None, lower: bool, pairs: str, over: str, margin: float | None,
    csv_file: Path | None, html_file: Path | None, plot: Path | None, runs: Path, as_json: bool,
) -> int:  # fmt: skip
    """Say whether B is better than A (and C than A, ...), and by how much.

    A and B are runs, jobs or checkpoints of sharpen, or CSV files, TensorBoard folders, W&B offline folders or Inspect logs.
    SOURCE@ARM is one arm of several; one run alone is compared inside, its arms with the first.
    """
    from sharpen.bench.comparison.assembly import Wish, compare_all
    from sharpen.bench.comparison.matchups import matchups
    from sharpen.bench.comparison.measure import choose
    from sharpen.bench.comparison.pairing import parse
    from sharpen.bench.evidence.sources import arms_of
    from sharpen.core.errors import UsageError
    from sharpen.stats.errors import BadData

    scorer = metric if summary in (None, "test") else None
    found = [(source, arms_of(source, runs, by=by, scorer=scorer)) for source in sources]
    met = matchups(found, baseline)
    arms = list(dict.fromkeys(arm.name for pair in met for arm in pair))
    by_name = {arm.name: arm for pair in met for arm in pair}
    try:
        measure = choose(
            [by_name[name] for name in arms], metric=metric, summary=summary, window=window, points=points,
            threshold=reach, lower=lower,
        )  # fmt: skip
        compared = compare_all(met, Wish(measure, parse(pairs), over, margin=margin))
    except BadData as error:
        raise UsageError(str(error)) from error
    _write(compared, [by_name[name] for name in arms], csv_file, html_file, plot)
    _show(compared, as_json)
    return 0


def _write(
    compared: list[Compared], arms: list[Arm], csv_file: Path | None, html_file: Path | None, plot: Path | None
) -> None:
    from sharpen.files import write_atomic
    from sharpen.report import comparison_files, pictures

    if csv_file is not None:
        write_atomic(csv_file, comparison_files.as_csv(compared))
    if html_file is not None:
        picture = pictures.compared_svg(compared, arms) if pictures.can_draw() else ""
        write_atomic(html_file, comparison_files.as_page(compared, picture))
    if plot is not None:
        pictures.save(pictures.compared(compared, arms), plot)


def _show(compared: list[Compared], as_json: bool) -> None:
    import json

    from sharpen.cli.running import console, show
    from sharpen.report import comparison, comparison_files

    if as_json:
        click.echo(json.dumps(comparison_files.as_json(compared), ensure_ascii=False, allow_nan=False))
    else:
        show(console(), comparison.blocks(compared))
