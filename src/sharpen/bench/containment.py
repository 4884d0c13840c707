"""A run folder holds everything that is read from it: no link in it leads out, and everything in it is a file or a folder.

A folder that somebody sent may hold a link to any file of this machine, which would then be shown, sent to a model, or
written to; and a pipe in place of a file, on which a reader waits for ever. Both are refused before anything is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sharpen.core.errors import UsageError


def check_contained(folder: Path) -> None:
    """Refuse a folder with something in it that leads out of it, or that is no file."""
    home = os.path.realpath(folder)
    for entry in _entries(home):
        if entry.is_symlink():
            target = os.path.realpath(entry.path)
            if os.path.commonpath([home, target]) != home:
                raise UsageError(
                    f"{_within(folder, home, entry)} is a link to {target}, outside of {folder}: a run's files are in its "
                    "folder; put the file itself there"
                )
        elif not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            raise UsageError(f"{_within(folder, home, entry)} is neither a file nor a folder; remove it")


def _within(folder: Path, home: str, entry: os.DirEntry[str]) -> Path:
    return folder / os.path.relpath(entry.path, home)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder. What goes away meanwhile is left out: a run may be going on."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
