"""A new task to start from: a folder with data, scorer, seed skill, task class, configuration, test and README.

The files are templates beside this module (`skeleton/`), with the names of the task and of its class to be filled in. What
they make trains as it stands, so that whoever changes it goes from something that works to something that works.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.errors import UsageError
from sharpen.files import write_atomic
from sharpen.tasks import registry

_TEMPLATES = Path(__file__).with_suffix("")
_SUFFIX = ".template"


@dataclass(frozen=True, slots=True)
class Names:
    """What a new task is called, and the class in its `task.py`."""

    task: str
    kind: str


def names(given: str) -> Names:
    """The names that follow from `given`, unless Python or sharpen could not use them."""
    plain = given.replace("-", "_")
    wanted = "letters, digits, - and _, beginning with a letter, such as support-desk"
    if not (plain.isidentifier() and plain.isascii()) or plain.startswith("_") or plain.endswith("_"):
        raise UsageError(f"{given!r} can't be the name of a task; use {wanted}")
    kind = "".join(part[:1].upper() + part[1:] for part in plain.split("_"))
    if keyword.iskeyword(plain) or keyword.iskeyword(kind):
        raise UsageError(f"{given!r} can't be the name of a task: it is a word of Python's own; use {wanted}")
    if given in registry.names():
        raise UsageError(f"there is a task {given!r} already (sharpen list tasks); choose another name")
    return Names(given, kind)


def create(name: str, folder: Path) -> list[Path]:
    """Write the files of a new task into `folder`, which must be new or empty, and return their paths."""
    called = names(name)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} is there already; nothing was written: choose another name, or another --folder")
    made = []
    for template in sorted(_TEMPLATES.glob(f"*{_SUFFIX}")):
        text = template.read_text(encoding="utf-8")
        path = folder / template.name.removesuffix(_SUFFIX)
        write_atomic(path, text.replace("__NAME__", called.task).replace("__CLASS__", called.kind))
        made.append(path)
    return made
