"""What other packages add to sharpen, through entry points: found by group and name, loaded when asked for.

Each registry (tasks, trainers, models, gates, proposers) has a group of its own and decides what an entry must be; finding
and loading is done here for all alike. A name that is built in stays built in. A package that cannot be loaded never takes
the program down: it is an error that names the package where it is asked for, and a remark where everything is listed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from sharpen.core.errors import UsageError
from sharpen.core.exits import forbid_exits

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# What somebody else's module may raise while it is imported or looked at.
_BROKEN = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, NotImplementedError, OSError,
    RuntimeError, SyntaxError, SystemExit, TypeError, ValueError,
)  # fmt: skip


def installed(group: str, built_in: Collection[str] = ()) -> dict[str, EntryPoint]:
    """The entries of `group` by name, in alphabetical order. Of two packages with the same name the first one counts."""
    from importlib.metadata import entry_points  # slow to import, and not needed for what is built in

    found: dict[str, EntryPoint] = {}
    for entry in _entries(group, tuple(sys.path), entry_points):
        if entry.name not in built_in:
            found.setdefault(entry.name, entry)
    return found


@cache
def _entries(group: str, path: tuple[str, ...], find: Callable[..., Iterable[EntryPoint]]) -> tuple[EntryPoint, ...]:
    """Found once for a search path: it takes reading a file of every package there is."""
    return tuple(sorted(find(group=group), key=lambda entry: (entry.name, package(entry))))


def load(entry: EntryPoint) -> object:
    """The object an entry stands for."""
    forbid_exits()
    with blamed(entry):
        return entry.load()


@contextmanager
def blamed(entry: EntryPoint) -> Iterator[None]:
    """What goes wrong inside is the fault of the entry's package, and is said so."""
    try:
        yield
    except _BROKEN as error:
        raise UsageError(
            f"{entry.name!r} of the package {package(entry)} ({entry.value}) cannot be loaded: "
            f"{type(error).__name__}: {error}; repair or uninstall the package"
        ) from error


def wrong_kind(entry: EntryPoint, wanted: str) -> UsageError:
    """The error for an entry that can be loaded and is not what its group is for."""
    return UsageError(
        f"{entry.name!r} of the package {package(entry)} ({entry.value}) is not {wanted}; repair or uninstall the package"
    )


def package(entry: EntryPoint) -> str:
    """The name of the package an entry belongs to; the module where that is not known."""
    return entry.value.partition(":")[0] if entry.dist is None else entry.dist.name
