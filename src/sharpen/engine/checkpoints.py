"""Candidates saved to disk: a folder per checkpoint with its parts and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from sharpen.core.candidate import MAIN_PART, Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.files import write_atomic, write_json

SCHEMA_VERSION = 1
_METADATA = "metadata.json"
_PARTS = "parts"


def save(folder: Path, candidate: Candidate, step: int, metrics: Mapping[str, Json], *, name: str = "") -> str:
    """Write a checkpoint and return its path relative to the job's folder. Writing it again changes nothing."""
    relative = PurePosixPath("checkpoints") / (name or f"step_{step:04d}")
    home = folder / relative
    before = set(home.glob(f"{_PARTS}/**/*")) if home.exists() else set()
    for part, text in candidate.parts.items():
        write_atomic(home / _PARTS / safe_part(part), text)
    for stale in before - {home / _PARTS / part for part in candidate.parts}:
        if stale.is_file():
            stale.unlink()
    about = {
        "schema_version": SCHEMA_VERSION,
        "step": step,
        "candidate": candidate.digest,
        "parts": list(candidate.parts),
        "metrics": dict(metrics),
    }
    write_json(home / _METADATA, about)
    return str(relative)


def load(folder: Path) -> Candidate:
    """Read a checkpoint folder, a folder of text parts, or a single text file as a candidate."""
    if folder.is_file():
        return _written(folder, {MAIN_PART: _read(folder)})
    if not folder.is_dir():
        raise UsageError(
            f"no skill or checkpoint at {folder} (looked for in {folder.resolve().parent}); expected a text file, a folder "
            "of text files, or a checkpoint"
        )
    about = folder / _METADATA
    if about.exists():
        names = json.loads(about.read_text(encoding="utf-8"))["parts"]
        return Candidate({name: _read(folder / _PARTS / name) for name in names})
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    if not files:
        raise UsageError(f"no text parts in {folder}; expected SKILL.md or a checkpoint with {_METADATA}")
    return _written(folder, {path.relative_to(folder).as_posix(): _read(path) for path in files})


def _written(source: Path, parts: Mapping[str, str]) -> Candidate:
    """A candidate that a person wrote: a trainer may come to an empty text, but nobody means to start from one."""
    if not any(text.strip() for text in parts.values()):
        raise UsageError(f"the skill {source} is empty; give at least one line")
    return Candidate(parts)


def _read(path: Path) -> str:
    """A text exactly as it stands, line ends included: a candidate is known by its digest."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def safe_part(name: str) -> str:
    """A part's name as a relative path that stays inside its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
        raise UsageError(f"part name {name!r} must be a relative path without '..'")
    return str(path)
