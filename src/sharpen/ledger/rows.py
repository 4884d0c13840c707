"""Values of the ledger's rows as SQLite can hold them, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from sharpen.core.usage import Usage


def as_text(text: str) -> str | bytes:
    """Text as SQLite can hold it: half a surrogate pair, which models and data do bring, has no UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def read_text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")


@lru_cache(4096)
def read_usage(text: str) -> Mapping[str, Usage]:
    """Shared by all rollouts that used the same, which many do."""
    return MappingProxyType({role: Usage(*row) for role, row in json.loads(text).items()})


def read_measures(text: str | None) -> dict[str, float]:
    return {} if text is None else json.loads(text)
