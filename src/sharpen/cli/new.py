"""`sharpen new`: a working skeleton to start from."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo, echo_json

_ABOUT = {
    "README.md": "what is here, in ten lines",
    "SKILL.md": "what the agent is told before training",
    "config.yaml": "which model does the task, and how it is trained",
    "data.jsonl": "72 items with their splits",
    "scorer.py": "what counts as right",
    "task.py": "the task itself",
    "test_task.py": "checks for pytest",
}


@click.group(no_args_is_help=True)
def command() -> None:
    """Make something to start from: `sharpen new task NAME`."""


@command.command(no_args_is_help=True)
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), help="Where its files go; by default a folder called NAME.")
@options.json_option
def task(name: str, folder: Path | None, as_json: bool) -> int:
    """Make a task that trains at once.

    A folder with data, scorer, seed skill, task class, configuration, test and README, to be changed into your own.
    """
    from sharpen.bench import skeleton

    home = Path(name) if folder is None else folder
    made = skeleton.create(name, home)
    if as_json:
        echo_json({"folder": str(home), "files": [str(path) for path in made]})
        return 0
    echo(f"made {home}")
    for path in made:
        echo(f"  {path.name:<14}{_ABOUT[path.name]}")
    echo(f"\ntrain it with: cd {home} && sharpen train config.yaml")
    return 0
