"""`sharpen report`: what a run came to, from its files, in the terminal or as a page; derived anew where that is wished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo_json, say

if TYPE_CHECKING:
    from sharpen.bench.layout import RunFolder

_BESIDE = "-"
"""What `--html` alone means: a file in the run's own folder."""
_PAGE = "report.html"


@click.command()
@click.argument("run", default="latest")
@click.option("--rebuild", is_flag=True, help="Derive every file of the run anew from its jobs' stories.")
@click.option(
    "--html", "html_file", is_flag=False, flag_value=_BESIDE, metavar="FILE",
    help="Write one page that opens without a network; alone at the end, to report.html in the run's folder.",
)  # fmt: skip
@click.option(
    "--plots", type=click.Path(path_type=Path), metavar="DIR",
    help="Write the pictures as SVG, and as PNG where matplotlib is there (extra `plots`).",
)  # fmt: skip
@options.runs_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(run: str, rebuild: bool, html_file: str | None, plots: Path | None, runs: Path, as_json: bool) -> int:
    """Show what RUN (a path, a name, or `latest`) came to: the leaderboard of each task, and what failed and why.

    Works at any time, also while the run goes on.
    """

    from contextlib import nullcontext

    from sharpen.bench.layout import find_run, read_json
    from sharpen.bench.read_only import can_write, writable
    from sharpen.bench.tables import rebuild as rebuild_all
    from sharpen.cli.console import console, show
    from sharpen.core.errors import UsageError
    from sharpen.report.study import closing

    folder = find_run(run, runs)
    page = None if html_file is None else folder.path / _PAGE if html_file == _BESIDE else Path(html_file)
    _check(page, plots)
    derive = rebuild or not (folder.path / "summary.json").exists()
    if not can_write(folder) and (rebuild or html_file == _BESIDE):
        raise UsageError(
            f"{folder.path} can't be written to; leave out --rebuild, and name a file elsewhere: --html FILE"
        )
    with writable(folder) if derive else nullcontext(folder) as home:
        if derive:
            rebuild_all(home)
        if as_json:
            echo_json(read_json(home.path / "summary.json"))
        else:
            show(console(), closing(home.path))
        if page is not None or plots is not None:
            _write(home, page, plots)
    return 0


def _check(page: Path | None, plots: Path | None) -> None:
    """Complain of names that can't be meant, before anything is read or shown."""
    from sharpen.core.errors import UsageError

    if page is not None and page.is_dir():
        raise UsageError(f"--html {page} is a folder; name a file, such as {page / _PAGE}")
    if page is not None and page.suffix not in (".html", ".htm"):
        raise UsageError(f"--html {page}: the name of a page ends in .html; a run's name goes before it: RUN --html")
    if plots is not None and plots.exists() and not plots.is_dir():
        raise UsageError(f"--plots {plots} is a file; name a folder")


def _write(folder: RunFolder, page: Path | None, plots: Path | None) -> None:
    """The page and the pictures. Where they are is told on standard error, so that JSON stays alone."""
    from sharpen.report.page.document import write_page, write_pictures
    from sharpen.report.page.gather import gather

    found = gather(folder)
    if page is not None:
        write_page(found, page)
        say(f"page          {page}")
    if plots is not None:
        made = write_pictures(found, plots)
        only = "" if any(path.suffix == ".png" for path in made) else "; PNG needs `pip install 'sharpen[plots]'`"
        say(f"pictures      {plots} ({len(made)} files{only})")
