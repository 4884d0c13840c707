"""Trainers by name: the built-in ones, and those of other packages through the entry point group `sharpen.trainers`.

An entry is a subclass of `Trainer`. `known` describes every trainer there is, also one whose package is broken.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from sharpen.core import plugins
from sharpen.core.errors import UsageError, nearest
from sharpen.trainers.base import Trainer

GROUP = "sharpen.trainers"

_BUILT_IN = {
    "reflact": "sharpen.trainers.reflact.loop:ReflACT",
    "gepa-base": "sharpen.trainers.search.gepa:GEPABase",
    "gepa-ucb": "sharpen.trainers.search.gepa:GEPAUCB",
    "gepa-beam": "sharpen.trainers.search.gepa:GEPABeam",
    "priority-search": "sharpen.trainers.search.priority_search:PrioritySearch",
    "polca": "sharpen.trainers.search.priority_search:Polca",
    "basic-search": "sharpen.trainers.search.classic:BasicSearch",
    "beam-search": "sharpen.trainers.search.classic:BeamSearch",
    "ucb-search": "sharpen.trainers.search.classic:UCBSearch",
    "minibatch": "sharpen.trainers.minibatch:MinibatchTrainer",
    "opro": "sharpen.trainers.opro:Opro",
    "few-shot": "sharpen.trainers.fewshot:FewShot",
    "noop": "sharpen.trainers.noop:NoOp",
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
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        built_in: type[Trainer] = getattr(importlib.import_module(module), attribute)
        return built_in
    installed = plugins.installed(GROUP)
    if name not in installed:
        raise UsageError(f"unknown trainer {name!r}{nearest(name, names())}; there are: {', '.join(names())}")
    kind = plugins.load(installed[name])
    if not (isinstance(kind, type) and issubclass(kind, Trainer) and hasattr(kind, "Params")):
        raise plugins.wrong_kind(installed[name], "a subclass of Trainer with its settings in Params")
    return kind
