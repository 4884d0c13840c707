"""Candidates saved to disk: a folder per checkpoint with its parts, its files and what is known of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from sharpen.core.candidate import MAIN_PART, Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.files import json_text, write_folder

SCHEMA_VERSION = 1
FOLDER = "checkpoints"
METADATA = "metadata.json"
_PARTS = "parts"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]|^[A-Za-z]:")


def save(
    folder: Path,
    candidate: Candidate,
    step: int,
    metrics: Mapping[str, Json],
    *,
    name: str = "",
    more: Mapping[str, Json] | None = None,
) -> str:
    """Write a checkpoint, whole or not at all, and return its path relative to the job's folder. Writing it again changes
    nothing. `more` is what else its metadata say."""
    relative = PurePosixPath(FOLDER) / (name or f"step_{step:04d}")
    about = {
        "schema_version": SCHEMA_VERSION,
        "step": step,
        "candidate": candidate.digest,
        "parts": list(candidate.parts),
        **({"files": sorted(candidate.files)} if candidate.files else {}),
        "metrics": dict(metrics),
        **(more or {}),
    }
    contents: dict[str, str | bytes | Path] = {
        f"{_PARTS}/{safe_part(part)}": text for part, text in candidate.parts.items()
    }
    contents |= candidate.files
    write_folder(folder / relative, {**contents, METADATA: json_text(about)})
    return str(relative)


def about(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself; nothing where it is none."""
    try:
        found = json.loads((checkpoint / METADATA).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def path_in(job: Path, told: str) -> Path:
    """Where a checkpoint lies that an event tells of. The event may be somebody else's: it can't lead out of the job."""
    return job / safe_part(str(told))


def load(folder: Path) -> Candidate:
    """Read a checkpoint folder, a folder of text parts, or a single text file as a candidate."""
    if folder.is_file():
        return _written(folder, {MAIN_PART: _read(folder)})
    if not folder.is_dir():
        raise UsageError(
            f"no skill or checkpoint at {folder} (looked for in {folder.resolve().parent}); expected a text file, a folder "
            "of text files, or a checkpoint"
        )
    said = about(folder)
    if "parts" in said:
        names, files = _names(folder, said, "parts"), _names(folder, said, "files")
        parts = {name: _read(_inside(folder, f"{_PARTS}/{name}")) for name in names}
        return Candidate(parts, {name: folder / name for name in files if _inside(folder, name).exists()})
    texts = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    if not texts:
        raise UsageError(f"no text parts in {folder}; expected SKILL.md or a checkpoint with {METADATA}")
    for path in texts:
        _inside(folder, path.relative_to(folder).as_posix())
    return _written(folder, {path.relative_to(folder).as_posix(): _read(path) for path in texts})


def _names(folder: Path, said: Mapping[str, Any], key: str) -> list[str]:
    """The names that metadata give; each is checked, since a checkpoint may come from anybody."""
    names = said.get(key, [])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)) or (key == "parts" and not names):
        raise UsageError(f"{folder / METADATA} is damaged: {key!r} must be a list of names")
    return [safe_part(name) for name in names]


def _inside(folder: Path, name: str) -> Path:
    """A file of a folder; a link that leads out of it is refused."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{path} is a link that leads out of {folder}; put the file itself there")
    return path


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
    if path.is_absolute() or ".." in path.parts or not path.parts or _UNSAFE.search(name):
        raise UsageError(f"part name {name!r} must be a relative path without '..', control characters, \\ and drives")
    return str(path)
