"""The one place that removes secrets, by value and by key, from whatever is about to be written, shown or raised.

By value: every secret the program has seen (a key from the environment, from a file, from an option) is registered with
`remember`, and `redact` blanks it wherever it occurs. By form: `redact` also blanks what looks like a key, a password in an
address among them. By key: `redact_json` blanks values whose key names a secret, known or not, and keeps the shape of the
rest. Numbers are never secrets: token counts stay.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache

from sharpen.core.digest import Json

BLANK = "[redacted]"

_NAMES = re.compile(
    r"(?:^|[_\-.])(api_?key|key|token|secret|password|passwd|authorization|auth|credential|cookie)s?$", re.IGNORECASE
)
_HARMLESS = frozenset({"max_tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "tokens"})
_INLINE = re.compile(
    r"(?i)(\b(?:bearer\s+|sk-|api[_-]?key[=:]\s*)(?=[A-Za-z0-9_\-.]{8})"
    r"|[?&](?:api[_-]?key|key|(?:access[_-]?)?token|secret|password|passwd|auth|sig(?:nature)?)=)([A-Za-z0-9_\-.%+/~]+)"
)
_IN_ADDRESS = re.compile(r"(://[^/\s:@\"']*:)([^/\s@\"']+)(?=@)")
_SUSPECT = re.compile(r"bearer|sk-|key|token|secret|passw|auth|credential|cookie|[?&]sig|://[^/\s]*@", re.IGNORECASE)
"""Some piece of everything that `_NAMES`, `_INLINE` and `_IN_ADDRESS` can match."""
_SHORTEST = 6

_known: set[str] = set()


def remember(secret: str | None) -> None:
    """Register a secret, so that it is blanked from now on. Very short values would blank ordinary text: ignored."""
    secret = (secret or "").strip()
    if len(secret) >= _SHORTEST:
        _known.add(secret)


def remember_environment(environ: Mapping[str, str] | None = None) -> None:
    """Register the value of every environment variable whose name names a secret, and passwords in addresses."""
    for name, value in (os.environ if environ is None else environ).items():
        remember_settings({name: value})


def remember_settings(value: Json, *, named: bool = False) -> None:
    """Register every text of some settings whose key names a secret, and what looks like a key or a password."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            remember_settings(inner, named=named or names_secret(str(key)))
    elif isinstance(value, list | tuple):
        for inner in value:
            remember_settings(inner, named=named)
    elif isinstance(value, str):
        if named:
            remember(value)
        elif _SUSPECT.search(value):
            for found in (*_INLINE.finditer(value), *_IN_ADDRESS.finditer(value)):
                remember(found.group(2))


@lru_cache(4096)
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
    if not _SUSPECT.search(text):
        return text
    text = _INLINE.sub(lambda match: match.group(1) + BLANK, text)
    return _IN_ADDRESS.sub(lambda match: match.group(1) + BLANK, text)


def is_clean(line: str) -> bool:
    """Whether a line of JSON certainly holds nothing that `redact_json` would blank. A no is not certain."""
    if _SUSPECT.search(line) or "\\u" in line:
        return False
    return not any(secret in line or json.dumps(secret, ensure_ascii=False)[1:-1] in line for secret in _known)


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
