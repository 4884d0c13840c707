"""The prompts of ReflACT, one Markdown file each, and how a question is built from them.

Every question ends in a section `## Data` with one JSON block, so that a model sees where the instructions end and the
material begins, and a program can read it too. A text given under the same name takes a file's place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from sharpen.core.chat import Message
from sharpen.core.digest import Json, encoder

_dumped = encoder()


@cache
def names() -> tuple[str, ...]:
    """The prompts there are."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(file.name.removesuffix(".md") for file in files if file.name.endswith(".md")))


@cache
def load(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def prompt(name: str, overrides: Mapping[str, str]) -> str:
    """The prompt called `name`: the text that was put in its place, or its file."""
    return overrides[name].strip() if name in overrides else load(name)


def question(system: str, data: Mapping[str, Json]) -> tuple[Message, ...]:
    """The messages that put a question about `data`."""
    return (Message("system", system), Message("user", f"## Data\n\n```json\n{block(data)}\n```"))


def block(data: Mapping[str, Json]) -> str:
    """The data as JSON that can be read and does not waste tokens: a line per key, and per element of a list."""
    return "{\n" + ",\n".join(f" {_dumped(key)}: {_value(value)}" for key, value in data.items()) + "\n}"


def _value(value: Json) -> str:
    if not isinstance(value, list) or not value:
        return _dumped(value)
    return "[\n" + ",\n".join(f"  {_dumped(element)}" for element in value) + "\n ]"
