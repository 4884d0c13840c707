"""`sharpen doctor`: a look at a task, its data, its scorer and the cost, before a training is paid for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from sharpen.bench.doctor import Diagnosis
    from sharpen.bench.doctor_probe import Wish
    from sharpen.bench.evaluate import Files
    from sharpen.bench.runner import Parts


@click.command(no_args_is_help=True)
@click.argument("what")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--items", type=click.IntRange(min=1), default=20, metavar="N", help="Val items to try (20).")
@click.option(
    "--repeats", type=click.IntRange(min=1), default=3, metavar="K", help="Attempts at each, where they may differ (3)."
)
@options.training_options
@options.runs_option
@options.output_options
def command(
    what: str,
    overrides: tuple[str, ...],
    items: int,
    repeats: int,
    runs: Path,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Look at a task before training on it: scorer, splits, noise, headroom, what can be shown, what it costs.

    WHAT and the options are those of `sharpen train`. A few val items are attempted with the skill training would start
    from; nothing that an earlier look paid for is paid for again. Says go, or what to change first (exit code 1).
    """
    from sharpen.bench import layout
    from sharpen.bench.doctor_probe import NAME, Wish
    from sharpen.bench.evaluate import Files
    from sharpen.bench.runner import build
    from sharpen.cli.running import Output, fetch_weights
    from sharpen.cli.train import configured

    parts = build(configured(what, overrides, **given))
    output = Output(as_json, quiet)
    root = runs / NAME
    files = Files(layout.new_run(root, parts.setup.task.name).path, root / "ledger.db")
    fetch_weights(parts.setup, silent=output.silent)
    diagnosis = asyncio.run(_examine(parts, Wish(items, repeats), files, output.silent))
    _show(parts, diagnosis, files, output)
    return 0 if diagnosis.go else 1


async def _examine(parts: Parts, wish: Wish, files: Files, silent: bool) -> Diagnosis:
    from sharpen.bench.doctor import examine
    from sharpen.cli import live
    from sharpen.cli.console import console
    from sharpen.cli.running import watched

    display = live.choose(console(err=True), silent=silent)
    try:
        return await watched(display, 0, lambda begin: examine(parts, wish, files, on_start=begin))
    finally:
        display.close()


def _show(parts: Parts, diagnosis: Diagnosis, files: Files, output: Any) -> None:
    from sharpen.bench.doctor import record
    from sharpen.cli.console import console, show
    from sharpen.cli.running import shown
    from sharpen.report import doctor as report

    if output.as_json:
        made = {**record(parts, diagnosis), "folder": str(files.folder)}
        echo_json(made)
    elif output.quiet:
        echo(report.verdict(diagnosis))
    else:
        show(console(), report.blocks(diagnosis))
        echo(f"what was seen: {shown(files.folder)}")
