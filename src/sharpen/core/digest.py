"""Content identity. One canonical way to turn a JSON value into bytes, and one digest of those bytes.

Everything that is "the same" in sharpen (an item, a candidate, a job, a rollout that was paid for) is the same because its
digest is. The canonical form sorts keys, keeps non-ASCII text as it is and refuses NaN, so that it is stable across
platforms and Python versions.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value that `json.dumps` accepts: None, bool, int, float, str, and lists and string-keyed mappings of those."""

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Json) -> str:
    """The one text form of a JSON value: sorted keys, no spaces, UTF-8 as it stands."""
    return _encoder.encode(value)


def digest(value: Json) -> str:
    """The SHA-256 of a JSON value's canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
