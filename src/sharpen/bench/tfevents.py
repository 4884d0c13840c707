"""The bytes of TensorBoard's event files, made with the standard library alone.

A file is a row of records, each framed by its length and by masked CRC-32C sums; a record is a protocol buffer, of which
this module knows the few messages that scalars, texts and the settings of a run need. Pure: values in, bytes out, the same
bytes for the same values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_STRING_TENSOR = 7


@dataclass(frozen=True)
class Record:
    """What happened at a moment: numbers and texts by their tags. `settings` fill the page that compares runs."""

    at: float
    step: int
    scalars: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str | float | bool] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not (self.scalars or self.texts or self.settings)


def encode(records: Iterable[Record]) -> bytes:
    """A whole event file. More records at the end only add bytes at the end, so a file can be carried on."""
    made = bytearray()
    for record in records:
        if not made:
            made += _framed(_double(1, record.at) + _text(3, "brain.Event:2"))
        made += _framed(_event(record))
    return bytes(made)


def _event(record: Record) -> bytes:
    values = [
        *(_bytes(1, _text(1, tag) + _float(2, value)) for tag, value in record.scalars.items()),
        *(_bytes(1, _text_value(tag, text)) for tag, text in record.texts.items()),
    ]
    if record.settings:
        values.append(_bytes(1, _settings_value(record)))
    return _double(1, record.at) + _number(2, record.step) + _bytes(5, b"".join(values))


def _text_value(tag: str, text: str) -> bytes:
    """A text is a tensor of one string that the text plugin shows as Markdown."""
    shape = _bytes(2, _bytes(2, _number(1, 1)))
    tensor = _number(1, _STRING_TENSOR) + shape + _text(8, text)
    return _text(1, tag) + _bytes(8, tensor) + _bytes(9, _bytes(1, _text(1, "text")))


def _settings_value(record: Record) -> bytes:
    """The settings of a run as the plugin `hparams` wants them: the start of a session."""
    entries = b"".join(_bytes(1, _text(1, name) + _bytes(2, _any(value))) for name, value in record.settings.items())
    start = _bytes(3, entries + _double(5, record.at))
    plugin = _text(1, "hparams") + _bytes(2, start)
    empty = _number(1, 1) + _bytes(2, b"")  # a tensor the plugin asks for and does not read
    return _text(1, "_hparams_/session_start_info") + _bytes(8, empty) + _bytes(9, _bytes(1, plugin))


def _any(value: str | float | bool) -> bytes:
    """`google.protobuf.Value`."""
    if isinstance(value, bool):
        return _number(4, int(value))
    return _text(3, value) if isinstance(value, str) else _double(2, float(value))


def _framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join((length, _masked(length), data, _masked(data)))


def _masked(data: bytes) -> bytes:
    """The sum of some bytes, turned and shifted so that a sum over data with sums in it still tells something."""
    found = crc32c(data)
    turned = ((found >> 15) | (found << 17)) + _MASK
    return struct.pack("<I", turned & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """CRC-32 with Castagnoli's polynomial; zlib has the other one."""
    found = 0xFFFFFFFF
    for byte in data:
        found = _TABLE[(found ^ byte) & 0xFF] ^ (found >> 8)
    return found ^ 0xFFFFFFFF


def _table_entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (_POLYNOMIAL if number & 1 else 0)
    return number


_TABLE = tuple(_table_entry(number) for number in range(256))


def _varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3 | _VARINT) + _varint(value)


def _double(place: int, value: float) -> bytes:
    return _varint(place << 3 | _FIXED64) + struct.pack("<d", value)


def _float(place: int, value: float) -> bytes:
    return _varint(place << 3 | _FIXED32) + struct.pack("<f", value)


def _bytes(place: int, value: bytes) -> bytes:
    return _varint(place << 3 | _BYTES) + _varint(len(value)) + value


def _text(place: int, value: str) -> bytes:
    return _bytes(place, value.encode(errors="replace"))
