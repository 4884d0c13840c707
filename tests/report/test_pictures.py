"""The pictures of comparisons and spreads: as SVG without any package, with every arm and task that there is room for."""

from __future__ import annotations

import html
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sharpen.bench.comparison.assembly import Wish, compare_all
from sharpen.bench.comparison.matchups import matchups
from sharpen.bench.comparison.measure import choose
from sharpen.bench.comparison.spread import spreads
from sharpen.bench.evidence.sources import arms_of
from sharpen.cli.app import run
from sharpen.report import pictures
from sharpen.report.page.marks import Line, Picture
from sharpen.report.page.panels import on_paper


def table(path: Path, arms: int, tasks: int, seeds: int, steps: int, scale: float = 500.0) -> Path:
    """A log of others: later arms are better, and everything is noisy."""
    chance = random.Random(7)
    rows = ["task,arm,seed,step,reward"]
    for task in range(tasks):
        for arm in range(arms):
            for seed in range(seeds):
                for step in range(steps):
                    value = scale * (0.2 + 0.1 * arm + 0.5 * step / steps + chance.gauss(0, 0.03))
                    rows.append(f"task-{task}-with-a-long-name,arm-{arm}-with-a-long-name,{seed},{1000 * step},{value}")
    path.write_text("\n".join(rows) + "\n")
    return path


def drawn(path: Path, summary: str | None = None) -> Picture:
    arms = arms_of(str(path), path.parent, by="arm", scorer=None)
    found = compare_all(matchups([(str(path), arms)], None), Wish(choose(arms, summary=summary)))
    return on_paper(pictures.compared(found, arms))


def words(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r"<text[^>]*>(?:<title>.*?</title>)?([^<]*)</text>", text)]


@pytest.mark.parametrize(("arms", "tasks", "steps"), [(2, 1, 1), (2, 1, 9), (8, 3, 9), (8, 2, 1), (2, 40, 2)])
def test_a_comparison_stays_on_the_paper(
    tmp_path: Path, all_inside: Callable[[Picture], None], arms: int, tasks: int, steps: int
) -> None:
    all_inside(drawn(table(tmp_path / "t.csv", arms, tasks, 3, steps)))


def test_svg_needs_no_package_and_has_effects_and_a_panel_for_each_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = table(tmp_path / "t.csv", 2, 2, 4, 6)
    made = tmp_path / "c.svg"
    assert run(["compare", str(path), "--plot", str(made), "--html", str(tmp_path / "c.html")]) == 0
    shown = words(made.read_text(encoding="utf-8"))
    assert {"all tasks", "reward, mean and 95 % band"} <= set(shown)
    assert shown.count("task-0-with-a-long-name") == 2, "a row of the effects, and the title of a panel"
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<svg" in page and "--c0:" in page and not re.search(r"https?://|src=|@import", page)


def test_more_tasks_than_there_is_room_for_are_told_by_their_effects_alone(tmp_path: Path) -> None:
    few, many = (drawn(table(tmp_path / f"{n}.csv", 2, n, 3, 2)) for n in (12, 40))
    assert many.height < few.height < 4000


def test_spreads_of_all_arms_are_drawn_under_each_other(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 3, 1, 5, 4)
    made = tmp_path / "v.svg"
    assert run(["variance", str(path), "--output", str(made), "--threshold", "0.05"]) == 0
    shown = words(made.read_text(encoding="utf-8"))
    assert shown.count("How well the mean is known") == 3
    assert any(word.startswith("reached with") for word in shown)
    many = table(tmp_path / "many.csv", 2, 10, 2, 2)
    assert run(["variance", str(many), "--output", str(made)]) == 0
    shown = words(made.read_text(encoding="utf-8"))
    assert shown.count("How well the mean is known") == 12
    assert "the first 12 of 20 arms and tasks" in " ".join(shown)


def test_two_runs_are_off_the_scale_and_too_few_for_an_exact_test_have_no_point(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 1, 1, 4, 1)
    arms = arms_of(str(path), tmp_path, by="arm", scorer=None)
    measure = choose(arms)
    for paired, fewest in ((False, 4), (True, 6)):
        made = pictures.enough(spreads(arms, measure, threshold=0.05, most=None, paired=paired), measure, paired=paired)
        lines = [
            mark.points for mark in made.marks if isinstance(mark, Line) and mark.width > 2 and mark.colour == "c0"
        ]
        width, shows = lines[0], lines[1]
        aims = [mark.points for mark in made.marks if isinstance(mark, Line) and mark.width > 2 and mark.colour == "c1"]
        starts = [
            2 + 18 * (line[0][0] - aim[0][0]) / (aim[-1][0] - aim[0][0])
            for line, aim in zip((width, shows), aims, strict=True)
        ]
        assert 2.5 < starts[0] < 3
        assert starts[1] == pytest.approx(fewest)


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_picture_can_be_painted(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    path, made = table(tmp_path / "t.csv", 2, 1, 3, 1), tmp_path / f"c.{kind}"
    assert run(["compare", str(path), "--plot", str(made)]) == 0
    assert made.read_bytes().startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[kind])


def test_a_name_no_picture_can_have_is_refused_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["compare", "nowhere", "--plot", "p.gif"], ["variance", "nowhere", "--output", "p.gif"]):
        assert run(arguments) == 2
        assert "can't draw to p.gif" in capsys.readouterr().err
