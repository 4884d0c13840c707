"""`sharpen list`: what there is to choose from, with one line on each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True)
class Setting:
    name: str
    default: Any
    description: str


@dataclass(frozen=True)
class Entry:
    """A row: its name, what it is, what it needs that is not here, and its settings."""

    name: str
    description: str
    detail: str = ""
    missing: str = ""
    settings: tuple[Setting, ...] = field(default=())


def tasks(pattern: str = "*") -> list[Entry]:
    from sharpen.tasks import registry

    return [
        Entry(
            task.name,
            task.description,
            detail=", ".join(f"{size} {split}" for split, size in task.sizes.items())
            if task.members is None
            else f"{task.members} names",
            missing="; ".join(task.missing),
        )
        for task in registry.known(pattern)
    ]


def trainers() -> list[Entry]:
    from sharpen.trainers import registry

    return [
        Entry(row.name, "", missing=row.missing)
        if row.kind is None
        else Entry(row.name, row.kind.description, settings=settings_of(row.kind.Params))
        for row in registry.known()
    ]


def models() -> list[Entry]:
    from sharpen.models import registry

    return [Entry(model.pattern, model.description, missing=model.missing) for model in registry.known()]


def gates() -> list[Entry]:
    from sharpen.gates import registry

    return [
        Entry(
            gate.name,
            gate.description,
            missing=gate.missing,
            settings=tuple(Setting(s.name, s.default, s.description) for s in gate.params),
        )
        for gate in registry.known()
    ]


def proposers() -> list[Entry]:
    from sharpen.trainers.reflact import proposers as rooms

    return [Entry(row.name, _PROPOSERS.get(row.name, row.description), missing=row.missing) for row in rooms.known()]


def metrics() -> list[Entry]:
    from sharpen.tasks import metrics as room

    return [Entry(name, _METRICS.get(name, "")) for name in (*room.names(), "path/to/file.py:function")]


_PROPOSERS = {
    "examples": "worked examples from the train split, chosen by what failed",
    "instructions": "instruction lines from the task's description and the scorer's feedback",
    "prune": "removal and reordering of what does not help",
}
_METRICS = {
    "exact_match": "the answer is the reference, apart from case, spaces, quotes and a full stop at the end",
    "contains": "the reference stands in the answer as words of its own",
    "f1": "how many words the answer and the reference have in common",
    "numeric": "the last number of the answer is the reference; numeric?tolerance=0.01",
    "json_equal": "the JSON value in the answer equals the reference",
    "choice": "the answer settles on one label, the right one; choice?labels=red,green",
    "regex": "the reference, a regular expression, is found in the answer",
    "path/to/file.py:function": "your own: (answer, item) to a bool, a number in 0..1, or (score, feedback)",
}
KINDS: dict[str, Callable[[], list[Entry]]] = {
    "tasks": tasks,
    "trainers": trainers,
    "models": models,
    "gates": gates,
    "proposers": proposers,
    "metrics": metrics,
}


@click.command()
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@click.option("--pattern", metavar="GLOB", help="Only names that fit, such as 'gepa-*' or '*-param'.")
@options.json_option
def command(kind: str | None, pattern: str | None, as_json: bool) -> int:
    """Show what there is: tasks, trainers, models, gates, proposers, metrics.

    Of one kind, trainers and gates are shown with their settings.
    """
    wanted = [*KINDS] if kind is None else [kind]
    found = {name: _rows(name, pattern or "*") for name in wanted}
    if as_json:
        echo_json({name: [asdict(row) for row in rows] for name, rows in found.items()})
        return 0
    if pattern is not None and not any(found.values()):
        echo(f"no name of {kind or 'any kind'} fits {pattern!r}; `sharpen list{f' {kind}' if kind else ''}` shows all")
    for name, rows in found.items():
        if rows or pattern is None:
            _show(name, rows, in_full=kind is not None)
    return 0


def _rows(kind: str, pattern: str) -> list[Entry]:
    """The rows of a kind that fit. Tasks are not even built where they don't."""
    if kind == "tasks":
        return tasks(pattern)
    return [row for row in KINDS[kind]() if fnmatchcase(row.name, pattern)]


def _show(name: str, rows: list[Entry], *, in_full: bool) -> None:
    from sharpen.cli.console import console, show
    from sharpen.report import closing

    table = closing.table("name", "what it is", "", left=3)
    table.show_header = False
    for row in rows:
        table.add_row(row.name, row.description, f"(not here: {row.missing})" if row.missing else row.detail)
    blocks: list[closing.Block] = [closing.heading(name), table]
    for row in rows if in_full else ():
        if row.settings:
            blocks += [closing.heading(f"settings of {row.name}"), _settings(row)]
    show(console(), blocks)


def _settings(row: Entry) -> Any:
    from sharpen.report import closing

    table = closing.table("name", "default", "what it does", left=3)
    for setting in row.settings:
        table.add_row(setting.name, _written(setting.default), setting.description)
    return table


def settings_of(schema: type[BaseModel]) -> tuple[Setting, ...]:
    """The settings a pydantic model allows, with their defaults as one would write them."""
    return tuple(
        Setting(name, _plain(info.get_default(call_default_factory=True)), info.description or "")
        for name, info in schema.model_fields.items()
    )


def _written(value: Any) -> str:
    """A default as one would write it in a configuration."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace('"', "")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
