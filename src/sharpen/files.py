"""The one place that writes files: whole or not at all, and whole lines at a time.

`write_atomic` leaves either the old content or the new, whatever happens in between, and `write_folder` does the same for a
whole folder. `append_line` adds one line with
one system call, so that a reader never sees half of it while the writer lives; `complete_lines` reads such a file and
drops a last line that a crash cut short.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sharpen.core.digest import Json
from sharpen.core.errors import StorageError
from sharpen.core.redact import is_clean, redact_json

TEMPORARY = ".tmp~"


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
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise storage_error(path, error) from error


def _beside(path: Path) -> tuple[int, str]:
    """A new file beside `path`, open to write. Its rights are those that the user's umask leaves, as those of any file."""
    while True:
        name = _temporary_name(path)
        try:
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), name
        except FileExistsError:
            continue
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)


def _folder_beside(path: Path) -> Path:
    """A new folder beside `path`, with the rights that the user's umask leaves."""
    while True:
        with suppress(FileExistsError):
            folder = Path(_temporary_name(path))
            folder.mkdir()
            return folder


def _temporary_name(path: Path) -> str:
    return str(path.with_name(f".{path.name}.{os.urandom(6).hex()}{TEMPORARY}"))


def sync_file(path: Path) -> None:
    """Wait until what was written to a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor) if hasattr(os, "fdatasync") else os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(*folders: Path) -> None:
    """Wait until the names in these folders are on the disk: a file that is there has no name to be found by otherwise."""
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        finally:
            os.close(descriptor)


_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""What file systems say that know no syncs of folders. They have their own ways, or none."""


def write_folder(path: Path, contents: Mapping[str, str | bytes | Path]) -> None:
    """Replace the folder `path` by one with these files, in one step; it is on the disk then. A file that is given by its
    path is taken over as it is: as another name of the same file where that can be, else as a copy. So it must never be
    written to again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = _folder_beside(path)
        try:
            for name, content in contents.items():
                _put(made / name, content)
            sync_folders(*dict.fromkeys((*((made / name).parent for name in contents), made)))
            _swap(made, path)
            sync_folders(path.parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise storage_error(path, error) from error


def link(source: Path, path: Path) -> None:
    """Make `path` another name of a file that is never written to again, in one step, in place of what it was."""
    try:
        made = _folder_beside(path)
        try:
            _put(made / path.name, source)
            os.replace(made / path.name, path)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise storage_error(path, error) from error


def _put(path: Path, content: str | bytes | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        try:
            os.link(content, path)
        except OSError:
            shutil.copyfile(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_EXCHANGE = 2
_HERE = -100
"""Linux: RENAME_EXCHANGE, and paths as they are (AT_FDCWD)."""


def _swap(made: Path, path: Path) -> None:
    """Put a new folder in an old one's place; what was there before ends up where the new one was."""
    if not path.exists():
        os.rename(made, path)
        return
    import ctypes  # here alone: a command that writes no checkpoint need not load it

    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is not None and exchange(_HERE, os.fsencode(made), _HERE, os.fsencode(path), _EXCHANGE) == 0:
        return
    # Where two folders can't change places at once there is a moment without either.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY) as aside:
        os.rename(path, Path(aside) / path.name)
        os.rename(made, path)


def sweep(folder: Path, *, inside: bool = True) -> None:
    """Remove the temporary files and folders that a process killed within a write left, those in folders `inside` too. Only
    for who alone writes there."""
    for path in [*(folder.rglob if inside else folder.glob)(f".*{TEMPORARY}")]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def write_json(path: Path, value: Json) -> None:
    """Write a JSON value for people and programs to read, without secrets."""
    write_atomic(path, json_text(value))


def json_text(value: Json) -> str:
    """A JSON value as it stands in a file, without secrets: what fits in a line is on one, the rest is indented."""
    clean = value if is_clean(_ENCODER.encode(value)) else redact_json(value)
    return _laid_out(clean, "") + "\n"


_WIDTH = 110
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=lambda other: _plain(other))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _laid_out(value: Json, margin: str) -> str:
    line = _ENCODER.encode(value)
    if len(line) + len(margin) <= _WIDTH or not isinstance(value, Mapping | list | tuple):
        return line
    inner = f"{margin}  "
    if isinstance(value, Mapping):
        names = (_ENCODER.encode(key if isinstance(key, str) else _ENCODER.encode(key)) for key in value)
        rows = [f"{inner}{name}: {_laid_out(one, inner)}" for name, one in zip(names, value.values(), strict=True)]
        return "{\n" + ",\n".join(rows) + f"\n{margin}}}"
    return "[\n" + ",\n".join(f"{inner}{_laid_out(one, inner)}" for one in value) + f"\n{margin}]"


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
