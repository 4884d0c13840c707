"""`sharpen replay`: the decisions of a job taken again by another gate, from its story, at no cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo_json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from sharpen.bench.counterfactual import Redecided


@click.command()
@click.argument("job", default="latest")
@click.option("--gate", default="strict", show_default=True, help="The gate that decides: see `sharpen list gates`.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of that gate; may be repeated.")
@options.runs_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(job: str, gate: str, settings: tuple[str, ...], runs: Path, as_json: bool) -> int:
    """Take the decisions of JOB (a run, its job's folder, or `latest`) again with another gate, and show what differs.

    Nothing is run and nothing is changed: both candidates of each decision are compared on what the job measured.
    """
    import dataclasses

    from sharpen.bench.counterfactual import redecide
    from sharpen.cli.console import console, show
    from sharpen.cli.finding import find
    from sharpen.core.errors import UsageError
    from sharpen.engine.replay import read_events
    from sharpen.gates import registry

    folder = find(job, runs).only()
    chosen = registry.get(gate, dict(_setting(text) for text in settings))
    found = redecide(read_events(folder / "events.jsonl"), chosen)
    if not found:
        raise UsageError(f"no gate has decided anything in {folder}")
    if as_json:
        rows = [{**dataclasses.asdict(row), "differs": row.differs} for row in found]
        echo_json({"gate": gate, "job": folder.name, "decisions": rows})
    else:
        show(console(), _shown(found, gate))
    return 0


def _setting(text: str) -> tuple[str, object]:
    from sharpen.core.errors import UsageError

    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set takes NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _shown(found: list[Redecided], gate: str) -> list[Text | Table]:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("step", "was", gate, "effect", "items", "because"):
        table.add_column(heading, justify="right" if heading in ("step", "effect", "items") else "left")
    for row in found:
        effect = "" if row.effect is None else f"{row.effect:+.3f}"
        style = "yellow" if row.differs else "dim" if row.would is None else ""
        table.add_row(
            str(row.step), _word(row.was), _word(row.would), effect, f"{row.items} of {row.of}", row.reason, style=style
        )
    return [table, Text(f"\n{_summary(found, gate)}")]


def _word(accepted: bool | None) -> str:
    return "can't be told" if accepted is None else "accept" if accepted else "reject"


def _summary(found: list[Redecided], gate: str) -> str:
    was, would = sum(row.was for row in found), sum(row.would is True for row in found)
    unknown = sum(row.would is None for row in found)
    lines = [f"The job accepted {was} of {len(found)}; {gate} would have accepted {would}."]
    if unknown:
        lines.append(f"For {unknown} it can't be told from what was measured.")
    first = next((row for row in found if row.differs), None)
    if first is not None:
        lines.append(
            f"The first difference is at step {first.step}: from there on the training itself would have gone another way, "
            "and later rows answer only for the candidates this job had."
        )
    return "\n".join(lines)
