"""The items of a data set, made in a process of its own.

Some data sets go through sets of texts while they draw, so what they make depends on the interpreter's hash seed, and some
depend on what was drawn before. A process with a fixed hash seed that draws from the first item on makes the same items
every time. Questions that were drawn already are left out. What comes back crosses a pipe between two processes of ours as
a pickle, because scorers count on tuples and other values that JSON does not have; nothing is kept on disk.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import json
import os
import pickle
import subprocess
import sys
from functools import lru_cache
from typing import Any

from sharpen.core.errors import UsageError, nearest

Entry = dict[str, Any]
"""What the package knows of one item: question, answer, metadata."""

REFUSED = (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)
"""What a data set raises over settings it does not like."""


def version() -> str:
    return importlib.metadata.version("reasoning-gym")


@lru_cache(maxsize=16)
def entries(name: str, seed: int, size: int, own: str) -> tuple[Entry, ...]:
    """`size` items with different questions. `own` is the data set's own settings as JSON."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sharpen.tasks.reasoning_gym.making"],
        input=json.dumps([name, seed, size, own]).encode(),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    if done.returncode != 0:
        raise UsageError(f"reasoning-gym/{name}: making the items failed; what the data set said is above")
    problem, made = pickle.loads(done.stdout)
    if problem:
        raise UsageError(f"reasoning-gym/{name}: {problem}")
    return tuple(made)


@lru_cache(maxsize=16)
def dataset(name: str, seed: int, size: int, own: str) -> Any:
    """The data set, for its scorer."""
    gym = importlib.import_module("reasoning_gym")
    return gym.create_dataset(name, seed=seed, size=virtual(size), **json.loads(own))


def virtual(size: int) -> int:
    """How many items may be drawn for `size` different ones."""
    return 4 * size + 100


def _make(name: str, seed: int, size: int, own: str) -> tuple[str, list[Entry]]:
    kind = importlib.import_module("reasoning_gym.factory").DATASETS[name][1]
    takes = [field.name for field in dataclasses.fields(kind) if field.name not in ("seed", "size")]
    for setting in json.loads(own):
        if setting not in takes:
            return f"unknown setting {setting!r}{nearest(setting, takes)}; it takes {', '.join(takes) or 'none'}", []
    try:
        source = dataset(name, seed, size, own)
        made: dict[str, Entry] = {}
        for index in range(virtual(size)):
            entry = source[index]
            made.setdefault(entry["question"], entry)
            if len(made) == size:
                return "", list(made.values())
    except REFUSED as error:
        return f"the data set does not take {own}: {error or type(error).__name__}", []
    return (
        f"{size} items were asked for, and {virtual(size)} draws gave {len(made)} different questions; "
        f"set task.size to {len(made)} or less, or make the data set harder",
        [],
    )


def main() -> None:
    given = json.loads(sys.stdin.read())
    answer, sys.stdout = sys.stdout.buffer, sys.stderr  # data sets may print
    answer.write(pickle.dumps(_make(*given)))
    answer.flush()


if __name__ == "__main__":
    main()
