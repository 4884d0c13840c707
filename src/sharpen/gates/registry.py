"""Gates by name: the built-in ones, and those of other packages through the entry point group `sharpen.gates`.

An entry is a class whose instances are gates and whose constructor takes the gate's settings as keyword arguments; frozen
dataclasses, like the built-in ones, show their settings and defaults in `known`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from sharpen.core import plugins
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest
from sharpen.gates.base import Gate

GROUP = "sharpen.gates"
DEFAULT = "sequential"

_BUILT_IN = {
    "sequential": "sharpen.gates.sequential:Sequential",
    "paired": "sharpen.gates.paired:Paired",
    "strict": "sharpen.gates.strict:Strict",
    "force": "sharpen.gates.force:Force",
}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: Json
    description: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A gate as `sharpen list gates` shows it."""

    name: str
    description: str
    params: tuple[Setting, ...] = ()
    missing: str = ""
    """Why it cannot be used here; empty when it can."""


def names() -> list[str]:
    """The names of the built-in and installed gates, the default first."""
    return [*_BUILT_IN, *plugins.installed(GROUP, _BUILT_IN)]


def get(name: str, params: Mapping[str, Json] | None = None) -> Gate:
    """The gate called `name` with these settings."""
    kind, settings = _kind(name), dict(params or {})
    parameters = inspect.signature(kind).parameters
    for setting, value in settings.items():
        if setting not in parameters:
            near, there = nearest(setting, tuple(parameters)), ", ".join(parameters) or "none"
            raise UsageError(f"gate {name!r} has no setting {setting!r}{near}; there are: {there}")
        _check_number(name, setting, value, parameters[setting].default)
    try:
        gate: Gate = kind(**settings)
    except TypeError as error:
        raise UsageError(f"gate {name!r} does not take these settings: {error}") from error
    return gate


def _check_number(name: str, setting: str, value: Json, default: Json) -> None:
    """Where the default is a number, only a number of that kind will do."""
    wanted: tuple[type, ...] = (int,) if isinstance(default, int) else (int, float)
    if isinstance(default, (int, float)) and (isinstance(value, bool) or not isinstance(value, wanted)):
        kind = "a whole number" if wanted == (int,) else "a number"
        raise UsageError(f"gate {name!r}: {setting} must be {kind}, got {value!r}")


def known() -> list[Known]:
    """Every gate there is here, with its settings and their defaults."""
    return [_described(name) for name in names()]


def _described(name: str) -> Known:
    try:
        kind = _kind(name)
    except UsageError as error:
        return Known(name, "", missing=str(error))
    described = getattr(kind, "__dataclass_fields__", {})
    params = tuple(
        Setting(p.name, p.default, str(described[p.name].metadata.get("description", "")) if described else "")
        for p in inspect.signature(kind).parameters.values()
    )
    return Known(name, (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "), params)


def _kind(name: str) -> type:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        built_in: type = getattr(importlib.import_module(module), attribute)
        return built_in
    installed = plugins.installed(GROUP)
    if name in installed:
        kind = plugins.load(installed[name])
        if not isinstance(kind, type) or not hasattr(kind, "decide"):
            raise plugins.wrong_kind(installed[name], "a class with the method decide(evidence)")
        return kind
    raise UsageError(f"unknown gate {name!r}{nearest(name, names())}; there are: {', '.join(names())}")
