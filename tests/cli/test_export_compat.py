"""sharpen export --as compat: the whole job in classic files, at any time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.layout import find_run

Program = Callable[..., Any]


def test_a_finished_job_is_written_in_one_go(trained: Program) -> None:
    ran = trained("export", "latest", "--as", "compat", "--to", "out")
    assert (ran.code, ran.err) == (0, "")
    assert "summary.json" in ran.out
    job = find_run("latest", Path("runs")).jobs()[0]
    best = (job / "checkpoints" / "best" / "parts" / "SKILL.md").read_text()
    assert Path("out/best_skill.md").read_text() == best
    results = json.loads((job / "results.json").read_text())
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["test_hard"] == pytest.approx(results["test"]["best"]["mean"])
    assert summary["config"]["target_model"] == "scripted/rules"
    assert len(json.loads(Path("out/history.json").read_text())) == 3
    assert trained("export", "latest", "--as", "compat", "--to", "out").code == 2
    assert trained("export", "latest", "--as", "compat", "--to", "out", "--force", "--json").json["finished"] is True


def test_of_a_job_that_is_not_at_its_end_there_is_what_there_is(trained: Program) -> None:
    path = find_run("latest", Path("runs")).jobs()[0] / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if json.loads(line)["type"] == "step_done")
    path.write_text("".join(lines[: end + 1]))
    ran = trained("export", "latest", "--as", "compat")
    assert (ran.code, "not at its end" in ran.err) == (0, True)
    state = json.loads(Path("exported/runtime_state.json").read_text())
    assert state["last_completed_step"] == 1


def test_options_of_the_other_forms_are_refused(trained: Program) -> None:
    ran = trained("export", "latest", "--as", "compat", "--which", "final", "--name", "x")
    assert (ran.code, "--which, --name" in ran.err) == (2, True)
    assert not Path("exported").exists()


def test_a_task_that_is_gone_or_changed_costs_nothing_since_the_run_has_its_items(program: Program) -> None:
    source = "from sharpen.tasks.codebook import Codebook\n\n\nclass Mine(Codebook):\n    sizes = (20, 20, 20)\n"
    Path("mine.py").write_text(source)
    models = ("--model", "scripted/rules", "--optimizer", "scripted/rules")
    assert program("train", "mine.py:Mine", *models, "--steps", "1", "-q").code == 0
    Path("mine.py").write_text(source.replace("20, 20, 20", "20, 20, 30"))
    ran = program("export", "latest", "--as", "compat", "--to", "changed")
    assert (ran.code, ran.err) == (0, "")
    row = json.loads(Path("changed/test_eval/results.jsonl").read_text().splitlines()[0])
    assert row["id"] and row["task_description"]
    Path("mine.py").unlink()
    shutil.rmtree(next(Path("runs").glob("*/items")))
    ran = program("export", "latest", "--as", "compat")
    assert (ran.code, "can't be had here" in ran.err) == (0, True), ran.err
    row = json.loads(Path("exported/test_eval/results.jsonl").read_text().splitlines()[0])
    assert (row["id"], row["hard"] is None) == (None, False)
