"""Trainers by name: the built-in ones, and those of other packages through the entry point group `sharpen.trainers`."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

from sharpen.core.errors import UsageError, nearest
from sharpen.trainers.base import Trainer

_BUILT_IN = {"reflact": "sharpen.trainers.reflact.loop:ReflACT"}


def known() -> dict[str, type[Trainer]]:
    """All trainers there are, by name."""
    found = {name: _load(home) for name, home in _BUILT_IN.items()}
    for entry in entry_points(group="sharpen.trainers"):
        found.setdefault(entry.name, entry.load())
    return found


def get(name: str) -> type[Trainer]:
    if name in _BUILT_IN:
        return _load(_BUILT_IN[name])
    found = known()
    if name not in found:
        raise UsageError(f"unknown trainer {name!r}{nearest(name, list(found))}; there are: {', '.join(sorted(found))}")
    return found[name]


def _load(home: str) -> type[Trainer]:
    module, _, attribute = home.partition(":")
    found: type[Trainer] = getattr(importlib.import_module(module), attribute)
    return found
