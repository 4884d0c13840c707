"""Content identity. One canonical way to turn a JSON value into bytes, and one digest of those bytes.

Everything that is "the same" in sharpen (an item, a candidate, a job, a rollout that was paid for) is the same because its
digest is. The canonical form sorts keys, keeps non-ASCII text as it is and refuses NaN, so that it is stable across
platforms and Python versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value that `json.dumps` accepts: None, bool, int, float, str, and lists and string-keyed mappings of those."""


def encoder(*, sort_keys: bool = False, separators: tuple[str, str] = (", ", ": ")) -> Callable[[Json], str]:
    """`json.dumps` with these settings, non-ASCII text as it stands and no NaN, made once: `dumps` and the encoder class
    build their inner workings anew for every value, which for small values takes longer than the writing."""
    between, after_key = separators
    make = json.encoder.c_make_encoder  # type: ignore[attr-defined]
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=sort_keys, separators=separators).encode
    text = json.encoder.encode_basestring
    pieces = make(None, json.JSONEncoder().default, text, None, after_key, between, sort_keys, False, False)
    return lambda value: "".join(pieces(value, 0))


_canonical = encoder(sort_keys=True, separators=(",", ":"))


def canonical(value: Json) -> str:
    """The one text form of a JSON value: sorted keys, no spaces, UTF-8 as it stands."""
    return _canonical(value)


def digest(value: Json) -> str:
    """The SHA-256 of a JSON value's canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
