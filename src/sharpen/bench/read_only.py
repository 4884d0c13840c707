"""A run that can't be written to: on a read-only disk, or in somebody else's folder. It is derived from in a copy."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sharpen.bench.layout import RunFolder


def can_write(folder: RunFolder) -> bool:
    """Whether files can be written into a run's folder."""
    return os.access(folder.path, os.W_OK)


@contextmanager
def writable(folder: RunFolder) -> Iterator[RunFolder]:
    """The run where it can be written to; else a copy of it, which is gone afterwards."""
    if can_write(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="sharpen-run-") as name:
        copy = Path(name) / folder.path.resolve().name
        shutil.copytree(folder.path, copy, symlinks=True, ignore=shutil.ignore_patterns("lock", "*-shm", ".*~"))
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
        yield RunFolder(copy, folder.task)
