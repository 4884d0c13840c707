"""`sharpen report`: what a run came to, from its files; all of them derived anew where that is wished for."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import options


@click.command()
@click.argument("run", default="latest")
@click.option("--rebuild", is_flag=True, help="Derive every file of the run anew from its jobs' stories.")
@options.runs_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(run: str, rebuild: bool, runs: Path, as_json: bool) -> int:
    """Show what RUN (a path, a name, or `latest`) came to: the leaderboard of each task, and what failed and why.

    Works at any time, also while the run goes on.
    """
    import json

    from sharpen.bench.layout import find_run, read_json
    from sharpen.bench.tables import rebuild as rebuild_all
    from sharpen.cli.running import console, show
    from sharpen.report.study import closing

    folder = find_run(run, runs)
    if rebuild or not (folder.path / "summary.json").exists():
        rebuild_all(folder)
    if as_json:
        click.echo(json.dumps(read_json(folder.path / "summary.json"), ensure_ascii=False))
    else:
        show(console(), closing(folder.path))
    return 0
