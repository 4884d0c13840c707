"""The contract of a model.

A model turns a `Request` into a `Reply`, or raises `ModelError` with a kind; it does not retry, does not limit its own
concurrency and does not store anything: the engine does that for all models alike. One model object serves one job and
may be asked many things at once from one event loop. `open` and `close` bracket its life; `complete` may be called only
in between. A model never logs, prints or raises a secret.

A model that answers within this process may say so by an attribute `in_process = True`: its calls cost nothing where the
process is killed, and need not be on record before they are made.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json


@runtime_checkable
class Model(Protocol):
    """What the engine needs to know of a model."""

    @property
    def name(self) -> str:
        """The string it was asked for by, such as `local/smollm2-135m`."""

    @property
    def family(self) -> str:
        """`local`, `openai`, `scripted`, ...: what a task's preferred rendering is looked up by."""

    @property
    def identity(self) -> Json:
        """Everything about the model and its settings that may change an answer. Part of every ledger key; no secrets."""

    @property
    def deterministic(self) -> bool:
        """Whether the same request always brings the same text, so that drawing again tells nothing new."""

    @property
    def render(self) -> str:
        """The rendering that suits it: `system`, `turns` or `completion`."""

    @property
    def endpoint(self) -> str:
        """What shares a rate limit with what: one limiter per endpoint."""

    @property
    def concurrency(self) -> int:
        """The most calls worth having under way at once."""

    def bound(self, request: Request) -> tuple[int, float | None]:
        """The most tokens this request can use, and the most money it can cost (None where no price is known)."""

    async def open(self) -> None: ...
    async def complete(self, request: Request) -> Reply: ...
    async def close(self) -> None: ...
