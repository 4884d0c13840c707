"""sharpen trains what an agent knows and proves that it got better. The public names, loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Task": "sharpen.core.task",
    "Splits": "sharpen.core.task",
    "Item": "sharpen.core.item",
    "Outcome": "sharpen.core.outcome",
    "Candidate": "sharpen.core.candidate",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from sharpen.core.candidate import Candidate as Candidate
    from sharpen.core.item import Item as Item
    from sharpen.core.outcome import Outcome as Outcome
    from sharpen.core.task import Splits as Splits
    from sharpen.core.task import Task as Task


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sharpen' has no attribute {name!r}")
