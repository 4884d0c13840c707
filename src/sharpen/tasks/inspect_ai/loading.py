"""Finding a task of Inspect AI, and its samples as items.

A file is loaded as Inspect users write it, `path/to/file.py@name`; anything else is looked up among installed packages. The
package's version, the task's own and the file's source are part of the version.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.util import registry_create, registry_info

from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.tasks import python_path, splitting
from sharpen.tasks.inspect_ai.values import Range


@dataclass(frozen=True)
class Settings:
    """What can be said about an Inspect task."""

    ratio: str
    split_seed: int
    limit: int | None
    max_tokens: int
    max_calls: int | None
    scorer: str | None
    score_range: str
    grader: str
    grader_calls: int

    def __post_init__(self) -> None:
        splitting.parse_ratio(self.ratio)
        splitting.check_limit(self.limit)
        Range.parse(self.score_range)
        for name in ("max_tokens", "max_calls"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise UsageError(f"{name} must be a whole number of 1 or more, got {value!r}")
        if isinstance(self.grader_calls, bool) or not isinstance(self.grader_calls, int) or self.grader_calls < 0:
            raise UsageError(f"grader_calls must be a whole number of 0 or more, got {self.grader_calls!r}")
        if self.grader not in ("target", "judge"):
            raise UsageError(f"grader must be target or judge, got {self.grader!r}")


@dataclass(frozen=True)
class Loaded:
    """A task of Inspect, its samples by id, and what it is known by."""

    name: str
    task: Any
    samples: Mapping[str, Any]
    identity: Json


def load(name: str, args: Mapping[str, Json]) -> Loaded:
    where, _, attribute = name.partition("@")
    if where.endswith(".py"):
        factory, source = _in_file(where, attribute)
        task = _called(factory, name, args)
        shown = f"inspect-{Path(where).stem}-{attribute}".rstrip("-")
    else:
        task, source = _installed(name, args), _version_of(name.partition("/")[0])
        shown = f"inspect-{name.replace('/', '-')}"
    if not isinstance(task, inspect_ai.Task):
        raise UsageError(f"inspect/{name} gave {type(task).__name__}, not an Inspect task")
    samples = {}
    for number, sample in enumerate(task.dataset, start=1):
        if sample.id is None:
            sample = sample.model_copy(update={"id": number})
        if str(sample.id) in samples:
            raise UsageError(f"inspect/{name}: two samples have the id {sample.id!r}; ids must be unique")
        samples[str(sample.id)] = sample
    if not samples:
        raise UsageError(f"inspect/{name}: its data set is empty")
    identity = [name, source, str(task.version), inspect_ai.__version__, dict(args)]
    return Loaded(shown, task, samples, identity)


def items(samples: Mapping[str, Any]) -> list[Item]:
    """The samples as items; one whose content was there before is left out."""
    found: dict[str, Item] = {}
    for name, sample in samples.items():
        inputs: dict[str, Json] = {"input": _text(sample)}
        if sample.choices:
            inputs["choices"] = list(sample.choices)
        target = sample.target if isinstance(sample.target, str) else list(sample.target)
        found.setdefault(digest([inputs, target]), Item(name, inputs, target))
    return list(found.values())


def with_samples(task: Any, samples: list[Any], opening: Any) -> Any:
    """A copy of a task that has these samples, and `opening` as the first thing that is done with each."""
    setup = [opening, task.setup] if task.setup is not None else [opening]
    return inspect_ai.task_with(copy.copy(task), dataset=samples, setup=setup, epochs=1)


def _text(sample: Sample) -> str:
    if isinstance(sample.input, str):
        return str(sample.input)
    return "\n".join(f"{message.role}: {message.text}" for message in sample.input)


def _in_file(where: str, attribute: str) -> tuple[Any, str]:
    if not attribute:
        raise UsageError(f"inspect/{where}: name the task too, as in inspect/{where}@name")
    found = python_path.find(f"{where}:{attribute}", "Inspect task")
    if not _is_task(found.value):
        raise UsageError(f"{attribute!r} in {where} is not an Inspect task; it has no @task decorator")
    return found.value, found.source


def _is_task(value: object) -> bool:
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        return bool(registry_info(value).type == "task")
    return False


def _installed(name: str, args: Mapping[str, Json]) -> Any:
    try:
        return registry_create("task", name, **args)
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"no Inspect task {name!r} is installed ({error}); write package/task, or path/to/file.py@task"
        ) from error
    except TypeError as error:
        raise UsageError(f"inspect/{name} does not take these args: {error}") from error


def _called(factory: Any, name: str, args: Mapping[str, Json]) -> Any:
    try:
        return factory(**args)
    except TypeError as error:
        raise UsageError(f"inspect/{name} does not take these args: {error}") from error


def _version_of(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""
