"""Which key goes to which endpoint. A key is configured for an address, and goes nowhere else.

`OPENAI_API_KEY` belongs to the address in `OPENAI_BASE_URL`, or to OpenAI's own where that is not set. `SHARPEN_API_KEY`
belongs to the addresses in `SHARPEN_BASE_URL` (several are separated by spaces); where that is not set, to those the user
names. That a run which somebody sent names none is seen to where such runs are opened (`bench/trust.py`).
"""

from __future__ import annotations

import os
from urllib.parse import parse_qs, urlsplit

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY, OPENAI_BASE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
SHARPEN_KEY, SHARPEN_BASE = "SHARPEN_API_KEY", "SHARPEN_BASE_URL"
_PORTS = {"http": 80, "https": 443}


def find_key(url: str) -> str | None:
    """The key that is configured for an endpoint; None where there is none."""
    variable = key_variable(url)
    return None if variable is None else os.environ.get(variable) or None


def key_variable(url: str) -> str | None:
    """The variable whose key would be sent to an endpoint; None where none that is set may be."""
    bound = os.environ.get(SHARPEN_BASE, "").split()
    choices = (
        (SHARPEN_KEY, any(is_same(url, base) for base in bound)),
        (OPENAI_KEY, is_same(url, os.environ.get(OPENAI_BASE) or OPENAI_URL)),
        (SHARPEN_KEY, not bound),
    )
    return next((variable for variable, fits in choices if fits and os.environ.get(variable)), None)


def is_same(url: str, other: str) -> bool:
    """Whether two addresses are the same endpoint."""
    return place(url) == place(other)


def goes_by_name(url: str) -> bool:
    """Whether a key would go to an endpoint for no other reason than that it is named."""
    return key_variable(url) == SHARPEN_KEY and not os.environ.get(SHARPEN_BASE)


def address_in(name: str) -> str | None:
    """The address that a model's name holds; None where it holds none."""
    if name.startswith(("http://", "https://")):
        return name.partition("#")[0].partition("?")[0]
    query = parse_qs(name.partition("?")[2]) if name.startswith("openai/") else {}
    return query["base_url"][-1] if "base_url" in query else None


def place(url: str) -> list[str | int | None]:
    """What tells an endpoint from another: scheme, host, port and path."""
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    return [parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme), parts.path.rstrip("/")]


def advise() -> str:
    """What to do where an endpoint wants a key and none was sent."""
    missing = "check the API key: none was sent"
    if os.environ.get(SHARPEN_KEY):
        return f"{missing}; {SHARPEN_KEY} goes only to {os.environ.get(SHARPEN_BASE)} ({SHARPEN_BASE})"
    if os.environ.get(OPENAI_KEY):
        home = os.environ.get(OPENAI_BASE) or OPENAI_URL
        return f"{missing}; {OPENAI_KEY} goes only to {home}; set {SHARPEN_KEY} for this endpoint"
    return f"{missing}; set {SHARPEN_KEY} for this endpoint"
