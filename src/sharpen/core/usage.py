"""What something cost: calls, tokens, money. Unknown money stays unknown, it never becomes zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Consumption of one or many model calls. `cached_tokens` are the part of `prompt_tokens` the endpoint had ready."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        money = None if self.money is None or other.money is None else self.money + other.money
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            money,
        )

    def row(self) -> list[int | float | None]:
        """The compact form that is stored."""
        return [self.calls, self.prompt_tokens, self.cached_tokens, self.completion_tokens, self.money]

    def told(self) -> list[int | float | None]:
        """The form that stands in events: without what was cached, which depends on what ran before and beside."""
        return [self.calls, self.prompt_tokens, self.completion_tokens, self.money]

    @staticmethod
    def from_told(row: Sequence[Any]) -> Usage:
        calls, prompt_tokens, completion_tokens, money = row
        return Usage(calls, prompt_tokens, 0, completion_tokens, money)


NOTHING = Usage()
