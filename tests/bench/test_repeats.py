"""One seed several times over: repetitions ask the very same and pay for it again; what differs is not the seed's doing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.comparison.pairing import BY_SEED, paired
from sharpen.bench.evidence.nouns import Run
from sharpen.bench.study import StudyConfig, cells
from sharpen.core.chat import Reply, Request
from sharpen.core.errors import UsageError
from sharpen.engine.opening import How, open_job
from sharpen.models.scripted import ScriptedModel
from sharpen.tasks.codebook import Codebook
from sharpen.testing.jobs import make_setup

Program = Callable[..., subprocess.CompletedProcess[str]]

STUDY = """
tasks: [{name: codebook, limit: 12}]
trainers: [{name: reflact, params: {epochs: 1, batch_size: 6}}, noop]
models: {target: "scripted/rules?noise=0.3", optimizer: scripted/rules}
"""


class Moody(ScriptedModel):
    """Answers by its mood, which is its own and follows from no seed; remembers the seeds it was sent."""

    def __init__(self) -> None:
        super().__init__("scripted/echo?noise=0.5")
        self.sent: list[int | None] = []
        self._moods = count()

    async def complete(self, request: Request) -> Reply:
        self.sent.append(request.seed)
        reply = await super().complete(request)
        return replace(reply, text=f"{next(self._moods)}")


def test_a_repetition_sends_the_same_seeds_and_is_answered_afresh(tmp_path: Path) -> None:
    model = Moody()

    async def answers(repeat: int, folder: str) -> list[str]:
        setup = make_setup(Codebook(), {"target": model}, seed=5)
        setup = replace(setup, spec=replace(setup.spec, repeat=repeat))
        items = setup.splits.test[:4]
        async with open_job(setup, tmp_path / folder, tmp_path / "ledger.db", How(workers=1)) as job:
            found = await job.evaluate(setup.initial, items, purpose="test")
            return [found.outcome(place).answer for place in range(len(items))]

    first = asyncio.run(answers(0, "a"))
    again = asyncio.run(answers(0, "b"))
    assert first == again and len(model.sent) == 4, "the same job is not paid for twice"
    repeated = asyncio.run(answers(1, "c"))
    assert len(model.sent) == 8 and model.sent[4:] == model.sent[:4], "the very same is asked"
    assert set(repeated).isdisjoint(first), "and answered afresh"


def test_repetitions_are_jobs_of_their_own_and_each_pays(program: Program, tmp_path: Path, table: Any) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    assert program("run", "s.yaml", "seeds={repeat: 2, seed: 4}", "-q").returncode == 0
    rows = table("s")
    assert [(row["arm"], row["seed"], row["repeat"]) for row in rows] == [
        ("reflact", "4", "0"), ("reflact", "4", "1"), ("noop", "4", "0"), ("noop", "4", "1"),
    ]  # fmt: skip
    assert len({row["job_id"] for row in rows}) == 4
    for one, other in (
        rows[:2],
        rows[2:],
    ):  # the model's noise follows from the seed alone: nothing else is random here
        assert one["score_best"] == other["score_best"] and one["calls"] == other["calls"]
    told = json.loads((tmp_path / f"runs/s/jobs/{rows[1]['job_id']}/results.json").read_text())
    assert told["repeat"] == 1
    with sqlite3.connect(tmp_path / "runs/s/ledger.db") as ledger:
        (paid,) = ledger.execute("select count(*) from replies").fetchone()
    assert program("run", "s.yaml", "--name", "once", "seeds=[4]", "-q").returncode == 0
    with sqlite3.connect(tmp_path / "runs/once/ledger.db") as ledger:
        (once,) = ledger.execute("select count(*) from replies").fetchone()
    assert paid == 2 * once > 0
    assert {row["job_id"] for row in table("once")} <= {row["job_id"] for row in rows}, "the first is the ordinary job"
    said = program("compare", "s@noop", "s@reflact").stdout
    assert "repetitions of seed 4" in said and "2 seeds" in said


def test_seeds_are_a_number_a_list_or_one_several_times() -> None:
    def draws(seeds: Any) -> list[tuple[int, int]]:
        study = StudyConfig.model_validate({"tasks": [{"name": "t"}], "trainers": [{"name": "noop"}], "seeds": seeds})
        return [(cell.config.seed, cell.config.repeat) for cell in cells(study)]

    assert draws(3) == [(0, 0), (1, 0), (2, 0)] and draws([5, 2]) == [(5, 0), (2, 0)]
    assert draws({"repeat": 2, "seed": 7}) == [(7, 0), (7, 1)]
    for nonsense in ({"repeat": 0}, {"seed": 1}, {"repeat": 2, "sed": 1}, "two", 0, []):
        with pytest.raises(ValueError, match=r"write how many|at least one seed"):
            draws(nonsense)


def test_runs_pair_by_seed_and_repetition() -> None:
    def arm(name: str, *draws: tuple[int, int]) -> list[Run]:
        return [Run(f"{name}{draw}", "", seed=draw[0], repeat=draw[1]) for draw in draws]

    old, new = arm("a", (4, 0), (4, 1), (4, 2)), arm("b", (4, 2), (4, 1), (4, 3))
    found = paired(old, new, BY_SEED, ("a", "b"), "")
    assert [(one.draw, other.draw) for one, other in zip(found.old, found.new, strict=True)] == [
        ((4, 1),) * 2,
        ((4, 2),) * 2,
    ]
    assert "4, repeat 3 only in b" in " ".join(found.notes) and "repetitions of seed 4" in found.notes[-1]
    with pytest.raises(UsageError, match="has the seed 4, repeat 1 twice"):
        paired(arm("a", (4, 1), (4, 1)), new, BY_SEED, ("a", "b"), "")
