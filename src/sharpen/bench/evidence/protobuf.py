"""Protocol buffers as they stand: the fields of a message by number, without knowing what they mean."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Field = int | bytes


class Malformed(ValueError):
    """The bytes are no protocol buffer."""


def fields(data: bytes) -> Iterator[tuple[int, Field]]:
    """(number, value) of every field: a number for varints, bytes for all other kinds."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise Malformed(f"a field of the unknown kind {kind}")
        if at + size > end:
            raise Malformed("a field that is longer than its message")
        yield number, data[at : at + size]
        at += size


def text(value: Field) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def floating(value: Field) -> float:
    """Four or eight bytes as the number they are."""
    assert isinstance(value, bytes)
    found: float = struct.unpack("<f" if len(value) == 4 else "<d", value)[0]
    return found


def signed(value: Field) -> int:
    """A varint as the signed number of 64 bits that it was."""
    assert isinstance(value, int)
    return value - (1 << 64) if value >= 1 << 63 else value


def zigzag(value: Field) -> int:
    """A varint of the kind that folds negative numbers between the positive ones."""
    assert isinstance(value, int)
    return (value >> 1) ^ -(value & 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number that does not end")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return found, at
