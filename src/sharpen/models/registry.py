"""From a name to a model. `open_model` makes the object; its `open()` is what starts anything.

A name says by its beginning what kind of model it is: `local/...`, `openai/...`, `http://host:port/v1#model`,
`scripted/...`, `replay/FILE.jsonl`. `record:FILE.jsonl:NAME` is any other model with its answers kept. Packages add kinds
through the entry point group `sharpen.models`: the entry's name is the prefix, its object a callable
`(name, **settings) -> Model`, which is given what stands behind a `?` in the name as settings. A kind's module is imported
when it is first asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from sharpen.core import plugins
from sharpen.core.errors import UsageError, nearest
from sharpen.core.redact import remember_settings
from sharpen.models.base import Model

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sharpen.models"
Factory = Callable[..., Model]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of model: how its names look, what it is, where its factory is, and what it needs to run."""

    pattern: str
    description: str
    factory: str
    package: str | None = None
    variable: str | None = None

    def missing(self) -> str:
        """What is not there for it to run, in words; empty when it can."""
        if self.package is not None and importlib.util.find_spec(self.package) is None:
            return f"needs the Python package {self.package}"
        if self.variable is not None and not os.environ.get(self.variable):
            return f"needs {self.variable} to be set"
        return ""


@dataclass(frozen=True, slots=True)
class Known:
    """A row of `sharpen list models`. `missing` says why it is not available here; empty when it is."""

    pattern: str
    description: str
    missing: str = ""

    @property
    def available(self) -> bool:
        return not self.missing


_OPENAI = "sharpen.models.openai:OpenAIModel"
_SCRIPTED = "sharpen.models.scripted:ScriptedModel"
_KINDS = {
    "local": Kind(
        "local/smollm2-135m",
        "the embedded model: runs on this machine, needs no key and no network",
        "sharpen.models.local:LocalModel",
        package="xllamacpp",
    ),
    "openai": Kind("openai/MODEL", "OpenAI's models, such as openai/gpt-5.5", _OPENAI, variable="OPENAI_API_KEY"),
    "http": Kind("http://HOST:PORT/v1#MODEL", "any server that speaks OpenAI's protocol", _OPENAI),
    "scripted": Kind("scripted/rules", "a deterministic script; also scripted/echo, /game and /explorer", _SCRIPTED),
    "replay": Kind("replay/FILE.jsonl", "answers from a recorded cassette", "sharpen.models.cassette:ReplayModel"),
}
_RECORD = Known("record:FILE.jsonl:MODEL", "any other model, with its answers kept on a cassette")


def open_model(name: str, **settings: Any) -> Model:
    """The model that `name` stands for, not yet opened. `settings` are those of its kind."""
    if name.startswith("record:"):
        return _recording(name, settings)
    prefix = _prefix(name)
    kind = _KINDS.get(prefix)
    if kind is not None:
        factory = _resolve(kind)
    else:
        installed = plugins.installed(GROUP)
        if prefix not in installed:
            known = (*_KINDS, *installed)
            raise UsageError(
                f"unknown model {name!r}{nearest(prefix, known)}; names begin with {', '.join(_beginnings(known))}"
            )
        factory = _added(installed[prefix])
        name, in_name = _settings_in(name, factory)
        settings = {**in_name, **settings}
    _check_settings(name, factory, settings)
    return factory(name, **settings)


def known() -> list[Known]:
    """Every kind of model there is here, built in and added by packages."""
    rows = [Known(kind.pattern, kind.description, kind.missing()) for kind in _KINDS.values()]
    rows.append(_RECORD)
    rows += [_described(entry) for entry in plugins.installed(GROUP, _KINDS).values()]
    return rows


def _described(entry: EntryPoint) -> Known:
    pattern, origin = f"{entry.name}/...", f"from the package {plugins.package(entry)}"
    try:
        factory = _added(entry)
    except UsageError as error:
        return Known(pattern, origin, str(error))
    about = (inspect.getdoc(factory) or "").partition("\n\n")[0].replace("\n", " ")
    return Known(pattern, about or origin)


def _prefix(name: str) -> str:
    if name.startswith(("http://", "https://")):
        return "http"
    prefix, slash, rest = name.partition("/")
    if not slash or not rest:
        raise UsageError(
            f"{name!r} is not a model name; expected KIND/NAME, such as scripted/rules, or http://HOST:PORT/v1#MODEL"
        )
    return prefix


def _beginnings(prefixes: tuple[str, ...]) -> list[str]:
    return ["http://" if prefix == "http" else f"{prefix}/" for prefix in prefixes] + ["record:"]


def _resolve(kind: Kind) -> Factory:
    module, _, attribute = kind.factory.partition(":")
    if kind.package is not None and importlib.util.find_spec(kind.package) is None:
        raise UsageError(f"{kind.pattern} {kind.missing()}: install it with pip install 'sharpen[local]'")
    factory: Factory = getattr(importlib.import_module(module), attribute)
    return factory


def _added(entry: EntryPoint) -> Factory:
    factory = plugins.load(entry)
    if not callable(factory):
        raise plugins.wrong_kind(entry, "a callable (name, **settings) that gives a model")
    return factory


def _recording(name: str, settings: dict[str, Any]) -> Model:
    path, found, inner = name.removeprefix("record:").partition(".jsonl:")
    if not found or not inner or not path:
        raise UsageError(f"{name!r}: expected record:FILE.jsonl:MODEL, such as record:talk.jsonl:scripted/rules")
    from sharpen.models.cassette import RecordingModel

    return RecordingModel(open_model(inner, **settings), Path(f"{path}.jsonl"))


def _settings_in(name: str, factory: Factory) -> tuple[str, dict[str, Any]]:
    """A name without the settings behind its `?`, and those, as the types that the factory's parameters are declared with;
    where they are not, and where it takes any, as text."""
    plain, _, query = name.partition("?")
    values: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if not values:
        return plain, {}
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    remember_settings(values)
    try:
        parameters = inspect.signature(factory, eval_str=True).parameters
    except NameError:  # declared by names that only a type checker knows
        return plain, values
    for setting, value in values.items():
        declared = parameters[setting].annotation if setting in parameters else inspect.Parameter.empty
        if declared is inspect.Parameter.empty:
            continue
        try:
            values[setting] = TypeAdapter(declared).validate_python(value)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise UsageError(f"{plain}: {setting}: {problem}, got {value!r}") from None
        except PydanticUserError:
            continue  # a type that no text can be checked against: the factory's own business
    return plain, values


def _check_settings(name: str, factory: Factory, settings: dict[str, Any]) -> None:
    """Refuse a setting that the factory has no parameter for; one that takes any checks them itself."""
    if not settings:
        return
    parameters = list(inspect.signature(factory).parameters.values())[1:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    allowed = tuple(p.name for p in parameters)
    for setting in settings:
        if setting not in allowed:
            there = ", ".join(allowed) or "none"
            raise UsageError(f"{name} has no setting {setting!r}{nearest(setting, allowed)}; there are: {there}")
