"""`sharpen train`: one training, from a task's name, a data file or a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options

if TYPE_CHECKING:
    from sharpen.bench.config import RunConfig


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
    from sharpen.bench.runner import prepare
    from sharpen.cli.running import Output, carry_out

    folder, parts = prepare(configured(what, overrides, **given), runs)
    return carry_out(parts, folder, Output(as_json, quiet))


def configured(what: str, overrides: Sequence[str] = (), **given: Any) -> RunConfig:
    """The configuration that a task or a file, options and overrides come to. What `--steps` and `--gate` are called, the
    trainer says."""
    from sharpen.bench.config import load, read
    from sharpen.core.errors import UsageError

    is_config = what.endswith((".yaml", ".yml"))
    path, settings = Path(what) if is_config else None, train_settings(None if is_config else what, **given)
    several = [] if path is None else [key for key in ("tasks", "trainers", "seeds") if key in read(path)]
    if several:
        raise UsageError(
            f"{path} is a study, since it has {several[0]!r}: use `sharpen run {path}`; `sharpen validate` looks at it first"
        )
    steps, gate = given.get("steps"), given.get("gate")
    if steps is None and gate is None:
        return load(path, settings, overrides)
    trainer = load(path, settings, overrides).trainer.name
    params = settings.setdefault("trainer", {}).setdefault("params", {})
    params.update({} if steps is None else options.steps(trainer, steps))
    params.update({} if gate is None else options.gate(trainer, gate))
    return load(path, settings, overrides)


def train_settings(task: str | None, **given: Any) -> dict[str, Any]:
    """The options of a training as settings of its configuration."""
    return options.settings(
        task__name=task,
        task__metric=given.get("metric"),
        task__ratio=given.get("ratio"),
        task__split_seed=given.get("split_seed"),
        task__data=given.get("data"),
        task__size=given.get("size"),
        task__limit=given.get("limit"),
        task__skill=given.get("skill"),
        trainer__name=given.get("trainer"),
        models__target=given.get("model"),
        models__optimizer=given.get("optimizer"),
        models__judge=given.get("judge"),
        models__temperature=given.get("temperature"),
        models__render=given.get("render"),
        budget=options.caps(given.get("budget")),
        seed=given.get("seed"),
        workers=given.get("workers"),
    )
