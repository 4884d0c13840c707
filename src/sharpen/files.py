"""The one place that writes files: whole or not at all, and whole lines at a time.

`write_atomic` leaves either the old content or the new, whatever happens in between. `append_line` adds one line with
one system call, so that a reader never sees half of it while the writer lives; `complete_lines` reads such a file and
drops a last line that a crash cut short.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sharpen.core.digest import Json
from sharpen.core.errors import StorageError
from sharpen.core.redact import redact_json

_TEMPORARY = ".tmp~"


def storage_error(path: Path, error: OSError) -> StorageError:
    """The message for a disk that is full, read-only or otherwise unwilling."""
    why = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "no permission",
        errno.EFBIG: "the file size limit is reached",
    }.get(error.errno or 0, error.strerror or str(error))
    return StorageError(f"cannot write {path}: {why}")


def write_atomic(path: Path, text: str | bytes) -> None:
    """Replace `path` by `text` in one step: temporary file beside it, fsync, rename."""
    data = text.encode() if isinstance(text, str) else text
    try:
        handle, temporary = _beside(path)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise storage_error(path, error) from error


def _beside(path: Path) -> tuple[int, str]:
    try:
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_TEMPORARY)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_TEMPORARY)


def sweep(folder: Path) -> None:
    """Remove the temporary files that a process killed within `write_atomic` left. Only for who alone writes there."""
    for path in folder.rglob(f".*{_TEMPORARY}"):
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Json) -> None:
    """Write a JSON value for people and programs to read, without secrets."""
    write_atomic(path, json.dumps(redact_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def append_line(descriptor: int, line: bytes, path: Path) -> None:
    """Add one line to an open file, in one write."""
    try:
        written = os.write(descriptor, line + b"\n")
        if written != len(line) + 1:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise storage_error(path, error) from error


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each whole line of a file with the offset just behind it; a last line without its newline is left out."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield offset, line[:-1]
