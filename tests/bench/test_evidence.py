"""What a comparison can be read from: tables, TensorBoard's files, W&B's offline logs, logs of Inspect; what is refused."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from reading_evidence import only, read

from sharpen.bench.evidence import inspect_logs
from sharpen.bench.evidence.sources import arms_of
from sharpen.bench.tfevents import Record, _framed, encode
from sharpen.core.errors import UsageError


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class TestTables:
    def test_a_long_and_a_wide_table_say_the_same(self, tmp_path: Path) -> None:
        wide = table(tmp_path / "wide.csv", "arm,run,seed,step,reward,loss", "ppo,r1,4,0,1,9", "ppo,r1,4,10,2,")
        long = table(
            tmp_path / "long.csv", "arm,run,seed,step,metric,value", "ppo,r1,4,10,reward,2", "ppo,r1,4,0,loss,9",
            "ppo,r1,4,0,reward,1",
        )  # fmt: skip
        for run in (only(wide), only(long)):
            assert (run.name, run.seed) == ("r1", 4)
            assert (run.curves["reward"].steps, run.curves["reward"].values) == ((0, 10), (1, 2))
            assert run.curves["loss"].values == (9,)

    def test_what_pandas_and_spreadsheets_make_of_a_table_is_read_too(self, tmp_path: Path) -> None:
        plain = ["arm,seed,step,acc", "a,0,1,0.5", "a,1,1,0.75"]
        (tmp_path / "plain.csv").write_text("\n".join(plain))
        (tmp_path / "index.csv").write_text("\n".join(["," + plain[0], "0," + plain[1], "1," + plain[2]]))
        (tmp_path / "floats.csv").write_text("\n".join([plain[0], "a,0.0,1,0.5", "a,1.0,1,0.75"]))
        (tmp_path / "semicolons.csv").write_text("\n".join(plain).replace(",", ";"))
        (tmp_path / "tabs.tsv").write_text("\n".join(plain).replace(",", "\t"))

        def said(name: str) -> list[tuple[str, int | None, tuple[float, ...]]]:
            (arm,) = arms_of(str(tmp_path / name), tmp_path)
            assert arm.metrics() == ("acc",)
            return [(arm.name, run.seed, tuple(run.curves["acc"].values)) for run in arm.runs]

        assert said("plain.csv") == [("a", 0, (0.5,)), ("a", 1, (0.75,))]
        for name in ("index.csv", "floats.csv", "semicolons.csv", "tabs.tsv"):
            assert said(name) == said("plain.csv")

    def test_blanks_around_cells_and_rows_of_empty_cells_say_nothing(self, tmp_path: Path) -> None:
        path = table(
            tmp_path / "t.csv", "arm ,seed, step,acc", "old,0,0,1", "old , 1,0,2", " old,1 ,1, 3", " ,,,", ",,, "
        )  # fmt: skip
        (arm,) = read(path)
        assert (arm.name, [run.seed for run in arm.runs]) == ("old", [0, 1])
        assert arm.runs[1].curves["acc"].values == (2, 3)

    def test_without_steps_a_run_has_each_metric_once_in_one_row_or_in_several(self, tmp_path: Path) -> None:
        for path in (
            table(tmp_path / "wide.csv", "seed,phase,acc,loss", "0,train,,7", "0,eval,0.5,"),
            table(tmp_path / "long.csv", "seed,metric,value", "0,loss,7", "0,acc,0.5"),
        ):
            run = only(path)
            assert {name: (curve.steps, curve.values) for name, curve in run.curves.items()} == {
                "acc": ((0,), (0.5,)),
                "loss": ((0,), (7,)),
            }

    @pytest.mark.parametrize(
        ("lines", "complaint", "cure"),
        [
            (
                ("arm,seed,acc", "a,0,1", "a,1,2", "a,1,3"),
                "4: seed 1 of a has acc twice, before in line 3",
                "several tasks need a column task; ",
            ),
            (
                ("env,note,seed,acc", "Pong,x,0,1", "Qbert,x,0,2"),
                "3: seed 0 has acc twice, before in line 2",
                "column env is not used: if it tells tasks apart, name it task; the steps of a curve need a column step",
            ),
            (
                ("env,map,seed,task,step,acc", "A,x,0,t,5,1", "B,y,0,t,5,2"),
                "3: seed 0 on t has acc at step 5 twice, before in line 2",
                "columns env, map are not used: if one tells runs apart, name it run; another run",
            ),
            (
                ("level,seed,metric,value", "1,0,acc,1", "1,0,loss,1", "2,0,acc,2"),
                "4: seed 0 has acc twice, before in line 2",
                "column level is not used",
            ),
        ],
    )
    def test_a_second_value_of_a_run_is_refused_with_what_would_tell_the_rows_apart(
        self, tmp_path: Path, lines: Iterable[str], complaint: str, cure: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            read(table(tmp_path / "t.csv", *lines))
        assert f"t.csv:{complaint}; " in str(caught.value) and cure in str(caught.value)

    def test_a_chart_exported_from_wandb_is_read_without_its_edges(self, tmp_path: Path) -> None:
        path = table(
            tmp_path / "chart.csv", '"Step","a-seed3 - eval/score","a-seed3 - eval/score__MIN","a-seed3 - eval/score__MAX"',
            '"0","0.5","0.4","0.6"', '"1","0.7","0.6","0.8"',
        )  # fmt: skip
        run = only(path)
        assert run.seed == 3
        assert list(run.curves) == ["eval/score"]
        assert run.curves["eval/score"].values == (0.5, 0.7)

    @pytest.mark.parametrize(
        ("lines", "complaint"),
        [
            ((), "is empty"),
            (("run,seed,step,reward",), "has a header and no values below it"),
            (("run,seed,step", "a,0,0"), "no column with a metric"),
            (("step,reward", "0,1"), "no column run or seed"),
            (("run,step,reward", "a,0,1", "a,x,1"), ":3: step is 'x', which is not a number"),
            (("run,step,reward", "a,0,1", "a,0,2"), ":3: a has reward at step 0 twice, before in line 2"),
            (("arm,seed,acc,acc", "a,0,1,2"), "the header has acc twice, as columns 3 and 4"),
            (("arm,seed,acc", "a,,1", "a,,2"), ":3: the run without a seed of a has acc twice"),
            (("run,seed,step,reward", "a,0,0,1", "a,1,1,2"), ":3: a has seed 1 here and 0 before"),
            (("run,seed,step,reward", "a,0.5,0,1"), "seeds are whole numbers"),
            (("run,step,reward", "a,0,1,7"), ":2: 3 columns were expected"),
        ],
    )
    def test_what_is_wrong_is_said_with_its_place(self, tmp_path: Path, lines: Iterable[str], complaint: str) -> None:
        path = tmp_path / "bad.csv"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        with pytest.raises(UsageError, match=complaint.replace("?", r"\?")) as caught:
            read(path)
        assert "bad.csv" in str(caught.value)


def records(*points: tuple[int, float]) -> bytes:
    return encode([Record(float(step), step, {"reward": value}) for step, value in points])


def test_a_value_that_is_no_number_spoils_its_own_metric_only(tmp_path: Path) -> None:
    run = only(table(tmp_path / "t.csv", "run,step,reward,loss,note", "a,0,1,nan,x", "a,1,2,3,y"))
    assert list(run.curves) == ["reward"]
    assert "t.csv:2: loss is nan" in run.faults["loss"]
    assert "t.csv:2: note is 'x'" in run.faults["note"]
    (tmp_path / "events.out.tfevents.1").write_bytes(records((0, 1.0), (1, float("nan"))))
    assert "the value at step 1 is nan" in only(tmp_path / "events.out.tfevents.1").faults["reward"]


class TestEventFiles:
    def test_runs_are_folders_and_arms_the_folders_above(self, tmp_path: Path) -> None:
        for arm in ("ppo", "a2c"):
            for seed in (0, 1):
                home = tmp_path / "logs" / arm / f"seed_{seed}"
                home.mkdir(parents=True)
                (home / "events.out.tfevents.1").write_bytes(records((0, 0.5), (5, 1.0)))
        arms = read(tmp_path / "logs")
        assert [(arm.name, [run.seed for run in arm.runs]) for arm in arms] == [("a2c", [0, 1]), ("ppo", [0, 1])]
        assert arms[0].runs[0].curves["reward"].steps == (0, 5)

    def test_a_run_that_was_carried_on_forgets_what_followed_its_checkpoint(self, tmp_path: Path) -> None:
        (tmp_path / "events.out.tfevents.1").write_bytes(records((0, 1), (1, 2), (2, 3)))
        (tmp_path / "events.out.tfevents.2").write_bytes(records((1, 20), (3, 30)))
        assert only(tmp_path).curves["reward"].values == (1, 20, 30)

    def test_a_record_cut_short_is_left_out_and_told(self, tmp_path: Path) -> None:
        (tmp_path / "events.out.tfevents.1").write_bytes(records((0, 1), (1, 2))[:-3])
        (arm,) = read(tmp_path)
        assert arm.runs[0].curves["reward"].values == (1,)
        assert "ends within a record" in arm.notes[0]

    def test_a_damaged_record_is_an_error_with_file_and_place(self, tmp_path: Path) -> None:
        data = bytearray(records((0, 1), (1, 2)))
        data[60] ^= 0xFF
        (tmp_path / "events.out.tfevents.1").write_bytes(data)
        with pytest.raises(UsageError, match=r"tfevents\.1 is damaged at byte \d+"):
            read(tmp_path)

    def test_a_scalar_as_a_tensor_is_read_and_a_text_is_not(self, tmp_path: Path) -> None:
        tensor = message((1, 1), (5, struct.pack("<f", 0.25)))
        summary = message((1, message((1, b"reward"), (8, tensor))))
        framed = encode([Record(0.0, 0, texts={"note": "hello"})])
        (tmp_path / "events.out.tfevents.1").write_bytes(framed + _framed(message((2, 7), (5, summary))))
        run = only(tmp_path)
        assert list(run.curves) == ["reward"]
        assert run.curves["reward"].steps == (7,)


def message(*parts: tuple[int, int | bytes]) -> bytes:
    """A protocol buffer of varints and bytes; four bytes are a float."""
    made = bytearray()
    for number, value in parts:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        elif len(value) == 4 and number == 5:
            made += varint(number << 3 | 5) + value
        else:
            made += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(made)


def varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def wandb_log(history: list[dict[str, Any]], *, ended: bool = True, seed: int = 3) -> bytes:
    """An offline run as W&B frames it: a header, blocks of 32 KB, records in one piece or in several."""

    def item(key: str, value: Any) -> bytes:
        if isinstance(value, int):  # newer versions write numbers by their type, and whole ones folded
            return message((1, key.encode()), (5, 2 * value if value >= 0 else -2 * value - 1))
        return message((2, key.encode()), (16, json.dumps(value).encode()))

    config = message((1, message((1, b"seed"), (16, str(seed).encode()))), (1, item("lr", 0.1)))
    about = message((1, b"id"), (4, config), (6, b"base"), (8, b"quick-fox"), (21, message((2, b"abc123"))))
    rows = [message((17, about))]
    rows += [message((2, message(*((1, item(key, value)) for key, value in row.items())))) for row in history]
    rows += [message((18, message((1, 0))))] if ended else []
    data = bytearray(b":W&B\xe1\xbe\x00")
    for row in rows:
        first = True
        while first or row:
            left = 32768 - len(data) % 32768
            if left < 7:
                data += b"\0" * left
                continue
            piece, row = row[: left - 7], row[left - 7 :]
            kind = (1 if not row else 2) if first else (4 if not row else 3)
            data += struct.pack("<IHB", zlib.crc32(piece, zlib.crc32(bytes([kind]))), len(piece), kind) + piece
            first = False
    return bytes(data)


class TestWandb:
    def test_history_settings_group_and_commit_are_read_across_blocks(self, tmp_path: Path) -> None:
        history = [
            {"_step": step, "reward": step / 2, "count": -step, "note": "x" * 500, "_runtime": 1.0}
            for step in range(200)
        ]
        (tmp_path / "run-a.wandb").write_bytes(wandb_log(history))
        (arm,) = read(tmp_path)
        (run,) = arm.runs
        assert (arm.name, run.name, run.seed, run.commit, run.lacks) == ("base", "quick-fox", 3, "abc123", "")
        assert run.settings == {"lr": 0.1}
        assert run.curves["reward"].values == tuple(step / 2 for step in range(200))
        assert run.curves["count"].values == tuple(-step for step in range(200))
        assert list(run.curves) == ["reward", "count"]

    def test_a_run_that_was_killed_lacks_its_end(self, tmp_path: Path) -> None:
        data = wandb_log([{"_step": 0, "reward": 1.0}, {"_step": 1, "reward": 2.0}], ended=False)
        (tmp_path / "run-a.wandb").write_bytes(data[:-2])
        (arm,) = read(tmp_path)
        assert arm.runs[0].lacks == "has no end in its log"
        assert arm.runs[0].curves["reward"].values == (1.0,)
        assert "the last record is left out" in arm.notes[0]

    def test_a_damaged_log_is_an_error(self, tmp_path: Path) -> None:
        data = bytearray(wandb_log([{"_step": 0, "reward": 1.0}]))
        data[40] ^= 1
        (tmp_path / "run-a.wandb").write_bytes(data)
        with pytest.raises(UsageError, match="damaged at byte 7"):
            read(tmp_path)


def inspect_log(path: Path, scores: dict[str, list[Any]], *, status: str = "success") -> Path:
    header = {"version": 2, "status": status, "eval": {"task": "sums", "model": "m", "task_args": {"k": 1},
              "model_generate_config": {"seed": 5}, "packages": {"inspect_ai": "0.3"}}}  # fmt: skip
    samples = [
        {"id": item, "epoch": epoch, "scores": {"match": {"value": value}}}
        for item, values in scores.items()
        for epoch, value in enumerate(values, start=1)
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("summaries.json", json.dumps(samples))
    return path


class TestInspect:
    def test_scores_are_averaged_over_epochs_and_marks_are_numbers(self, tmp_path: Path) -> None:
        run = only(inspect_log(tmp_path / "a.eval", {"x": ["C", "I"], "y": ["P", 1]}))
        assert run.items == {"x": 0.5, "y": 0.75}
        assert (run.task, run.seed, run.finals["test"]) == ("sums", 5, 0.625)

    @pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the program zstd")
    def test_a_log_compressed_with_zstandard_is_read(self, tmp_path: Path) -> None:
        plain = inspect_log(tmp_path / "plain.eval", {"x": ["C"], "y": ["I"]})
        packed = tmp_path / "packed.eval"
        with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w") as archive:
            for name in source.namelist():
                data = subprocess.run(["zstd", "-cq"], input=source.read(name), capture_output=True, check=True).stdout
                archive.writestr(zipfile.ZipInfo(name), data)
        # The archive says of its members that they are stored; say what they are.
        raw = packed.read_bytes()
        for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            parts = raw.split(mark)
            raw = mark.join([parts[0], *(p[: place - 4] + struct.pack("<H", 93) + p[place - 2 :] for p in parts[1:])])
        packed.write_bytes(raw)
        assert only(packed).items == {"x": 1.0, "y": 0.0}

    def test_a_broken_or_unscored_log_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "cut.eval").write_bytes(b"PK\x03\x04 no more")
        with pytest.raises(UsageError, match="damaged, or no log"):
            read(tmp_path / "cut.eval")
        with pytest.raises(UsageError, match="no scored samples; its status is error"):
            read(inspect_log(tmp_path / "none.eval", {}, status="error"))

    def test_a_log_that_unpacks_without_end_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A megabyte of zeros takes a kilobyte; the head of a part may say any size."""
        monkeypatch.setattr(inspect_logs, "LARGEST", 1 << 20)
        path = inspect_log(tmp_path / "bomb.eval", {"x": ["C"]})
        with zipfile.ZipFile(path) as archive:
            header = archive.read("header.json")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", header)
            archive.writestr("summaries.json", b"[" + b" " * (5 << 20) + b"]")
        assert path.stat().st_size < 20_000
        with pytest.raises(UsageError, match=r"bomb\.eval: summaries\.json has more than 1 MiB when it is unpacked"):
            read(path)

    @pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the program zstd")
    def test_the_program_zstd_is_not_waited_for_once_there_is_too_much(self) -> None:
        zeros = subprocess.run(["zstd", "-cq"], input=bytes(5 << 20), capture_output=True, check=True).stdout
        assert inspect_logs._unpacked_by("zstd", zeros, 1000) == bytes(1000)
        assert inspect_logs._unpacked_by("zstd", zeros, 6 << 20) == bytes(5 << 20)
        with pytest.raises(subprocess.CalledProcessError):
            inspect_logs._unpacked_by("zstd", zeros[:-5], 6 << 20)


@pytest.mark.parametrize("name", ["log.json", "history.json"])
def test_json_nested_without_end_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"eval": ' * (name == "log.json") + '{"status":[' * 100_000)
    with pytest.raises(UsageError, match=r"nested too deeply|nothing here that can be compared"):
        read(tmp_path / name)


def test_an_empty_folder_and_one_with_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("hello")
    with pytest.raises(UsageError, match="empty folder"):
        read(tmp_path / "empty")
    with pytest.raises(UsageError, match="nothing here that can be compared"):
        read(tmp_path / "other")
