"""Proposers that need no optimizer model, by name: the built-in ones, and those of other packages through the entry point
group `sharpen.proposers`. An entry is a class whose instances are proposers and whose settings all have defaults; the first
paragraph of its docstring is what `sharpen list proposers` says of it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharpen.core import plugins
from sharpen.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from sharpen.trainers.reflact.proposers.base import Proposer

GROUP = "sharpen.proposers"

_BUILT_IN = {
    "examples": "examples:ExamplesProposer",
    "instructions": "instructions:InstructionsProposer",
    "prune": "prune:PruneProposer",
    "numbers": "numbers:NumbersProposer",
    "syntax": "syntax:SyntaxProposer",
}
NAMES = tuple(_BUILT_IN)
"""The built-in ones."""


@dataclass(frozen=True, slots=True)
class Known:
    """A proposer as `sharpen list proposers` shows it. `missing` says why it cannot be used; empty when it can."""

    name: str
    description: str = ""
    missing: str = ""


def names() -> list[str]:
    """The names of the built-in and installed proposers."""
    return [*_BUILT_IN, *plugins.installed(GROUP, _BUILT_IN)]


def known() -> list[Known]:
    """Every proposer there is here."""
    found = []
    for name in names():
        try:
            about = inspect.getdoc(_maker(name)) or ""
        except UsageError as error:
            found.append(Known(name, missing=str(error)))
        else:
            found.append(Known(name, about.partition("\n\n")[0].replace("\n", " ")))
    return found


def get(name: str) -> Proposer:
    """The proposer called `name`, with its usual settings."""
    return _maker(name)()


def _maker(name: str) -> Callable[[], Proposer]:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        built_in: Callable[[], Proposer] = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
        return built_in
    installed = plugins.installed(GROUP)
    if name not in installed:
        there = names()
        raise UsageError(f"unknown proposer {name!r}{nearest(name, there)}; there are: {', '.join(there)}")
    maker = plugins.load(installed[name])
    if not isinstance(maker, type) or not hasattr(maker, "propose"):
        raise plugins.wrong_kind(installed[name], "a class with the method propose(view)")
    return maker
