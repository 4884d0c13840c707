"""The reference of all settings as a Markdown page, made from the schemas themselves.

python -m sharpen.bench.reference > docs/configuration.md
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from sharpen.bench.config import RunConfig
from sharpen.trainers import registry as trainers

_OPENING = """# Configuration

A configuration is a YAML file, or options of a command, or both: `sharpen train config.yaml seed=3
trainer.params.epochs=2`. Every key below can be set either way; later ones win. `_base_: other.yaml` (or a list) starts from
other files, keys of mappings are merged, lists are replaced. `task: NAME` is short for `task: {name: NAME}`, and
`trainer: NAME` likewise. Files a configuration names are looked for beside it, then in the current folder. An unknown key, a
wrong type or a value out of range is an error that names the file, the key and what would be right.

What decides a result is in `task`, `trainer`, `models`, `seed`, `repeat` and `benchmark`; the rest is how it is carried out,
and may be changed when a run is resumed.

This page is made from the schema: `python -m sharpen.bench.reference`.
"""

_EXAMPLE = """
## An example

```yaml
task:
  name: tickets.csv
  metric: exact_match
  ratio: "3:3:4"
  fields: {input: question, answer: label}
trainer:
  name: reflact
  params: {epochs: 2, edit_budget: 3, gate_metric: mixed}
models:
  target: local/smollm2-135m
  optimizer: openai/gpt-5.5
budget: {calls: 3000, money: 5}
seed: 1
```
"""


def render() -> str:
    """The whole page."""
    pieces = [_OPENING, "\n## Keys\n\n", _table(_rows(RunConfig, ())), _EXAMPLE]
    for name in ("reflact",):
        trainer = trainers.get(name)
        pieces += [f"\n## trainer.params of `{name}`\n\n", _table(_rows(trainer.Params, ()))]
    return "".join(pieces)


def _rows(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _rows(inner, (*path, name))
            continue
        default = field.get_default(call_default_factory=True)
        shown = "required" if default is PydanticUndefined else f"`{_plain(default)}`"
        yield ".".join((*path, name)), _kind(inner, field.metadata), shown, field.description or ""


def _table(rows: Iterator[tuple[str, str, str, str]]) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{key}` | {kind} | {default} | {meaning} |" for key, kind, default, meaning in rows]
    return "\n".join(lines) + "\n"


def _kind(annotation: Any, limits: list[Any]) -> str:
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(annotation))
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_kind(one, limits) for one in typing.get_args(annotation) if one is not type(None))
    if origin in (tuple, list):
        return "list of text"
    if origin is dict:
        return "mapping"
    name = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}.get(annotation, str(annotation))
    bounds = [_bound(limit) for limit in limits]
    return " ".join([name, *filter(None, bounds)])


def _bound(limit: Any) -> str:
    for attribute, words in (("ge", "from"), ("gt", "above"), ("le", "to"), ("lt", "below")):
        value = getattr(limit, attribute, None)
        if value is not None:
            return f"{words} {value:g}"
    return ""


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value) if value != {} else "{}"


if __name__ == "__main__":
    print(render(), end="")
