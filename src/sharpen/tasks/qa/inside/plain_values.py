"""Values as plain JSON and back: what a program and its tests can say to each other across two processes.

Numbers, texts, lists and what is made of them cross as copies. A subclass crosses as what it is a kind of: a `Counter` as
a dict, a named tuple as a tuple. What comes out of `decode` has Python's own types and nothing else, so that comparing it
runs no code of a program. Anything else is not plain, and is `keep`'s business.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing `typing` takes as long as half of starting Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BIG = 10_000
"""Bits from which a whole number is written in hexadecimal: Python takes no longer ones in decimal."""
_FROM_TEXT: dict[str, Callable[[Any, str], Any]] = {
    "decimal.Decimal": lambda kind, text: kind(text),
    "fractions.Fraction": lambda kind, text: kind(*map(int, text.split("/"))),
    "datetime.date": lambda kind, text: kind.fromisoformat(text),
    "datetime.datetime": lambda kind, text: kind.fromisoformat(text),
    "datetime.time": lambda kind, text: kind.fromisoformat(text),
}


def encode(value: Any, keep: Callable[[Any], Any]) -> Any:
    """The value as JSON can hold it. `keep` says what stands for one that is not plain."""
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        return {"int": hex(value)} if value.bit_length() > _BIG else int(value)
    if isinstance(value, list):
        return [encode(part, keep) for part in value]
    for kind, tag in ((tuple, "tuple"), (set, "set"), (frozenset, "frozenset")):
        if isinstance(value, kind):
            return {tag: [encode(part, keep) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, keep), encode(part, keep)] for key, part in value.items()]}
    if isinstance(value, bytes | bytearray):
        return {"bytes" if isinstance(value, bytes) else "bytearray": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if name in _FROM_TEXT:
        iso = name.startswith("datetime.")
        text = value.isoformat() if iso else f"{value.numerator}/{value.denominator}" if "Fr" in name else str(value)
        return {"text": [name, text]}
    return keep(value)


def decode(data: Any, lookup: Callable[[Any], Any]) -> Any:
    """The value that `data` stands for; `lookup` finds what was kept. ValueError or TypeError where it stands for none."""
    if isinstance(data, list):
        return [decode(part, lookup) for part in data]
    if not isinstance(data, dict):
        return data
    ((tag, inner),) = data.items()
    if tag == "kept":
        return lookup(inner)
    if tag == "dict":
        return {decode(key, lookup): decode(part, lookup) for key, part in inner}
    if tag == "text":
        module, _, name = inner[0].partition(".")
        return _FROM_TEXT[inner[0]](getattr(importlib.import_module(module), name), inner[1])
    return _FROM_DATA[tag](inner, lookup)


_FROM_DATA: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "int": lambda inner, _: int(inner, 16),
    "tuple": lambda inner, lookup: tuple(decode(part, lookup) for part in inner),
    "set": lambda inner, lookup: {decode(part, lookup) for part in inner},
    "frozenset": lambda inner, lookup: frozenset(decode(part, lookup) for part in inner),
    "bytes": lambda inner, _: bytes.fromhex(inner),
    "bytearray": lambda inner, _: bytearray.fromhex(inner),
    "complex": lambda inner, _: complex(*inner),
    "range": lambda inner, _: range(*inner),
}
