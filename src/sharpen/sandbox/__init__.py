"""Running programs that nobody has read: in a bubblewrap sandbox, with limits, and with nothing of them left behind.

There are two ways in. `run_program` runs a program on files and input, to its end. `open_conversations` starts programs
that are asked question by question, so that they know no more than they have been told. What a program does wrong is in
the `Ran` or `NoAnswer` that comes back; what the sandbox itself can't do is raised as `SandboxFailed`. `missing` says,
before anything is run, why there can be no sandbox here. The names are loaded when first used, so that the launcher, which
is forked for every run, stays small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_HOMES = {
    "Conversation": "sharpen.sandbox.conversation",
    "Limits": "sharpen.sandbox.contract",
    "Mode": "sharpen.sandbox.contract",
    "NoAnswer": "sharpen.sandbox.conversation",
    "Order": "sharpen.sandbox.contract",
    "Ran": "sharpen.sandbox.contract",
    "Reason": "sharpen.sandbox.contract",
    "SandboxFailed": "sharpen.core.errors",
    "missing": "sharpen.sandbox.client",
    "open_conversations": "sharpen.sandbox.conversation",
    "run_program": "sharpen.sandbox.client",
}

__all__ = [
    "Conversation", "Limits", "Mode", "NoAnswer", "Order", "Ran", "Reason", "SandboxFailed", "missing",
    "open_conversations", "run_program",
]  # fmt: skip

if TYPE_CHECKING:
    from sharpen.core.errors import SandboxFailed as SandboxFailed
    from sharpen.sandbox.client import missing as missing
    from sharpen.sandbox.client import run_program as run_program
    from sharpen.sandbox.contract import Limits as Limits
    from sharpen.sandbox.contract import Mode as Mode
    from sharpen.sandbox.contract import Order as Order
    from sharpen.sandbox.contract import Ran as Ran
    from sharpen.sandbox.contract import Reason as Reason
    from sharpen.sandbox.conversation import Conversation as Conversation
    from sharpen.sandbox.conversation import NoAnswer as NoAnswer
    from sharpen.sandbox.conversation import open_conversations as open_conversations


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sharpen.sandbox' has no attribute {name!r}")
