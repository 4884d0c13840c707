"""Which keys a ledger may hold, in little memory."""

from __future__ import annotations

import mmap


class KeyFilter:
    """Which keys may be stored, in two megabytes however many there are. A no is certain and saves asking the database,
    which new requests would do in vain; a yes is not, and is looked up."""

    def __init__(self) -> None:
        # Memory that is there once it is touched: a ledger of a few replies takes a few pages.
        self._bits = mmap.mmap(-1, 1 << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def add(self, key: bytes) -> None:
        place = int.from_bytes(key[-3:], "big")
        self._bits[place >> 3] |= 1 << (place & 7)

    def may_hold(self, key: bytes) -> bool:
        place = int.from_bytes(key[-3:], "big")
        return bool(self._bits[place >> 3] & 1 << (place & 7))
