"""The one place that removes secrets, by value and by key, from whatever is about to be written, shown or raised.

By value: every secret the program has seen (a key from the environment, from a file, from an option) is registered with
`remember`, and `redact` blanks it wherever it occurs: as it is, as JSON, `repr`, an address, base64 or hex would write it,
and each longer line of one that has several. By form: `redact` also blanks what looks like a key, a password in an address
among them. By key: `redact_json` blanks values whose key names a secret, known or not, and keeps the shape of the rest.
Numbers are never secrets: token counts stay. What names a secret and what looks like one is said in `secrecy.py`.

A value of 6 characters or more is remembered if a model uses it as its key, or if it stands under a secret's name in the
user's own settings; one from the environment, where names are chosen by others, from 8 characters on. Never remembered is
what occurs in ordinary text (`is_ordinary`: a word or a number of fewer than 16 characters, a path, a placeholder): blanking
the word `reflact` in every file would protect nobody and leave a run that can't be read back.

`redact_echo` is for what an endpoint says when it refuses: it was given the key and may quote pieces of it.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from sharpen.core.digest import Json
from sharpen.core.secrecy import (
    BLANK,
    is_ordinary,
    looks_secret,
    may_hold_secret,
    names_secret,
    secrets_in,
)

__all__ = [
    "BLANK", "holds_known", "is_clean", "names_secret", "redact", "redact_echo", "redact_json", "redact_known", "remember",
    "remember_environment", "remember_settings",
]  # fmt: skip

_SHORTEST = 6
_SHORTEST_LINE = 12

_SHORTEST_ENCODED = 8
_PIECE = 8
"""Characters of a key that an endpoint may not quote in a row."""
_MASKED = re.compile(r"[\w\-.+/=]*(?:\*{2,}|[•●∙·…]+)[\w\-.+/=*•●∙·…]*")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True)
class _Forms:
    """Every text to blank, the longest first; with how each stands in a line of JSON; worked out from the values `of`."""

    of: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    in_lines: frozenset[str] = frozenset()


_known: set[str] = set()
"""The secrets themselves."""
_forms = _Forms()


def remember(secret: str | None) -> None:
    """Register a secret, so that it is blanked from now on. Very short values, words and placeholders (`ollama`, `none`)
    would blank ordinary text: ignored."""
    if not is_ordinary((secret or "").strip()):
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
        for secret in [value] if named else _found(value):
            remember(secret)


def redact_known(text: str) -> str:
    """`text` without any secret that is known by value. For text that is data: nothing else in it is touched."""
    for secret in _all_forms().texts:
        if secret in text:
            text = text.replace(secret, BLANK)
    return text


def redact(text: str) -> str:
    """`text` without any secret that is known by value or recognisable by its form."""
    text = redact_known(text)
    return _without(text, sorted(secrets_in(text)))


def _without(text: str, places: Iterable[tuple[int, int]]) -> str:
    """A text with a blank in the place of each stretch, from first to last; those that overlap share one."""
    pieces, end = [], 0
    for start, stop in places:
        if start >= end:
            pieces += [text[end:start], BLANK]
        end = max(end, stop)
    return "".join((*pieces, text[end:]))


def redact_echo(text: str) -> str:
    """`text` by somebody who knows the secrets: also without pieces of them, and without what is masked already."""
    text = _MASKED.sub(BLANK, redact(text))
    pieces = {
        form[start : start + _PIECE]
        for form in (known.translate(_LOWER) for known in _all_forms().texts)
        for start in range(len(form) - _PIECE + 1)
    }
    plain = text.translate(_LOWER)
    places = [start for start in range(len(plain) - _PIECE + 1) if plain[start : start + _PIECE] in pieces]
    return _without(text, ((start, start + _PIECE) for start in places))


def holds_known(text: str) -> bool:
    """Whether a text, or a line of JSON, holds a secret that is known by value, as it is."""
    return any(secret in text or _in_json(secret) in text for secret in _known)


def is_clean(line: str) -> bool:
    """Whether a line of JSON certainly holds nothing that `redact_json` would blank. A no is not certain."""
    if may_hold_secret(line) or "\\u" in line:
        return False
    return not any(text in line for text in _all_forms().in_lines)


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
    _known.add(secret)
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        _known.update(line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("-----"))


def _all_forms() -> _Forms:
    global _forms
    if _forms.of != _known:  # a new one, because another thread may be going through the old one
        texts = sorted({form for secret in _known for form in _written(secret)}, key=len, reverse=True)
        _forms = _Forms(frozenset(_known), tuple(texts), frozenset(texts) | frozenset(map(_in_json, texts)))
    return _forms


def _written(text: str) -> set[str]:
    """A text as it is, and as it stands in what others make of it. `repr` marks a single quote or not, depending on what
    else is in the same string."""
    as_literal = repr(f'"{text}')[2:-1]
    forms = {
        text,
        _in_json(text),
        json.dumps(text)[1:-1],
        as_literal,
        as_literal.replace("\\'", "'"),
        quote(text, safe="", errors="replace"),
    }
    return forms if len(text) < _SHORTEST_ENCODED else forms | _encoded(text.encode("utf-8", "surrogatepass"))


def _encoded(data: bytes) -> set[str]:
    """Some bytes as hex, and as base64 writes them wherever they stand among others: three ways, without the ends, which
    depend on what is around them."""
    forms = {data.hex(), data.hex().upper()}
    for before in range(3):
        start, stop = (before * 8 + 5) // 6, (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.add(encode(bytes(before) + data).decode()[start:stop])
    return forms


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
