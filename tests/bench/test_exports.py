"""Histories exported from W&B as JSON, folders of Inspect logs of both kinds, and files that are empty, cut or damaged."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from reading_evidence import only, read

from sharpen.core.errors import UsageError

ROWS: list[dict[str, Any]] = [
    {"_step": 0, "_runtime": 1.5, "reward": 1.0, "loss": None, "note": "warm-up"},
    {"_step": 10, "_runtime": 2.5, "reward": 3.0, "loss": 0.5, "image": {"_type": "image-file"}},
]


def saved(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


class TestWandbExports:
    def test_rows_and_columns_with_data_say_the_same(self, tmp_path: Path) -> None:
        names = ["_step", "reward", "loss"]
        split = {"columns": names, "data": [[row[name] for name in names] for row in ROWS]}
        for path in (saved(tmp_path / "ppo-seed3.json", ROWS), saved(tmp_path / "x" / "ppo-seed3.json", split)):
            run = only(path)
            assert (run.name, run.seed) == ("ppo-seed3", 3)
            assert list(run.curves) == ["reward", "loss"]
            assert (run.curves["reward"].steps, run.curves["reward"].values) == ((0, 10), (1, 3))
            assert run.curves["loss"].steps == (10,)

    def test_a_folder_of_histories_is_an_arm(self, tmp_path: Path) -> None:
        for seed in range(3):
            saved(tmp_path / "ppo" / f"seed_{seed}.json", ROWS)
        (arm,) = read(tmp_path / "ppo")
        assert (arm.name, [run.seed for run in arm.runs]) == ("ppo", [0, 1, 2])

    def test_rows_that_name_their_run_arm_and_task_are_told_apart(self, tmp_path: Path) -> None:
        rows = [
            {"arm": arm, "task": "t", "name": f"{arm}-{seed}", "seed": seed, "step": step, "reward": step + seed}
            for arm in ("a", "b") for seed in (4, 5) for step in (1, 2)
        ]  # fmt: skip
        arms = read(saved(tmp_path / "all.json", rows))
        assert [(arm.name, [run.seed for run in arm.runs]) for arm in arms] == [("a", [4, 5]), ("b", [4, 5])]
        assert arms[0].runs[1].curves["reward"].values == (6, 7) and arms[0].runs[0].task == "t"

    def test_a_history_of_one_run_without_steps_is_in_order(self, tmp_path: Path) -> None:
        for seed in (0, 1):
            saved(tmp_path / "ppo" / f"{seed}.json", [{"seed": seed, "reward": 5.0}, {"seed": seed, "reward": 4.0}])
        (arm,) = read(tmp_path / "ppo")
        assert [(run.name, run.seed) for run in arm.runs] == [("0", 0), ("1", 1)]
        assert (arm.runs[1].curves["reward"].steps, arm.runs[1].curves["reward"].values) == ((0, 1), (5, 4))

    def test_a_table_of_seeds_has_a_run_for_each_and_refuses_a_second_row_without_a_step(self, tmp_path: Path) -> None:
        rows = [{"arm": arm, "env": "A", "seed": seed, "acc": 1.0} for arm in ("a ", "b") for seed in (0, "1", 2.0)]
        arms = read(saved(tmp_path / "t.json", rows))
        assert [(arm.name, [run.seed for run in arm.runs]) for arm in arms] == [("a", [0, 1, 2]), ("b", [0, 1, 2])]
        assert {run.curves["acc"].values for arm in arms for run in arm.runs} == {(1,)}
        with pytest.raises(
            UsageError, match=r"t.json: row 7: seed 2 of b has acc twice, before in row 6; column env is"
        ):
            read(saved(tmp_path / "t.json", [*rows, {**rows[-1], "env": "B"}]))

    def test_a_nan_as_a_text_spoils_its_metric_and_no_other(self, tmp_path: Path) -> None:
        run = only(saved(tmp_path / "a.json", [*ROWS, {"_step": 20, "reward": "NaN", "loss": 0.1}]))
        assert "the value at step 20 is nan" in run.faults["reward"]
        assert run.curves["loss"].values == (0.5, 0.1)

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("", "is empty"),
            ("[]", "has no rows"),
            (json.dumps(ROWS)[:60], "is cut short"),
            ('[{"_step": 0, "reward": 1},, 3]', "is no JSON: .* in line 1, column 28"),
            ("[1, 2]", "this is neither"),
            ('{"columns": ["_step", "reward"], "data": [[0, 1], [2]]}', "row 2 of data has not the 2 values"),
            ('{"columns": ["seed", "acc", "acc"], "data": [[0, 1, 2]]}', "columns has acc twice"),
            (
                '[{"run": "a", "seed": 0, "acc": 1}, {"run": "a", "seed": 1, "acc": 1}]',
                "row 2: a has seed 1 here and 0",
            ),
            ('[{"seed": "x", "acc": 1}]', "row 1: the seed is 'x'; seeds are whole numbers"),
            ('[{"step": 0, "acc": 1}, {"acc": 2}]', "row 2 has no number for its step"),
            ('{"data": 3}', "a history is a list of rows"),
            ('[{"_step": 0, "note": "x"}]', "has no numbers for bad"),
            ('[{"_step": "x", "reward": 1}]', "row 1 has no number for its step"),
        ],
    )
    def test_what_is_wrong_is_said_in_one_line(self, tmp_path: Path, content: str, complaint: str) -> None:
        with pytest.raises(UsageError, match=complaint) as caught:
            read(saved(tmp_path / "bad.json", content))
        assert "bad.json" in str(caught.value) and "\n" not in str(caught.value)


def log(score: str, status: str = "success") -> dict[str, Any]:
    spec = {"task": "sums", "model": "m", "model_generate_config": {"seed": 5}}
    samples = [{"id": "x", "scores": {"match": {"value": score}}}, {"id": "y", "scores": {"match": {"value": "C"}}}]
    return {"version": 2, "status": status, "eval": spec, "samples": samples}


def packed(path: Path, content: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({name: content[name] for name in ("status", "eval")}))
        archive.writestr("summaries.json", json.dumps(content["samples"]))
    return path


class TestFoldersOfInspectLogs:
    def test_logs_of_both_kinds_in_a_folder_are_runs_of_one_arm(self, tmp_path: Path) -> None:
        saved(tmp_path / "logs" / "one.json", log("C"))
        packed(tmp_path / "logs" / "two.eval", log("I"))
        saved(tmp_path / "logs" / "logs.json", {"one.json": {"something": "else"}})
        (arm,) = read(tmp_path / "logs")
        assert arm.name == "logs"
        assert {run.name: run.finals["test"] for run in arm.runs} == {"one": 1.0, "two": 0.5}

    def test_the_same_log_in_both_kinds_is_not_counted_twice(self, tmp_path: Path) -> None:
        saved(tmp_path / "one.json", log("C"))
        packed(tmp_path / "one.eval", log("C"))
        with pytest.raises(UsageError, match=r"has one as .eval and as .json"):
            read(tmp_path)

    def test_empty_cut_and_foreign_files_are_one_clear_message_each(self, tmp_path: Path) -> None:
        whole = json.dumps(log("C"))
        (tmp_path / "none.eval").write_bytes(b"")
        cut = packed(tmp_path / "cut.eval", log("C"))
        cut.write_bytes(cut.read_bytes()[:-30])
        hurt = packed(tmp_path / "hurt.eval", log("C"))
        data = bytearray(hurt.read_bytes())
        data[60:70] = b"0123456789"
        hurt.write_bytes(bytes(data))
        for path, complaint in (
            (tmp_path / "none.eval", "none.eval is empty"),
            (cut, "cut.eval is cut short or damaged"),
            (hurt, "hurt.eval is cut short or damaged"),
            (saved(tmp_path / "cut.json", whole[: len(whole) // 2]), "cut.json is cut short"),
            (saved(tmp_path / "odd.json", '{"status": "success", "eval": 3}'), "odd.json is no log of Inspect"),
        ):
            with pytest.raises(UsageError, match=complaint) as caught:
                read(path)
            assert "\n" not in str(caught.value)


def test_empty_logs_of_wandb_and_tensorboard_say_so(tmp_path: Path) -> None:
    (tmp_path / "run-a.wandb").write_bytes(b"")
    with pytest.raises(UsageError, match=r"run-a.wandb is empty"):
        read(tmp_path / "run-a.wandb")
    (tmp_path / "tb").mkdir()
    (tmp_path / "tb" / "events.out.tfevents.1").write_bytes(b"")
    with pytest.raises(UsageError, match=r"no scalars in its event files: .*tfevents.1 is empty"):
        read(tmp_path / "tb")
