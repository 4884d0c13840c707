"""`sharpen demo`: the same loop as `sharpen train`, with the settings in `demo.yaml`."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from sharpen.cli import options


@click.command()
@click.option("--task", metavar="NAME", help="Another built-in task. See `sharpen list tasks`.")
@click.option("--model", metavar="NAME", help="Another model than the embedded one.")
@click.option("--seed", type=int, metavar="N", help="Everything random follows from it.")
@options.runs_option
@options.output_options
def command(task: str | None, runs: Path, as_json: bool, quiet: bool, **given: Any) -> int:
    """Train a skill on a built-in task with the embedded model: no key, no network, about two minutes.

    The model's weights are fetched once. Everything shown is measured: the test items are never seen in training.
    """
    from sharpen.bench.config import load
    from sharpen.bench.runner import prepare
    from sharpen.cli.running import Output, carry_out
    from sharpen.cli.train import train_settings

    with as_file(files("sharpen.cli") / "demo.yaml") as path:
        config = load(path, train_settings(task, **given))
    folder, parts = prepare(config, runs)
    return carry_out(parts, folder, Output(as_json, quiet))
