"""TensorBoard's files: the format as another reader understands it, what is in them, and how they grow."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench import tensorboard
from sharpen.bench.tfevents import Record, crc32c, encode
from sharpen.engine.replay import read_events

Program = Callable[..., subprocess.CompletedProcess[str]]

TRAIN = (
    "train", "codebook", "--model", "scripted/rules?noise=0.1", "--optimizer", "scripted/rules", "--limit", "24",
    "--steps", "3", "-q",
)  # fmt: skip


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer, as they stand: numbers, eight or four bytes, or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = data[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if size is None else size
        yield key >> 3, data[at : at + size]
        at += size


def read(path: Path) -> list[dict[str, Any]]:
    """Every event of a file, its sums checked: wall time, step, scalars, texts."""
    data, at, events = path.read_bytes(), 0, []

    def checked(start: int, size: int) -> bytes:
        piece = data[start : start + size]
        (stored,) = struct.unpack("<I", data[start + size : start + size + 4])
        turned = (stored - 0xA282EAD8) & 0xFFFFFFFF
        assert ((turned >> 17) | (turned << 15)) & 0xFFFFFFFF == _slow_crc32c(piece)
        return piece

    while at < len(data):
        (size,) = struct.unpack("<Q", checked(at, 8))
        record = dict(fields(checked(at + 12, size)))
        at += 12 + size + 4
        event: dict[str, Any] = {"at": struct.unpack("<d", record[1])[0], "step": record.get(2, 0), "values": {}}
        for _, value in fields(record.get(5, b"")):
            parts = dict(fields(value))
            tag = parts[1].decode()
            if 2 in parts:
                event["values"][tag] = struct.unpack("<f", parts[2])[0]
            elif 8 in dict(fields(parts[8])):
                event["values"][tag] = dict(fields(parts[8]))[8].decode()
        events.append(event)
    return events


def _slow_crc32c(data: bytes) -> int:
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def test_the_sum_is_crc_32_of_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_numbers_texts_and_times_come_back(tmp_path: Path) -> None:
    made = [Record(1.5, 0, {"a/b": 0.25}), Record(2.5, 300, {"a/b": -3.0, "c": 1e6}, {"text": "Größe\n" * 100})]
    (tmp_path / "f").write_bytes(encode(made))
    version, *events = read(tmp_path / "f")
    assert version["at"] == 1.5
    assert [(e["at"], e["step"], e["values"]) for e in events] == [
        (1.5, 0, {"a/b": 0.25}),
        (2.5, 300, made[1].scalars | made[1].texts),
    ]


def test_a_training_shows_its_curve_its_cost_its_test_and_its_skill(program: Program, tmp_path: Path) -> None:
    assert program(*TRAIN).returncode == 0
    (job,) = tmp_path.glob("runs/*/jobs/*")
    (file,) = (job / "tb").iterdir()
    events, found = read(file), json.loads((job / "results.json").read_text())
    assert "tfevents" in file.name
    curve = {e["step"]: e["values"] for e in events if "train/batch" in e["values"]}
    assert sorted(curve) == [1, 2, 3]
    for step in found["steps"]:
        shown = curve[step["step"]]
        assert shown["used/calls"] == step["calls"] and shown["used/tokens"] == step["tokens"]
        assert shown.get("val/best") == pytest.approx(step["best_score"])
    done = [line for line in read_events(job / "events.jsonl") if line["type"] == "step_done"]
    assert [e["at"] for e in events if "train/batch" in e["values"]] == [line["clock"]["at"] for line in done]
    assert sum("used/calls" in e["values"] for e in events) == 3, "one point for each step, and none besides"
    values = {tag: value for event in events for tag, value in event["values"].items()}
    assert values["total/calls"] == found["usage"]["total"]["calls"]
    assert values["test/initial"] == pytest.approx(found["test"]["initial"]["mean"])
    assert values["test/best"] == pytest.approx(found["test"]["best"]["mean"])
    assert values["val/confirmed"] == pytest.approx(found["best"]["confirmed"]["value"])
    skill = (job / "checkpoints/best/parts/SKILL.md").read_text()
    assert [line.strip() for line in values["best/SKILL.md"].splitlines()] == [
        line.strip() for line in skill.splitlines()
    ]
    assert "| params.batch_size | 40 |" in values["job"]
    before = file.read_bytes()
    file.unlink()
    assert program("report", "--rebuild").returncode == 0
    assert file.read_bytes() == before


def test_a_file_is_carried_on_where_a_reader_stopped(program: Program, tmp_path: Path) -> None:
    program(*TRAIN)
    (job,) = tmp_path.glob("runs/*/jobs/*")
    lines, file = read_events(job / "events.jsonl"), job / "tb" / tensorboard.FILE
    whole = file.read_bytes()
    file.unlink()
    with_two_steps = max(n for n, line in enumerate(lines) if line["type"] == "step_done" and line["step"] == 2) + 1
    tensorboard.write(job, lines[:with_two_steps])
    open_file, begun = file.open("rb"), file.read_bytes()
    with open_file:
        assert whole.startswith(begun) and open_file.read() == begun
        tensorboard.write(job, lines)
        assert begun + open_file.read() == whole


def test_what_has_no_scores_has_no_file(tmp_path: Path) -> None:
    tensorboard.write(tmp_path, [])
    assert not list(tmp_path.iterdir())


def test_tensorboard_itself_reads_it(program: Program, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    program(*TRAIN)
    (folder,) = tmp_path.glob("runs/*/jobs/*/tb")
    found = accumulator.EventAccumulator(str(folder))
    found.Reload()
    assert [event.step for event in found.Scalars("used/calls")][:3] == [1, 2, 3]
    assert b"batch_size" in found.Tensors("job")[0].tensor_proto.string_val[0]


def test_the_file_grows_while_a_job_runs(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(*TRAIN)
    (job,) = tmp_path.glob("runs/*/jobs/*")
    lines = (job / "events.jsonl").read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(tensorboard, "_EVERY", 0.01)
    monkeypatch.setattr(tensorboard, "_SHARE", 1.0)
    live = tmp_path / "live"
    live.mkdir()

    async def grown(size: int) -> int:
        """The file's size, once it is larger than it was."""
        file = live / "tb" / tensorboard.FILE
        for _ in range(3000):
            await asyncio.sleep(0.01)
            if file.exists() and file.stat().st_size > size:
                return file.stat().st_size
        raise AssertionError("the file does not grow")

    async def run() -> list[int]:
        sizes = [0]
        async with tensorboard.following(live):
            for line in lines:
                with (live / "events.jsonl").open("ab") as file:
                    file.write(line)
                if b'"step_done"' in line:
                    sizes.append(await grown(sizes[-1]))
        return sizes

    assert len(asyncio.run(run())) == 1 + 3
