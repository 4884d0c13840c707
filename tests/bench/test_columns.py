"""The tables of a study: every column carries what its job's own files say; order and repetition change nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.tables import CLASSIC, OURS

Program = Callable[..., subprocess.CompletedProcess[str]]

STUDY = """
tasks: [{name: codebook, limit: 16}, {name: codebook, limit: 12, split_seed: 3}]
trainers:
  - {name: reflact, label: evidence, params: {epochs: 1, batch_size: 8}}
  - {name: gepa-base, params: {iterations: 3}}
seeds: 2
models: {target: "scripted/rules?noise=0.3", optimizer: scripted/rules}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, program_in: Any) -> Path:
    """A folder in which the study was carried out."""
    made = tmp_path_factory.mktemp("study")
    (made / "s.yaml").write_text(STUDY)
    assert program_in(made)("run", "s.yaml", "parallel=2", "-q").returncode == 0
    return made


def test_every_column_carries_what_it_says(folder: Path, table_in: Any) -> None:
    rows = table_in(folder)("s")
    assert list(rows[0])[: len(CLASSIC) + len(OURS)] == [*CLASSIC, *OURS] and len(CLASSIC) == 16
    assert len(rows) == 8
    for row in rows:
        home = folder / "runs/s/jobs" / row["job_id"]
        found = json.loads((home / "results.json").read_text())
        started = json.loads((home / "events.jsonl").read_text().splitlines()[0])
        assert (row["run_id"], row["suite"], row["status"], row["feedback"]) == ("s", "built-in", "ok", "")
        assert row["trainer_id"] == found["trainer"] == {"evidence": "reflact", "gepa-base": "gepa-base"}[row["arm"]]
        assert int(row["seed"]) == found["seed"]
        for which in ("initial", "final", "best"):
            assert float(row[f"score_{which}"]) == pytest.approx(found["test"][which]["mean"])
        assert float(row["time_seconds"]) == pytest.approx(found["clock"]["seconds"]) and row["time_seconds"] != "0"
        assert json.loads(row["resolved_trainer_kwargs"]) == started["params"]
        assert json.loads(row["resolved_optimizer_kwargs"]) == {"model": "scripted/rules"}
        limit = json.loads(row["eval_kwargs"])["limit"]
        assert row["task_id"] == {16: "codebook[limit=16]", 12: "codebook[split_seed=3, limit=12]"}[limit]
        assert (folder / "runs/s" / row["tb_logdir"]).is_dir() and row["job_id"] in row["tb_logdir"]
        best = found["best"]
        assert int(row["best_step"]) == best["step"] and int(row["steps"]) == len(found["steps"]) > 0
        assert float(row["score_val_confirmed"]) == pytest.approx(best["confirmed"]["value"])
        assert float(row["confirmed_low"]) <= float(row["score_val_confirmed"]) <= float(row["confirmed_high"])
        types = json.loads(row["score_by_type"])
        assert types == {name: one["mean"] for name, one in found["test"]["best"]["by_type"].items()} and types
        total = found["usage"]["total"]
        assert int(row["calls"]) == total["calls"] == int(row["target_calls"]) + int(row["optimizer_calls"])
        tokens = int(row["prompt_tokens"]) + int(row["completion_tokens"])
        assert tokens == int(row["target_tokens"]) + int(row["optimizer_tokens"]) > 0
        assert float(row["money"]) == 0 and int(row["judge_calls"]) == 0 and int(row["optimizer_calls"]) > 0


def test_the_curve_of_every_trainer_has_a_point_for_every_step(program: Program, tmp_path: Path, table: Any) -> None:
    (tmp_path / "s.yaml").write_text(
        "tasks: [{name: codebook, limit: 12}]\nmodels: {target: 'scripted/rules?noise=0.1', optimizer: scripted/rules}\n"
        "trainers: [{name: reflact, params: {epochs: 2, batch_size: 6}}, {name: polca, params: {iterations: 3}}, "
        "{name: opro, params: {iterations: 3}}, {name: few-shot, params: {num_candidate_programs: 3}}, noop]\n"
    )
    assert program("run", "s.yaml", "parallel=2", "-q").returncode == 0
    for row in table("s"):
        found = json.loads((tmp_path / f"runs/s/jobs/{row['job_id']}/results.json").read_text())
        steps, seconds = found["steps"], found["clock"]["steps"]
        assert [step["step"] for step in steps] == list(range(1, len(steps) + 1)) and len(seconds) == len(steps)
        assert (row["arm"] == "noop") == (not steps)
        assert all(step["current_score"] is not None or row["arm"] == "reflact" for step in steps)
        for name in ("calls", "tokens"):
            values = [step[name] for step in steps]
            assert values == sorted(values) and all(value > 0 for value in values)
        assert seconds == sorted(seconds)


def test_the_leaderboard_has_mean_interval_and_cost_over_seeds(folder: Path, table_in: Any) -> None:
    rows, board = table_in(folder)("s"), table_in(folder)("s", "leaderboard.csv")
    assert len(board) == 4 and [one["rank"] for one in board] == ["1", "2", "1", "2"]
    for one in board:
        members = [row for row in rows if (row["task_id"], row["arm"]) == (one["task_id"], one["arm"])]
        scores = [float(row["score_best"]) for row in members]
        assert int(one["n"]) == len(members) == 2 and one["failed"] == "0"
        assert float(one["score_mean"]) == pytest.approx(sum(scores) / 2)
        assert 0 <= float(one["score_low"]) <= float(one["score_mean"]) <= float(one["score_high"]) <= 1
        assert float(one["calls_mean"]) == pytest.approx(sum(int(row["calls"]) for row in members) / 2)
        assert float(one["money_mean"]) == 0 and float(one["seconds_mean"]) > 0


def test_order_changes_no_score_seeds_do_and_the_same_seed_repeats(
    folder: Path, program_in: Any, table_in: Any
) -> None:
    first, second, *more = STUDY.partition("trainers:\n")[2].splitlines(keepends=True)
    tasks = "tasks: [{name: codebook, limit: 12, split_seed: 3}, {name: codebook, limit: 16}]\n"
    (folder / "t.yaml").write_text(f"{tasks}trainers:\n{second}{first}{''.join(more)}")
    for name, file in (("again", "s.yaml"), ("turned", "t.yaml")):
        assert program_in(folder)("run", file, "--name", name, "parallel=2", "-q").returncode == 0

    def timeless(run: str) -> list[dict[str, str]]:
        clock = ("time", "seconds", "run_id")
        return [{k: v for k, v in row.items() if not k.startswith(clock)} for row in table_in(folder)(run)]

    one, two, other = timeless("s"), timeless("again"), timeless("turned")
    assert one == two
    assert one != other and {row["job_id"]: row for row in one} == {row["job_id"]: row for row in other}
    by_seed = [[row["score_val_confirmed"] for row in one if row["seed"] == seed] for seed in ("0", "1")]
    assert by_seed[0] != by_seed[1]
