"""Jobs that run at the same time share what an endpoint allows, and this machine's cores."""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from sharpen.bench.config import RunConfig
from sharpen.bench.layout import cores
from sharpen.bench.runner import build
from sharpen.core.digest import Json
from sharpen.models.scripted import script
from sharpen.testing.http import FakeEndpoint, Fault, FaultKind, answer_with

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
STUDY = """
tasks: [{{name: codebook, limit: 6}}]
trainers: [noop]
seeds: 4
models: {{target: "{url}#m?concurrency={cap}"}}
"""

DYING = """
import asyncio, os, signal
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.item import Item
from sharpen.core.outcome import scored
from sharpen.core.task import Splits, Task

class Asks(Task):
    name = "asks"
    def splits(self):
        return Splits(*[tuple(Item(f"{s}-{n}", {"input": f"{s} {n}"}, "x") for n in range(4)) for s in ("a", "b", "c")])
    def seed(self):
        return Candidate("Say x.")
    async def rollout(self, item, candidate, attempt):
        await attempt.complete(Request(messages=(Message("user", f"{self.name} {item.id}"),)))
        return scored(item.id, 1.0)

class Dies(Asks):
    name = "dies"
    async def rollout(self, item, candidate, attempt):
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGKILL)
        return await super().rollout(item, candidate, attempt)
"""


def run(folder: Path, study: str, name: str, *words: str) -> list[dict[str, str]]:
    (folder / "study.yaml").write_text(study)
    done = subprocess.run(
        [*PROGRAM, "run", "study.yaml", "-q", "--name", name, *words],
        cwd=folder, capture_output=True, text=True, env=dict(os.environ), timeout=100,
    )  # fmt: skip
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    with (folder / "runs" / name / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def timeless(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if not k.startswith(("time", "seconds", "run_id"))} for row in rows]


def test_four_jobs_together_keep_to_the_cap_of_one_and_come_to_the_same(tmp_path: Path) -> None:
    with FakeEndpoint(answer_with(script("rules")), latency=0.02).in_thread() as server:
        study = STUDY.format(url=server.url, cap=3)
        alone = run(tmp_path, study, "alone", "parallel=1")
        server.most_in_flight = 0
        together = run(tmp_path, study, "together", "parallel=4")
        assert server.most_in_flight == 3
        assert timeless(alone) == timeless(together)
        assert {row["status"] for row in together} == {"ok"}


def test_a_refusal_to_one_job_slows_them_all(tmp_path: Path) -> None:
    busy = Fault(FaultKind.RATE_LIMITED, every=9, times=1, retry_after="0.7")
    answered: list[float] = []

    def answer(body: Mapping[str, Json]) -> str:
        answered.append(time.monotonic())
        return answer_with(script("rules"))(body)

    with FakeEndpoint(answer, latency=0.02, faults=[busy]).in_thread() as server:
        rows = run(tmp_path, STUDY.format(url=server.url, cap=4), "s", "parallel=4")
        assert {row["status"] for row in rows} == {"ok"}
        quiet = max(later - earlier for earlier, later in itertools.pairwise(answered))
        assert quiet >= 0.5, "somebody did not keep to the pause"


def test_a_job_that_is_killed_leaves_its_slot_to_the_others(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(DYING)
    with FakeEndpoint(latency=0.3).in_thread() as server:
        study = (
            "tasks: ['bad.py:Dies', 'bad.py:Asks']\ntrainers: [noop]\nparallel: 2\ntimeout: 30\n"
            f"models: {{target: '{server.url}#m?concurrency=1'}}\n"
        )
        rows = run(tmp_path, study, "s")
    assert [(row["status"], row["feedback"]) for row in rows] == [("failed", "killed by SIGKILL"), ("ok", "")]
    assert server.most_in_flight <= 2  # the endpoint may not have noticed yet that the dead job hung up


def test_jobs_that_ask_the_same_pay_for_it_once(tmp_path: Path) -> None:
    with FakeEndpoint(answer_with(script("rules")), latency=0.05).in_thread() as server:
        study = STUDY.format(url=server.url, cap="8&deterministic=true")
        rows = run(tmp_path, study, "together", "parallel=4")
        assert {row["status"] for row in rows} == {"ok"}
        assert set(server.seen.values()) == {1} and len(server.seen) == 12


@pytest.mark.slow
def test_a_job_that_is_killed_while_it_pays_leaves_the_question_to_the_others(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(DYING.replace("{self.name} {item.id}", "{item.id}"))
    with FakeEndpoint(latency=0.3).in_thread() as server:
        study = (
            "tasks: ['bad.py:Dies', 'bad.py:Asks']\ntrainers: [noop]\nparallel: 2\ntimeout: 30\n"
            f"models: {{target: '{server.url}#m?deterministic=true'}}\n"
        )
        rows = run(tmp_path, study, "s")
    assert [row["status"] for row in rows] == ["failed", "ok"]


def test_jobs_divide_the_workers_of_the_embedded_model() -> None:
    pytest.importorskip("xllamacpp")
    config = RunConfig.model_validate({"task": {"name": "codebook"}, "models": {"target": "local/smollm2-135m"}})
    for jobs, workers in ((1, cores()), (2, max(1, cores() // 2)), (64, 1)):
        model = build(config, jobs_at_once=jobs).setup.models["target"]
        assert getattr(model, "workers") == workers  # noqa: B009
