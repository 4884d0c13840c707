"""`sharpen train`: one training, from a task's name, a data file or a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sharpen.cli import options


@click.command(no_args_is_help=True)
@click.argument("what")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@options.training_options
@options.runs_option
@options.output_options
def command(what: str, overrides: tuple[str, ...], runs: Path, as_json: bool, quiet: bool, **given: Any) -> int:
    """Train a skill.

    WHAT is a task's name (`sharpen list tasks`), a data file or folder (JSONL, JSON, CSV, Parquet; `input` and `answer`), a
    Python class as path/to/file.py:Class, or a configuration (.yaml). Any setting of the configuration can be given as
    KEY=VALUE, such as trainer.params.batch_size=20.
    """
    from sharpen.bench.config import load
    from sharpen.bench.runner import prepare
    from sharpen.cli.running import Output, carry_out

    is_config = what.endswith((".yaml", ".yml"))
    settings = train_settings(None if is_config else what, **given)
    config = load(Path(what) if is_config else None, settings, overrides)
    folder, parts = prepare(config, runs)
    return carry_out(parts, folder, Output(as_json, quiet))


def train_settings(task: str | None, **given: Any) -> dict[str, Any]:
    """The options of a training as settings of its configuration."""
    made = options.settings(
        task__name=task,
        task__metric=given.get("metric"),
        task__ratio=given.get("ratio"),
        task__split_seed=given.get("split_seed"),
        task__limit=given.get("limit"),
        task__skill=given.get("skill"),
        models__target=given.get("model"),
        models__optimizer=given.get("optimizer"),
        models__judge=given.get("judge"),
        models__temperature=given.get("temperature"),
        models__render=given.get("render"),
        trainer__params=options.steps(given.get("steps")),
        budget=options.caps(given.get("budget")),
        seed=given.get("seed"),
        workers=given.get("workers"),
    )
    if given.get("gate") is not None:
        made.setdefault("trainer", {}).setdefault("params", {})["gate"] = given["gate"]
    return made
