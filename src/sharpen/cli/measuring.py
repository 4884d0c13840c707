"""Options of the commands that take one number from each run: `compare`, `variance` and `power`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_SUMMARIES = ("test", "auc", "mean", "last", "final", "best", "slope", "steps_to")


def measure_options(function: F) -> F:
    """Which number counts. `--reach` and not `--threshold`, which means the wanted precision to `variance`."""
    for option in reversed(
        (
            click.option(
                "--metric", metavar="NAME", help="Which curve or final score counts; of Inspect logs, the scorer."
            ),
            click.option(
                "--summary",
                type=click.Choice(_SUMMARIES),
                help="What is taken from a run: the final test score, or from its curve; test or auc where not given.",
            ),
            click.option(
                "--window", default="all", metavar="PART", help="all, first:0.5, last:0.25, or steps 1000..5000."
            ),
            click.option("--points", type=click.IntRange(1), default=5, help="How many points --summary last takes."),
            click.option("--reach", type=float, metavar="X", help="The value that --summary steps_to waits for."),
            click.option("--lower", is_flag=True, help="A lower value of the metric is better."),
        )
    ):
        function = option(function)
    return function
