"""Where a task is found: by the name of a built-in or installed one, by the name of a family and one behind a slash, by the
id of an environment, by the path of its data, or by the path of its class.

`get` loads only the task that is asked for. A package adds tasks through the entry point group `sharpen.tasks`: a class or
function that takes settings as keyword arguments (one that takes `deal` is given `limit` and `split_seed` in it) and
returns a `Task`. A family is a module with `make(name, **settings)`, a `DESCRIPTION`, and `members()`, the names it knows
without reading anything of the user's; an error from there says what it lacks. Paths are a data file (`.jsonl`, `.json`,
`.csv`, `.parquet`), a folder with train, val and test, or a Python class as `path/to/file.py:Class` or
`package.module:Class`. The source of a class of the user's own, and of what it imports from the user's own files, is part of
the task's version, so that an edited task never meets scores from before.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sharpen.core import plugins
from sharpen.core.digest import Json
from sharpen.core.errors import SharpenError, UsageError, nearest
from sharpen.core.task import SPLITS, Task
from sharpen.tasks import gym
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
    "veribench": "veribench.task:VeriBench",
    "circle-packing": "algorithms.circle_packing:CirclePacking",
    "bin-packing": "algorithms.bin_packing:BinPacking",
    "tsp": "algorithms.tsp:TravellingSalesman",
    "knapsack": "algorithms.knapsack:Knapsack",
    "job-shop": "algorithms.job_shop:JobShop",
    "vehicle-routing": "algorithms.vehicle_routing:VehicleRouting",
    "set-cover": "algorithms.set_cover:SetCover",
    "graph-colouring": "algorithms.graph_colouring:GraphColouring",
    "independent-set": "algorithms.independent_set:IndependentSet",
    "machine-scheduling": "algorithms.machine_scheduling:MachineScheduling",
    "facility-location": "algorithms.facility_location:FacilityLocation",
    "oscillator": "algorithms.oscillator:Oscillator",
    "numeric-param": "internal.numeric_param:NumericParam",
    "multi-param": "internal.multi_param:MultiParam",
    "code-param": "internal.code_param:CodeParam",
    "non-trainable": "internal.non_trainable:NonTrainable",
    "greeting": "internal.greeting:Greeting",
    "camel": "internal.camel:Camel",
    "short-codebook": "internal.short_codebook:ShortCodebook",
}

_FAMILIES = {
    "reasoning-gym": "reasoning_gym:make",
    "textworld-express": "textworld_express:make",
    "qa": "qa:make",
    "inspect": "inspect_ai:make",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A task as `sharpen list tasks` shows it: items per split, and what stands in the way of running it here."""

    name: str
    description: str
    sizes: Mapping[str, int]
    missing: tuple[str, ...] = ()
    members: int | None = None
    """How many names a family has; None for a single task."""


def names() -> list[str]:
    """The names of the built-in and installed tasks, without the families."""
    return [*_BUILT_IN, *plugins.installed(GROUP, _BUILT_IN)]


def families() -> list[str]:
    """The families, each as it is written before a name."""
    return [f"{family}/" for family in _FAMILIES]


def get(name_or_path: str, **settings: Json) -> Task:
    """The task called `name_or_path`. Built-in ones take `limit` and `split_seed`, data what `DataSettings` names."""
    if name_or_path in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name_or_path].partition(":")
        return _made(getattr(importlib.import_module(f"sharpen.tasks.{module}"), attribute), name_or_path, settings)
    installed = plugins.installed(GROUP)
    if name_or_path in installed:
        return _made(plugins.load(installed[name_or_path]), name_or_path, settings)
    path = Path(name_or_path)
    family, _, member = name_or_path.partition("/")
    if family in _FAMILIES and not (path.suffix in SUFFIXES and path.exists()):
        return _of_family(family, member, settings)
    if is_environment(name_or_path):
        return _made(partial(gym.make, name_or_path), name_or_path, settings)
    if ":" in name_or_path and not path.exists():
        return _from_class(name_or_path, settings)
    if path.suffix == ".py":
        raise UsageError(f"{path}: name the class too, as in {path}:Class")
    if path.suffix in SUFFIXES or path.exists() or len(path.parts) > 1:
        return _from_data(path, settings)
    everything = [*names(), *(f"{family}NAME" for family in families()), gym.ROW]
    raise UsageError(
        f"unknown task {name_or_path!r}{_newest(name_or_path) or nearest(name_or_path, everything)}; "
        f"the tasks are {', '.join(everything)}, or give a data file, a folder, or path/to/file.py:Class"
    )


def _newest(name: str) -> str:
    """Of an environment's id without its version: the newest one with it."""
    known = () if gym.missing() else filter(gym.is_environment, gym.members())
    found = [one for one in known if one.rpartition("-v")[0].casefold() == name.casefold()]
    return f" (did you mean {max(found, key=lambda one: int(one.rpartition('-v')[2]))!r}?)" if found else ""


def is_environment(name: str) -> bool:
    """Whether a name is the id of an environment, rather than the path of something."""
    return gym.is_environment(name) and not Path(name).exists()


def known(pattern: str = "*") -> list[Known]:
    """Every built-in and installed task with its size, and every family with the number of its names, as far as the pattern
    fits. One with a slash is about the names within the families: those that it fits stand in the family's place.
    One such as `*-v*` is about environments."""
    installed = plugins.installed(GROUP, _BUILT_IN)
    single = [_described(name, installed.get(name)) for name in names() if fnmatchcase(name, pattern)]
    if "/" not in pattern:
        fitting = [_described_family(family) for family in _FAMILIES if fnmatchcase(f"{family}/NAME", pattern)]
        return [*single, *fitting, *_environments(pattern, alone=not (single or fitting))]
    members = [member for family in map(_described_family, _FAMILIES) for member in _members(family, pattern)]
    return [*single, *members, *_environments(pattern, alone=not (single or members))]


def _environments(pattern: str, *, alone: bool) -> list[Known]:
    """One row for all environments. Their ids are looked through where a version is in the pattern, or nothing else fits."""
    if fnmatchcase(gym.ROW, pattern) and "-v" not in pattern:
        return [Known(gym.ROW, gym.DESCRIPTION, {}, gym.missing())]
    if "-v" not in pattern and not alone:
        return []
    try:
        return [Known(name, "", {}) for name in gym.members() if fnmatchcase(name, pattern)]
    except SharpenError as error:
        return [Known(gym.ROW, gym.DESCRIPTION, {}, (str(error),))] if "-v" in pattern else []


def _members(family: Known, pattern: str) -> list[Known]:
    """The names of a family that the pattern fits; the family itself where its names can't be had."""
    name = family.name.partition("/")[0]
    if family.missing:
        return [family] if fnmatchcase(pattern.partition("/")[0], name) else []
    full = [f"{name}/{member}" for member in _family_module(name).members()]
    return [Known(one, family.description, {}) for one in full if fnmatchcase(one, pattern)]


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


def _described_family(family: str) -> Known:
    module = _family_module(family)
    try:
        members = len(module.members())
    except SharpenError as error:
        return Known(f"{family}/NAME", module.DESCRIPTION, {}, (str(error),))
    return Known(f"{family}/NAME", module.DESCRIPTION, {}, members=members)


def _of_family(family: str, member: str, settings: Mapping[str, Json]) -> Task:
    module = _family_module(family)
    if not member:
        known = ", ".join(f"{family}/{name}" for name in [*module.members()][:3])
        raise UsageError(f"{family!r} is a family of tasks; name one of it, such as {known or f'{family}/NAME'}")
    make = getattr(module, _FAMILIES[family].partition(":")[2])
    return _made(partial(make, member), f"{family}/{member}", settings)


def _family_module(family: str) -> ModuleType:
    return importlib.import_module(f"sharpen.tasks.{_FAMILIES[family].partition(':')[0]}")


def _from_class(spec: str, settings: Mapping[str, Json]) -> Task:
    from sharpen.tasks import python_path

    found = python_path.find(spec, "task")
    task = _made(found.value, spec, settings)
    if found.own:
        task.version = f"{task.version}-{found.source[:8]}"
    return task


def _from_data(path: Path, settings: Mapping[str, Json]) -> Task:
    from sharpen.tasks.datatask import DataSettings, DataTask

    if not path.exists():
        hint = nearest(path.parts[0], tuple(_FAMILIES)) if len(path.parts) > 1 else ""
        raise UsageError(f"no such file or folder: {path}{hint}")
    _only(str(path), settings, tuple(field.name for field in fields(DataSettings)))
    return DataTask(path, DataSettings(**settings))


def _made(factory: object, name: str, settings: Mapping[str, Json]) -> Task:
    if isinstance(factory, Task) and not settings:
        return factory
    if not callable(factory):
        raise UsageError(f"task {name!r} is not a Task class or a function that gives a Task")
    signature = inspect.signature(factory)
    if "deal" in signature.parameters:
        settings = dict(settings)
        deal = Deal(settings.pop("split_seed", 0), settings.pop("limit", None))
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
            own = (parameter for parameter in signature.parameters if parameter != "deal")
            _only(name, settings, ("limit", "split_seed", *own))
        settings["deal"] = deal
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
