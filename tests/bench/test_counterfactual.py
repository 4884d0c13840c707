"""Decisions taken again by another gate: the same gate says the same, a laxer one accepts more, missing draws are said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharpen.bench.counterfactual import redecide
from sharpen.cli.app import run
from sharpen.engine.replay import read_events
from sharpen.gates import registry


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished training with accepted and rejected steps."""
    root = tmp_path_factory.mktemp("runs")
    arguments = ["train", "codebook", "--model", "scripted/rules", "--optimizer", "scripted/rules", "--runs", str(root)]
    assert run([*arguments, "--steps", "6", "trainer.params.screen_items=0"]) == 0
    return next(root.glob("*/jobs/*"))


def test_the_gate_that_decided_decides_the_same_again(job: Path) -> None:
    lines = read_events(job / "events.jsonl")
    again = redecide(lines, registry.get("sequential"))
    decided = [line for line in lines if line["type"] == "decided"]
    assert len(again) == len(decided) >= 4
    told = [row for row in again if row.would is not None]
    assert told and not [row for row in told if row.differs]


def test_a_gate_without_standards_would_have_accepted_everything(job: Path) -> None:
    again = redecide(read_events(job / "events.jsonl"), registry.get("force"))
    assert again and all(row.would for row in again if row.items)


def test_only_what_was_known_at_the_time_counts(job: Path) -> None:
    lines = read_events(job / "events.jsonl")
    first = next(place for place, line in enumerate(lines) if line["type"] == "decided")
    strict = registry.get("strict")
    early, late = redecide(lines[: first + 1], strict)[0], redecide(lines, strict)[0]
    assert (early.would, early.effect, early.items) == (late.would, late.effect, late.items)


def test_where_nothing_was_measured_it_says_so() -> None:
    line = {"type": "decided", "step": 1, "new": "a", "old": "b", "accepted": True, "items": 9}
    (row,) = redecide([line], registry.get("strict"))
    assert row.would is None and "no item" in row.reason


def test_the_command_tells_what_differs_and_where(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(job), "--gate", "force", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gate"] == "force" and len(told["decisions"]) >= 4
    assert run(["replay", str(job), "--gate", "strict"]) == 0
    assert "The job accepted" in capsys.readouterr().out


def test_a_wrong_gate_setting_or_job_is_one_clear_message(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(job), "--gate", "strickt"]) == 2
    assert "did you mean 'strict'" in capsys.readouterr().err
    assert run(["replay", str(job), "--gate", "paired", "--set", "alpha"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
    assert run(["replay", str(job), "--gate", "paired", "--set", "alpah=0.1"]) == 2
    assert "alpha" in capsys.readouterr().err
