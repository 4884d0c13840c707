"""Items, start and description of a task that is made by code of the user's own, written into its run: `items/`.

Who reads the run then needs none of that code. `recorded_items.py` says where a reader takes items from.
"""

from __future__ import annotations

import json
from pathlib import Path

from sharpen.bench.layout import read_json
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Splits, Task
from sharpen.engine import checkpoints
from sharpen.files import write_atomic, write_json

SCHEMA_VERSION = 1
START = "start"
_ABOUT = "task.json"


def write_items(folder: Path, task: Task, splits: Splits, start: Candidate) -> None:
    """Write the items of a task, what it says it is about, and the texts training starts from. They are data, and stay as
    they are."""
    for name in SPLITS:
        rows = ([item.id, dict(item.inputs), item.reference, item.type, item.group] for item in splits[name])
        write_atomic(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    about = {"schema_version": SCHEMA_VERSION, "task": task.name, "description": task.brief.description}
    write_json(folder / _ABOUT, about)
    for part, text in start.parts.items():
        write_atomic(folder / START / checkpoints.safe_part(part), text)


def read_items(folder: Path) -> Splits:
    try:
        return Splits(**{name: _read_split(folder / f"{name}.jsonl") for name in SPLITS})
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{folder} is damaged: {error}") from error


def read_description(folder: Path) -> str:
    try:
        return str(read_json(folder / _ABOUT)["description"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{folder / _ABOUT} is damaged: {error}") from error


def _read_split(path: Path) -> tuple[Item, ...]:
    rows = (json.loads(line) for line in path.read_text(encoding="ascii").splitlines())
    return tuple(
        Item(str(name), dict(inputs), reference, str(kind), str(group)) for name, inputs, reference, kind, group in rows
    )
