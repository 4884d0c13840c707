"""Asking before code of a run folder is run: `--trust`, or a yes at the terminal; without either the command is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sharpen.cli.terminal import say

if TYPE_CHECKING:
    from sharpen.bench.trust import Use

F = TypeVar("F", bound=Callable[..., Any])


def trust_option(function: F) -> F:
    """`--trust`, for commands that may run what a run folder names."""
    words = "Run the code this run names, though it was not made here; remembered until it changes."
    return click.option("--trust", is_flag=True, help=words)(function)


def allow(folder: Path, uses: Iterable[Use], *, trust: bool, ask: bool = True) -> None:
    """Let a command go on with what it leads to, or refuse. What was allowed before is not asked about again."""
    from sharpen.bench.trust import NotTrusted, remember, unknown

    missing = unknown(uses)
    if not missing:
        return
    error = NotTrusted(folder, missing)
    if not trust:
        if not (ask and sys.stdin.isatty() and sys.stderr.isatty()):
            raise error
        say(str(error))
        if not click.confirm("go on, and trust them from now on?", default=False, err=True):
            raise error
    if why := remember(missing):
        say(f"this can't be remembered, so it will be asked again: {why}")
