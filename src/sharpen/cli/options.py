"""Options that several commands share, and how they become settings of a configuration.

An option that is not given leaves no trace, so that a configuration file's own value stands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from sharpen.core.errors import UsageError, nearest

F = TypeVar("F", bound=Callable[..., Any])

RUNS = Path("runs")
_KINDS: Mapping[str, type[int] | type[float]] = {"calls": int, "tokens": int, "money": float, "seconds": float}


def runs_option(function: F) -> F:
    return click.option(
        "--runs", type=click.Path(path_type=Path, file_okay=False), default=RUNS, help="The folder of all runs."
    )(function)


def pay_again_option(function: F) -> F:
    return click.option(
        "--pay-again", is_flag=True, help="Where the ledger has lost what was paid for, pay for it again."
    )(function)


def reuse_option(function: F) -> F:
    return click.option(
        "--reuse",
        multiple=True,
        metavar="RUN",
        help="Take over the finished jobs of RUN that are the same (repeatable).",
    )(function)


def output_options(function: F) -> F:
    """`--json` and `--quiet`."""
    function = click.option("--quiet", "-q", is_flag=True, help="No progress, and one line at the end.")(function)
    return json_option(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output; no progress.")(
        function
    )


def budget_option(function: F) -> F:
    return click.option("--budget", metavar="CAPS", help="Caps, such as calls=900,tokens=2e6,money=1.5,seconds=600.")(
        function
    )


def model_options(function: F) -> F:
    """Which model plays which role, and how the skill reaches it."""
    for option in reversed(
        (
            click.option("--model", metavar="NAME", help="The model that does the task. See `sharpen list models`."),
            click.option("--judge", metavar="NAME", help="The model that scores, where a task needs one."),
            click.option("--temperature", type=float, metavar="T", help="Of the model that does the task."),
            click.option("--render", metavar="HOW", help="auto, system, turns or completion."),
        )
    ):
        function = option(function)
    return function


def data_options(function: F) -> F:
    """What a data file means and how it is split."""
    for option in reversed(
        (
            click.option("--metric", metavar="M", help="How answers are scored. See `sharpen list metrics`."),
            click.option("--ratio", metavar="A:B:C", help="train:val:test of one file, such as 2:1:7."),
            click.option("--split-seed", type=int, metavar="N", help="Which way a file is split."),
            click.option("--data", metavar="PATH", help="The file or folder a named task takes its items from."),
            click.option("--size", type=int, metavar="N", help="How many items to make, for tasks that generate them."),
            click.option("--limit", type=int, metavar="N", help="At most N items of each split, for trying out."),
        )
    ):
        function = option(function)
    return function


def training_options(function: F) -> F:
    """Everything a training can be told in options, beside what it is trained on."""
    own = (
        click.option(
            "--optimizer", metavar="NAME", help="The model that writes the edits; none: proposers without a model."
        ),
        click.option(
            "--trainer", metavar="NAME", help="How to train: see `sharpen list trainers`; or path/to/file.py:Class."
        ),
        click.option("--seed", type=int, metavar="N", help="Everything random follows from it."),
        click.option("--steps", type=int, metavar="N", help="Take exactly N steps."),
        budget_option,
        click.option("--gate", metavar="NAME", help="Who decides about a change. See `sharpen list gates`."),
        click.option("--skill", metavar="PATH", help="The file, folder or checkpoint to start from."),
        click.option("--workers", type=int, metavar="N", help="Rollouts under way at once."),
    )
    for option in reversed((data_options, model_options, *own)):
        function = option(function)
    return function


def settings(**given: Any) -> dict[str, Any]:
    """Options as settings: `task__limit=5` becomes `{"task": {"limit": 5}}`; None is left out."""
    made: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        *sections, key = name.split("__")
        place = made
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    return made


def caps(given: str | None) -> dict[str, int | float] | None:
    """The caps of a text such as `calls=900,seconds=60`."""
    if given is None:
        return None
    found: dict[str, int | float] = {}
    for part in given.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in _KINDS:
            known = tuple(_KINDS)
            raise UsageError(f"--budget: unknown cap {name!r}{nearest(name, known)}; there are {', '.join(known)}")
        try:
            number = float(value.replace("_", ""))
        except ValueError:
            raise UsageError(f"--budget: {name} must be a number, got {value!r}; for example calls=900") from None
        if not 0 < number < float("inf") or (_KINDS[name] is int and number != int(number)):
            wanted = "whole number" if _KINDS[name] is int else "number"
            raise UsageError(f"--budget: {name} must be a {wanted} above 0, got {value!r}")
        found[name] = _KINDS[name](number)
    return found


def steps(trainer: str, number: int) -> dict[str, int]:
    """Settings that make a trainer take exactly this many steps, by whatever name it has for them."""
    fields = _fields(trainer)
    if "max_steps" in fields:
        return {"max_steps": number, "epochs": number}  # an epoch has at least one step
    found = next((name for name in ("iterations", "max_depth", "epochs") if name in fields), None)
    if found is None:
        raise UsageError(f"--steps means nothing to the trainer {trainer}")
    return {found: number}


def gate(trainer: str, name: str) -> dict[str, str]:
    """The setting that says who decides, by whatever name a trainer has for it."""
    found = next((field for field in ("gate", "acceptance") if field in _fields(trainer)), None)
    if found is None:
        raise UsageError(f"--gate means nothing to the trainer {trainer}")
    return {found: name}


def _fields(trainer: str) -> Collection[str]:
    from sharpen.trainers import registry

    return registry.get(trainer).Params.model_fields
