"""Running programs that nobody has read: in a bubblewrap sandbox, with limits, and with nothing of them left behind.

`run_program` is the one way in. What the program does wrong is in the `Ran` it returns; what the sandbox itself can't do is
raised as `SandboxFailed`. `missing` says, before anything is run, why there can be no sandbox here. The names are loaded
when first used, so that the launcher, which is forked for every run, stays small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_HOMES = {
    "Limits": "sharpen.sandbox.contract",
    "Mode": "sharpen.sandbox.contract",
    "Ran": "sharpen.sandbox.contract",
    "Reason": "sharpen.sandbox.contract",
    "SandboxFailed": "sharpen.core.errors",
    "missing": "sharpen.sandbox.client",
    "run_program": "sharpen.sandbox.client",
}

__all__ = ["Limits", "Mode", "Ran", "Reason", "SandboxFailed", "missing", "run_program"]

if TYPE_CHECKING:
    from sharpen.core.errors import SandboxFailed as SandboxFailed
    from sharpen.sandbox.client import missing as missing
    from sharpen.sandbox.client import run_program as run_program
    from sharpen.sandbox.contract import Limits as Limits
    from sharpen.sandbox.contract import Mode as Mode
    from sharpen.sandbox.contract import Ran as Ran
    from sharpen.sandbox.contract import Reason as Reason


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sharpen.sandbox' has no attribute {name!r}")
