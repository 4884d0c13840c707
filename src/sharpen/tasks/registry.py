"""Where a task is found: by the name of a built-in or installed one, by the path of its data, or by the path of its class.

`get` loads only the task that is asked for. A package adds tasks through the entry point group `sharpen.tasks`: a class or
function that takes settings as keyword arguments (one that takes `deal` is given `limit` and `split_seed` in it) and
returns a `Task`. Paths are a data file (`.jsonl`, `.json`, `.csv`, `.parquet`), a folder with train, val and test, or a
Python class as `path/to/file.py:Class` or `package.module:Class`. The source of a class that is named by its file is part of
the task's version, so that an edited task never meets scores from before.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from sharpen.core import plugins
from sharpen.core.digest import Json
from sharpen.core.errors import SharpenError, UsageError, nearest
from sharpen.core.task import SPLITS, Task
from sharpen.tasks.datafile import SUFFIXES
from sharpen.tasks.splitting import Deal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sharpen.tasks"

_BUILT_IN = {
    "number-words": "families.number_words:NumberWords",
    "plural-nouns": "families.plural_nouns:PluralNouns",
    "iso-dates": "families.iso_dates:IsoDates",
    "count-letter": "families.count_letter:CountLetter",
    "one-digit-sums": "families.one_digit_sums:OneDigitSums",
    "sum-json": "families.sum_json:SumJson",
    "email-json": "families.email_json:EmailJson",
    "intent-4": "families.intent_4:Intent4",
    "sentiment-2": "families.sentiment_2:Sentiment2",
    "codebook": "codebook:Codebook",
    "keys-and-doors": "game:KeysAndDoors",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A task as `sharpen list tasks` shows it: items per split, and what stands in the way of running it here."""

    name: str
    description: str
    sizes: Mapping[str, int]
    missing: tuple[str, ...] = ()


def names() -> list[str]:
    """The names of the built-in and installed tasks."""
    return [*_BUILT_IN, *plugins.installed(GROUP, _BUILT_IN)]


def get(name_or_path: str, **settings: Json) -> Task:
    """The task called `name_or_path`. Built-in ones take `limit` and `split_seed`, data what `DataSettings` names."""
    if name_or_path in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name_or_path].partition(":")
        return _made(getattr(importlib.import_module(f"sharpen.tasks.{module}"), attribute), name_or_path, settings)
    installed = plugins.installed(GROUP)
    if name_or_path in installed:
        return _made(plugins.load(installed[name_or_path]), name_or_path, settings)
    if ":" in name_or_path and not Path(name_or_path).exists():
        return _from_class(name_or_path, settings)
    path = Path(name_or_path)
    if path.suffix == ".py":
        raise UsageError(f"{path}: name the class too, as in {path}:Class")
    if path.suffix in SUFFIXES or path.exists() or len(path.parts) > 1:
        return _from_data(path, settings)
    everything = names()
    raise UsageError(
        f"unknown task {name_or_path!r}{nearest(name_or_path, everything)}; "
        f"the tasks are {', '.join(everything)}, or give a data file, a folder, or path/to/file.py:Class"
    )


def known() -> list[Known]:
    """Every built-in and installed task, with its size."""
    installed = plugins.installed(GROUP, _BUILT_IN)
    return [_described(name, installed.get(name)) for name in names()]


def _described(name: str, entry: EntryPoint | None) -> Known:
    try:
        with nullcontext() if entry is None else plugins.blamed(entry):
            task = get(name)
            missing = tuple(task.requirements.missing())
            splits = None if missing else task.splits()
    except SharpenError as error:
        return Known(name, "", {}, (str(error),))
    sizes = {} if splits is None else {split: len(splits[split]) for split in SPLITS}
    return Known(name, task.brief.description, sizes, missing)


def _from_class(spec: str, settings: Mapping[str, Json]) -> Task:
    from sharpen.tasks import python_path

    found = python_path.find(spec, "task")
    task = _made(found.value, spec, settings)
    if python_path.is_file(spec):
        task.version = f"{task.version}-{found.source[:8]}"
    return task


def _from_data(path: Path, settings: Mapping[str, Json]) -> Task:
    from sharpen.tasks.datatask import DataSettings, DataTask

    if not path.exists():
        raise UsageError(f"no such file or folder: {path}")
    _only(str(path), settings, tuple(field.name for field in fields(DataSettings)))
    return DataTask(path, DataSettings(**settings))


def _made(factory: object, name: str, settings: Mapping[str, Json]) -> Task:
    if isinstance(factory, Task) and not settings:
        return factory
    if not callable(factory):
        raise UsageError(f"task {name!r} is not a Task class or a function that gives a Task")
    signature = inspect.signature(factory)
    if "deal" in signature.parameters:
        _only(name, settings, ("limit", "split_seed"))
        settings = {"deal": Deal(settings.get("split_seed", 0), settings.get("limit"))}
    try:
        signature.bind(**settings)
    except TypeError as error:
        raise UsageError(f"task {name!r} does not take these settings: {error}") from error
    task = factory(**settings)
    if not isinstance(task, Task):
        raise UsageError(f"task {name!r} gave {type(task).__name__}, not a Task")
    return task


def _only(name: str, settings: Mapping[str, Json], allowed: tuple[str, ...]) -> None:
    for setting in settings:
        if setting not in allowed:
            hint = nearest(setting, allowed)
            raise UsageError(f"task {name!r}: unknown setting {setting!r}; it takes {', '.join(allowed)}{hint}")
