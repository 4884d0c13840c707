"""Trainers by name: the built-in ones, those of other packages through the entry point group `sharpen.trainers`, and those
in a file of one's own, as `path/to/file.py:Class` or `package.module:Class`.

An entry is a subclass of `Trainer`. `known` describes every trainer there is, also one whose package is broken. The source
of a class that is named by its file is part of the trainer's version, so that an edited one is another job.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TypeGuard

from sharpen.core import plugins
from sharpen.core.errors import UsageError, nearest
from sharpen.trainers.base import Trainer

GROUP = "sharpen.trainers"

_BUILT_IN = {
    "reflact": "sharpen.trainers.reflact.loop:ReflACT",
    "gepa-base": "sharpen.trainers.search.gepa:GEPABase",
    "gepa-ucb": "sharpen.trainers.search.gepa:GEPAUCB",
    "gepa-beam": "sharpen.trainers.search.gepa:GEPABeam",
    "gepa": "sharpen.trainers.adapters.gepa_package:GEPA",
    "pareto-search": "sharpen.trainers.search.pareto_search:ParetoSearch",
    "priority-search": "sharpen.trainers.search.priority_search:PrioritySearch",
    "polca": "sharpen.trainers.search.priority_search:Polca",
    "basic-search": "sharpen.trainers.search.classic:BasicSearch",
    "beam-search": "sharpen.trainers.search.classic:BeamSearch",
    "ucb-search": "sharpen.trainers.search.classic:UCBSearch",
    "minibatch": "sharpen.trainers.minibatch:MinibatchTrainer",
    "opro": "sharpen.trainers.opro:Opro",
    "few-shot": "sharpen.trainers.fewshot:FewShot",
    "noop": "sharpen.trainers.noop:NoOp",
    "ppo": "sharpen.trainers.rl.ppo:PPO",
    "a2c": "sharpen.trainers.rl.a2c:A2C",
    "dqn": "sharpen.trainers.rl.dqn:DQN",
    "sac": "sharpen.trainers.rl.sac:SAC",
    "td3": "sharpen.trainers.rl.td3:TD3",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A trainer as `sharpen list trainers` shows it; without its class and with the reason where it cannot be used."""

    name: str
    kind: type[Trainer] | None
    missing: str = ""


def names() -> list[str]:
    """The names of the built-in and installed trainers."""
    return [*_BUILT_IN, *plugins.installed(GROUP, _BUILT_IN)]


def known() -> list[Known]:
    """Every trainer there is here."""
    found = []
    for name in names():
        try:
            found.append(Known(name, get(name)))
        except UsageError as error:
            found.append(Known(name, None, str(error)))
    return found


def get(name: str) -> type[Trainer]:
    """The trainer called `name`, or at the path `name`."""
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        built_in: type[Trainer] = getattr(importlib.import_module(module), attribute)
        return built_in
    installed = plugins.installed(GROUP)
    if name in installed:
        kind = plugins.load(installed[name])
        if not _is_trainer(kind):
            raise plugins.wrong_kind(installed[name], "a subclass of Trainer with its settings in Params")
        return kind
    if ":" in name:
        return _by_path(name)
    if name.endswith(".py"):
        raise UsageError(f"{name}: name the trainer's class too, as in {name}:Class")
    raise UsageError(
        f"unknown trainer {name!r}{nearest(name, names())}; there are: {', '.join(names())}, or give path/to/file.py:Class"
    )


def _by_path(spec: str) -> type[Trainer]:
    from sharpen.tasks import python_path

    found = python_path.find(spec, "trainer")
    kind = found.value
    if not _is_trainer(kind):
        raise UsageError(f"trainer {spec!r} is not a subclass of sharpen's Trainer with its settings in Params")
    version = f"{kind.version}-{found.source[:8]}" if found.own else kind.version
    # A class of its own: what the file imports from elsewhere keeps its version.
    about = {
        "name": kind.name or kind.__name__,
        "version": version,
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    return type(kind.__name__, (kind,), about)


def _is_trainer(kind: object) -> TypeGuard[type[Trainer]]:
    return isinstance(kind, type) and issubclass(kind, Trainer) and hasattr(kind, "Params")
