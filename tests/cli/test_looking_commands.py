"""status, eval and list: what one can find out afterwards, beside a running job, and in general."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.layout import RunFolder, find_run, locked

Program = Callable[..., Any]
SCRIPTED = ("--model", "scripted/rules", "--optimizer", "scripted/rules", "--gate", "strict")


def latest() -> RunFolder:
    return find_run("latest", Path("runs"))


def cut(run: RunFolder, keep: int) -> None:
    path = run.jobs()[0] / "events.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:keep]))


def test_status_without_runs_says_how_to_start_one(program: Program) -> None:
    ran = program("status")
    assert (ran.code, "sharpen demo" in ran.out) == (0, True)


def test_status_shows_every_run(trained: Program) -> None:
    assert trained("train", "codebook", *SCRIPTED, "--steps", "1", "--limit", "20", "-q").code == 0
    rows = trained("status", "--json").json
    assert [row["state"] for row in rows] == ["finished", "finished"]
    assert [(row["step"], row["steps"]) for row in rows] == [(3, 3), (1, 1)]
    assert all(row["calls"] > 0 and row["after"] is not None for row in rows)
    assert "finished" in trained("status").out


def test_status_tells_running_from_stopped(trained: Program) -> None:
    cut(latest(), 12)
    assert trained("status", "--json").json[0]["state"] == "stopped"
    with locked(latest().jobs()[0]):
        assert trained("status", "--json").json[0]["state"] == "running"
        assert trained("status", "latest").code == 0


def test_status_of_a_run_that_crashed_at_its_very_beginning(trained: Program) -> None:
    cut(latest(), 0)
    assert trained("status").code == 0
    assert trained("status", "latest").code == 0
    cut(latest(), 1)
    assert trained("status", "latest").code == 0
    (latest().jobs()[0] / "events.jsonl").unlink()
    assert "nothing has happened yet" in trained("status", "latest").out


def test_one_damaged_run_does_not_hide_the_others(trained: Program) -> None:
    damaged = latest()
    assert trained("train", "codebook", *SCRIPTED, "--steps", "1", "--limit", "20", "-q").code == 0
    events = damaged.jobs()[0] / "events.jsonl"
    events.write_text("garbage\n" + events.read_text())
    ran = trained("status")
    assert ran.code == 0 and "finished" in ran.out
    assert f"{damaged.path.name} is left out" in ran.err and "damaged at line 1" in ran.err
    (damaged.path / "meta" / "manifest.json").unlink()
    ran = trained("compare", damaged.path.name, "latest")
    assert ran.code == 2 and "manifest.json is missing" in ran.err and "Traceback" not in ran.err


def test_status_of_one_run_shows_every_step(trained: Program) -> None:
    ran = trained("status", "latest")
    assert ran.code == 0
    assert "effect on val" in ran.out
    assert len(trained("status", "latest", "--json").json["steps"]) == 3


def test_status_shows_why_a_run_failed(program: Program) -> None:
    assert program("train", "codebook", "--model", "http://127.0.0.1:9/v1#m", "--limit", "5", "-q").code == 1
    assert program("status", "--json").json[0]["state"] == "failed"
    assert "cannot reach" in program("status", "latest").out


def test_eval_of_a_run_pays_nothing_for_what_it_measured_itself(trained: Program) -> None:
    ran = trained("eval", "latest", "--json")
    assert (ran.code, ran.json["paid_calls"], ran.json["calls"]) == (0, 0, 40)
    results = json.loads((latest().jobs()[0] / "results.json").read_text())
    (score,) = ran.json["scores"].values()
    assert score["mean"] == results["test"]["best"]["mean"]
    assert score["by_type"]


def test_eval_against_the_start_gives_the_paired_difference(trained: Program) -> None:
    ran = trained("eval", "latest", "--against", "initial", "--split", "train", "--json")
    gain = ran.json["difference"]
    assert (gain["old"], gain["items"]) == ("initial", 40)
    assert gain["low"] <= gain["mean"] <= gain["high"]
    shown = trained("eval", "latest", "--against", "initial", "--split", "train")
    assert "95 % interval" in shown.out
    assert "0 calls made now" in shown.out


def test_eval_takes_checkpoints_folders_and_files(trained: Program) -> None:
    checkpoint = latest().jobs()[0] / "checkpoints" / "best"
    assert trained("eval", str(checkpoint), "--json").json["paid_calls"] == 0
    Path("skill.md").write_text("- kind-01: ruby\n")
    ran = trained("eval", "skill.md", "--task", "codebook", "--model", "scripted/rules", "--limit", "30", "--json")
    assert (ran.code, ran.json["paid_calls"]) == (0, 30)
    again = trained("eval", "skill.md", "--task", "codebook", "--model", "scripted/rules", "--limit", "30", "--json")
    assert (again.json["paid_calls"], again.json["scores"]) == (0, ran.json["scores"])


def test_eval_of_an_unfinished_run_scores_its_newest_checkpoint(trained: Program) -> None:
    shutil.rmtree(latest().jobs()[0] / "checkpoints" / "best")
    ran = trained("eval", "latest", "-q")
    assert ran.code == 0
    assert "newest checkpoint" in ran.err


def test_repeats_are_drawn_anew_where_that_tells_something(program: Program) -> None:
    arguments = ("eval", "initial", "--task", "codebook", "--limit", "10", "--repeats", "3")
    noisy = program(*arguments, "--model", "scripted/rules?noise=0.5", "--json")
    assert (noisy.json["paid_calls"], noisy.json["scores"]["initial"]["attempts"]) == (30, 3)
    assert noisy.json["scores"]["initial"]["n"] == 10
    sure = program(*arguments, "--model", "scripted/rules")
    assert (sure.code, "repeats tell nothing new" in sure.err) == (0, True)


def test_eval_keeps_to_its_budget(program: Program) -> None:
    ran = program("eval", "initial", "--task", "codebook", "--model", "scripted/rules", "--budget", "calls=7")
    assert (ran.code, "cap of 7 calls" in ran.err) == (3, True)


@pytest.mark.parametrize("kind", ["tasks", "trainers", "models", "gates", "proposers", "metrics"])
def test_list_has_a_line_on_everything(program: Program, kind: str) -> None:
    rows = program("list", kind, "--json").json[kind]
    assert rows
    assert all(row["name"] and (row["description"] or row["missing"]) for row in rows)
    shown = program("list", kind)
    assert all(row["name"] in shown.out for row in rows)


def test_list_shows_settings_with_their_defaults(program: Program) -> None:
    for kind in ("trainers", "gates"):
        rows = program("list", kind, "--json").json[kind]
        settings = [setting for row in rows for setting in row["settings"]]
        assert settings
        assert all(setting["description"] for setting in settings)


def test_list_without_a_kind_lists_all(program: Program) -> None:
    ran = program("list")
    assert ran.code == 0
    for word in ("number-words", "reflact", "local/smollm2-135m", "sequential", "examples", "exact_match"):
        assert word in ran.out


def test_list_keeps_to_a_pattern_in_every_kind(program: Program) -> None:
    found = program("list", "--pattern", "n*", "--json").json
    names = {kind: [row["name"] for row in rows] for kind, rows in found.items()}
    assert names["trainers"] == ["noop"] and names["proposers"] == ["numbers"] and names["metrics"] == ["numeric"]
    assert {"number-words", "numeric-param", "non-trainable"} <= set(names["tasks"])
    assert names["models"] == names["gates"] == []
    shown = program("list", "trainers", "--pattern", "gepa-u*")
    assert "settings of gepa-ucb" in shown.out and "gepa-base" not in shown.out
    nothing = program("list", "tasks", "--pattern", "zzz")
    assert (nothing.code, nothing.out) == (0, "no name of tasks fits 'zzz'; `sharpen list tasks` shows all\n")


def test_list_writes_defaults_as_a_configuration_would(program: Program) -> None:
    shown = program("list", "trainers", "--pattern", "reflact").out
    assert "True" not in shown and "None" not in shown
    assert "true" in shown and "null" in shown
