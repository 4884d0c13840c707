"""Reading a ledger that can't be written to: on a read-only disk, or in somebody else's folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sharpen.ledger.extent import copy_ledger
from sharpen.ledger.store import Ledger


@contextmanager
def open_to_read(ledger: Path) -> Iterator[Ledger]:
    """An open ledger to look things up in. Where it can't be written to it is a copy, which is gone afterwards."""
    if os.access(ledger, os.W_OK) and os.access(ledger.parent, os.W_OK):
        with Ledger(ledger) as opened:
            yield opened
        return
    with (
        tempfile.TemporaryDirectory(prefix="sharpen-ledger-") as folder,
        Ledger(copy_ledger(ledger, Path(folder))) as opened,
    ):
        yield opened
