"""The one place that removes secrets, by value and by key, from whatever is about to be written, shown or raised.

By value: every secret the program has seen (a key from the environment, from a file, from an option) is registered with
`remember`, and `redact` blanks it wherever it occurs. By key: `redact_json` blanks values whose key names a secret, known
or not, and keeps the shape of the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from sharpen.core.digest import Json

BLANK = "[redacted]"

_NAMES = re.compile(
    r"(?:^|[_\-.])(api_?key|key|token|secret|password|passwd|authorization|auth|credential|cookie)s?$", re.IGNORECASE
)
_HARMLESS = frozenset({"max_tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "tokens"})
_INLINE = re.compile(r"(?i)\b(bearer\s+|sk-|api[_-]?key[=:]\s*)([A-Za-z0-9_\-.]{8,})")
_SHORTEST = 6

_known: set[str] = set()


def remember(secret: str | None) -> None:
    """Register a secret, so that it is blanked from now on. Very short values would blank ordinary text: ignored."""
    secret = (secret or "").strip()
    if len(secret) >= _SHORTEST:
        _known.add(secret)


def remember_environment(environ: Mapping[str, str] | None = None) -> None:
    """Register the value of every environment variable whose name names a secret."""
    for name, value in (os.environ if environ is None else environ).items():
        if names_secret(name):
            remember(value)


def names_secret(key: str) -> bool:
    return key.lower() not in _HARMLESS and _NAMES.search(key) is not None


def redact_known(text: str) -> str:
    """`text` without any secret that is known by value. For text that is data: nothing else in it is touched."""
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, BLANK)
    return text


def redact(text: str) -> str:
    """`text` without any secret that is known by value or recognisable by its form."""
    text = redact_known(text)
    return _INLINE.sub(lambda match: match.group(1) + BLANK, text)


def redact_json(value: Json) -> Json:
    """A JSON value without secrets: by key where the key names one, by value everywhere else."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _blank(inner) if names_secret(str(key)) else redact_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(inner) for inner in value]
    return value


def _blank(value: Json) -> Json:
    """A value whose key names a secret: every text in it is one."""
    if isinstance(value, str):
        return BLANK if value else value
    if isinstance(value, Mapping):
        return {key: _blank(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_blank(inner) for inner in value]
    return value
