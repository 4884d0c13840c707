"""Every command that the README and the docs show is run, in the order it stands there, in a folder of the page's own, and
has the output that is shown (`tools/docs_outputs.py` says how that is read; `make docs-outputs` rewrites what is stale)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from docs_outputs import PAGES, Command, Ran, blocks, differences, rewritten, run_page  # noqa: E402


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_shown_work_and_say_what_is_shown(page: Path, tmp_path: Path) -> None:
    stale = []
    for ran in run_page(page, tmp_path):
        assert ran.code == 0, f"{page.name}: {ran.command.text}\n" + "\n".join(ran.lines[-40:])
        stale += [f"$ {ran.command.text}", *found] if (found := differences(ran)) else []
    assert not stale, f"{page.name} shows other outputs; `make docs-outputs` rewrites them\n" + "\n".join(stale)


def ran(shown: str, output: str) -> Ran:
    return Ran(Command("x", shown.splitlines(), 0, 0), 0, output.splitlines())


def test_times_stamps_and_widths_do_not_count_and_figures_do() -> None:
    shown = (
        "run runs/a-20250101-000000, job abc\nscore  0.5  1:03  12 s ago\nstage  calls  seconds\nall        3      1.5"
    )
    now = "run runs/a-20260202-111111, job abc\nscore    0.5    0:09   3 s ago\nstage  calls  seconds\nall        3     10.0"
    assert differences(ran(shown, now)) == []
    for other in (now.replace("0.5", "0.6"), now.replace("abc", "abd"), now.replace(" 3 ", " 4 "), now + "\nmore"):
        assert differences(ran(shown, other))


def test_what_is_left_out_is_not_compared_and_pieces_are_rewritten_in_their_place() -> None:
    shown = "first 1\n...\ntable\na 1\nb 2\n...\nlast 9\n..."
    now = "first 1\nx\ny\ntable\na 1\nb 2\nz\nlast 9\nend"
    assert differences(ran(shown, now)) == []
    later = "first 2\nx\ntable\na 3\nc 5\nb 4\nz\nlast 8\nend"
    assert differences(ran(shown, later))
    assert rewritten(ran(shown, later)) == ["first 2", "...", "table", "a 3", "c 5", "b 4", "...", "last 8", "..."]
    assert differences(ran("\n".join(rewritten(ran(shown, later))), later)) == []
    assert rewritten(ran("a 1\nb 2", "a 2\nb 3\nc 4")) == ["a 2", "b 3", "c 4"]
    steps = "...\nstep 2/4 batch 0.175\nseen b\n..."
    now = "step 1/4 batch 0.000\nseen a\n\nstep 2/4 batch 0.190\nseen b"
    assert rewritten(ran(steps, now)) == ["...", "step 2/4 batch 0.190", "seen b", "..."]
    blank = "...\n\nTest\nscore 1\n..."
    progress = "begin\n  step 1/4 · 3 calls · 0:15 so far, time left not known yet\nstep 1: x\n\nTest\nscore 2\nend"
    assert rewritten(ran(blank, progress)) == ["...", "", "Test", "score 2", "..."]
    with pytest.raises(LookupError, match="edit the page by hand"):
        rewritten(ran("quite something else\n...", "0"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_left_out_says_why(page: Path) -> None:
    assert all(block.note for block in blocks(page) if block.mark)


def test_the_readme_shows_the_two_commands() -> None:
    commands = [command for block in blocks(ROOT / "README.md") for command in block.commands]
    assert {"make demo", "make test"} <= set(commands)
    assert any(command.startswith("sharpen resume") for command in commands)
