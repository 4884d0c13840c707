"""What a study does beside its jobs does not grow with them."""

from __future__ import annotations

import asyncio
import csv
import os
from pathlib import Path

import pytest

from sharpen.bench import conductor
from sharpen.bench.conductor import Conductor, Told
from sharpen.bench.layout import RunFolder
from sharpen.bench.matrix import lay_out
from sharpen.bench.processes import Log
from sharpen.bench.study import StudyConfig


def test_tables_are_not_written_after_every_job_and_tell_of_all_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    real = conductor.write_tables

    def counting(folder: RunFolder, *rest: dict[str, dict[str, object]]) -> None:
        written.append(1)
        real(folder, *rest)

    monkeypatch.setattr(conductor, "write_tables", counting)
    monkeypatch.setattr(conductor, "_TABLES_EVERY", 600.0)
    study = StudyConfig.model_validate(
        {
            "tasks": [{"name": "codebook", "limit": 3}],
            "trainers": [{"name": "noop"}],
            "seeds": 8,
            "parallel": 2,
            "models": {"target": "scripted/rules"},
        }
    )
    news: list[Told] = []
    one = Conductor(study, lay_out(study).checked(), RunFolder(tmp_path / "s"), news.append)
    one.lay_out()
    asyncio.run(one.run())
    assert [told.state for told in news if told.state != "running"] == ["done"] * 8
    assert len(written) == 3, "at the start, after the first job, and at the end"
    with (tmp_path / "s" / "results.csv").open(newline="") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["ok"] * 8


def test_a_log_knows_when_nobody_can_write_any_more(tmp_path: Path) -> None:
    source, sink = os.pipe()
    log = Log(source, tmp_path / "log")
    os.write(sink, b"one\ntw")
    assert log.pump()
    os.close(sink)
    assert not log.pump(), "the event loop would be woken for ever"
    log.close()
    assert (tmp_path / "log").read_bytes() == b"one\ntw"
