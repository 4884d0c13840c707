"""The one place that removes secrets, by value and by key, from whatever is about to be written, shown or raised.

By value: every secret the program has seen (a key from the environment, from a file, from an option) is registered with
`remember`, and `redact` blanks it wherever it occurs: as it is, as JSON, `repr` or an address would write it, and each
longer line of one that has several. By form: `redact` also blanks what looks like a key, a password in an address among
them. By key: `redact_json` blanks values whose key names a secret, known or not, and keeps the shape of the rest.
Numbers are never secrets: token counts stay. What names a secret and what looks like one is said in `secrecy.py`.

A value of 6 characters or more is remembered if a model uses it as its key, or if it stands under a secret's name in the
user's own settings. One from the environment, where names are chosen by others, must look like a secret as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from sharpen.core.digest import Json
from sharpen.core.secrecy import (
    BLANK,
    is_ordinary,
    is_placeholder,
    looks_secret,
    may_hold_secret,
    names_secret,
    secrets_in,
)

__all__ = [
    "BLANK", "is_clean", "names_secret", "redact", "redact_json", "redact_known", "remember", "remember_environment",
    "remember_settings",
]  # fmt: skip

_SHORTEST = 6
_SHORTEST_LINE = 12

_known: set[str] = set()
"""Every text to blank."""
_ordered: dict[str, str] = {}
"""The same texts, the longest first, and how each stands in a line of JSON: worked out when it is next asked for."""


def remember(secret: str | None) -> None:
    """Register a secret, so that it is blanked from now on. Very short values and placeholders (`ollama`, `none`) would
    blank ordinary text: ignored."""
    if not is_placeholder((secret or "").strip()):
        _register(secret or "")


def remember_environment(environ: Mapping[str, str] | None = None) -> None:
    """Register the value of every environment variable whose name names a secret, and passwords in addresses, where
    they look like secrets."""
    for name, value in (os.environ if environ is None else environ).items():
        for secret in [value] if names_secret(name) else _found(value):
            if looks_secret(secret.strip()):
                _register(secret)


def remember_settings(value: Json, *, named: bool = False) -> None:
    """Register every text of some settings whose key names a secret, and what looks like a key or a password."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            remember_settings(inner, named=named or names_secret(str(key)))
    elif isinstance(value, list | tuple):
        for inner in value:
            remember_settings(inner, named=named)
    elif isinstance(value, str):
        for secret in [value] if named else (found for found in _found(value) if not is_ordinary(found)):
            _register(secret)


def redact_known(text: str) -> str:
    """`text` without any secret that is known by value. For text that is data: nothing else in it is touched."""
    for secret in _texts():
        if secret in text:
            text = text.replace(secret, BLANK)
    return text


def redact(text: str) -> str:
    """`text` without any secret that is known by value or recognisable by its form."""
    text = redact_known(text)
    places = sorted(secrets_in(text))
    if not places:
        return text
    pieces, end = [], 0
    for start, stop in places:
        if start >= end:
            pieces += [text[end:start], BLANK]
        end = max(end, stop)
    return "".join((*pieces, text[end:]))


def is_clean(line: str) -> bool:
    """Whether a line of JSON certainly holds nothing that `redact_json` would blank. A no is not certain."""
    if may_hold_secret(line) or "\\u" in line:
        return False
    return not any(secret in line or in_json in line for secret, in_json in _texts().items())


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


def _found(text: str) -> Iterator[str]:
    return (text[start:stop] for start, stop in secrets_in(text))


def _register(secret: str) -> None:
    secret = secret.strip()
    if len(secret) < _SHORTEST:
        return
    texts = {secret}
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        texts.update(line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("-----"))
    _known.update(form for text in texts for form in _written(text))


def _texts() -> dict[str, str]:
    global _ordered
    if _ordered.keys() != _known:  # a new one, because another thread may be going through the old one
        _ordered = {text: _in_json(text) for text in sorted(_known, key=len, reverse=True)}
    return _ordered


def _written(text: str) -> set[str]:
    """A text as it is, and as it stands in what others make of it. `repr` marks a single quote or not, depending on what
    else is in the same string."""
    as_literal = repr(f'"{text}')[2:-1]
    return {
        text,
        _in_json(text),
        json.dumps(text)[1:-1],
        as_literal,
        as_literal.replace("\\'", "'"),
        quote(text, safe="", errors="replace"),
    }


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
