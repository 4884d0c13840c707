"""A run that trained policies, written by hand as its jobs would have: evaluations by step, no text, no items, no gate.
And the check that a picture keeps inside of its box."""

from __future__ import annotations

import json
import xml.etree.ElementTree as Tree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.layout import RunFolder
from sharpen.report.page import svg
from sharpen.report.page.marks import LETTER, Picture, Words

BENCHMARK = {
    "random_score": 22.0, "human_score": 500.0, "reference": "classic", "protocol": "100 episodes", "scale": 1.0,
    "best_metric": "eval_return_mean", "best_metric_mode": "max", "task_protocol": "",
}  # fmt: skip


def story(job_id: str, task: str, trainer: str, seed: int, height: float, *, benchmark: bool, ended: bool) -> list[Any]:
    """The events of one job that gets better for six evaluations."""
    started = {
        "type": "job_started", "schema": 1, "job_id": job_id, "task": task, "task_version": "1", "trainer": trainer,
        "trainer_version": "1", "params": {"learning_rate": 0.0003}, "models": {}, "render": "", "seed": seed,
        "repeatable": True, "splits": {}, "candidate": "",
    }  # fmt: skip
    lines: list[dict[str, Any]] = [started]
    if benchmark:
        lines.append({"type": "benchmark_stated", **BENCHMARK})
    returns = [24.0 + seed, *(height * step / 5 + 7 * ((step + seed) % 3) for step in range(1, 6))]
    best = -1.0
    for place, value in enumerate(returns):
        step, digest = 10_000 * place, f"{place:064x}"
        metrics = {"train_return_mean": value * 0.8} if place else {}
        lines.append({"type": "advanced", "step": step, "candidate": digest, "parts": {}, "metrics": metrics})
        lines.append({"type": "stage_done", "step": step, "stage": "train", "usage": {}})
        found = {"eval_return_mean": value, "eval_return_std": 3.0}
        lines.append(
            {"type": "policy_evaluated", "step": step, "candidate": digest, "episodes": 10, "metrics": found,
             "normalised": None, "best": value > best}
        )  # fmt: skip
        best = max(best, value)
    if ended:
        low, high = best - 20, best + 5
        chosen = f"{returns.index(best):064x}"
        lines.append(
            {"type": "best_confirmed", "candidate": chosen, "how": "fresh episodes", "items": 100, "raw": best,
             "value": best - 8, "low": low, "high": high, "initial": 24.0}
        )  # fmt: skip
        for which, value in (("initial", 24.0), ("best", best - 9)):
            score = [value, value - 5, value + 5, 100, 0]
            lines.append({"type": "tested", "which": which, "candidate": chosen, "score": score, "by_type": {}})
        lines.append({"type": "job_ended", "status": "done", "message": "", "usage": {}})
    return [
        {"n": n, **line, "clock": {"at": 1e9 + n, "elapsed": float(n), "seconds": 1.0}} for n, line in enumerate(lines)
    ]


@pytest.fixture
def policies(tmp_path: Path) -> Callable[..., RunFolder]:
    """Makes a run with a job for each task, arm and seed; an arm comes about as high as its number says."""

    def make(
        arms: dict[str, float], seeds: int = 2, *, tasks: tuple[str, ...] = ("CartPole-v1",), benchmark: bool = True,
        ended: bool = True,
    ) -> RunFolder:  # fmt: skip
        home = tmp_path / "policies"
        jobs: dict[str, Any] = {}
        for task in tasks:
            for arm, height in arms.items():
                for seed in range(seeds):
                    job_id = f"{len(jobs):012x}"
                    jobs[job_id] = {"task": task, "trainer": arm, "arm": arm, "seed": seed, "params": {}, "models": {}}
                    lines = story(job_id, task, arm, seed, height, benchmark=benchmark, ended=ended)
                    folder = home / "jobs" / job_id
                    folder.mkdir(parents=True)
                    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (home / "meta").mkdir()
        (home / "meta" / "config.snapshot.yaml").write_text("{}\n")
        (home / "meta" / "manifest.json").write_text(json.dumps({"schema_version": 1, "jobs": jobs}))
        return RunFolder(home)

    return make


def _inside(picture: Picture) -> None:
    for mark in picture.marks:
        points = ((mark.x, mark.y),) if isinstance(mark, Words) else mark.points
        for x, y in points:
            assert -1 <= x <= picture.width + 1 and -1 <= y <= picture.height + 1, mark
        if isinstance(mark, Words):
            wide = len(mark.text) * LETTER * mark.size
            start = mark.x - {"start": 0.0, "middle": wide / 2, "end": wide}[mark.anchor]
            assert start >= -12 and start + wide <= picture.width + 12, mark
    Tree.fromstring(svg.as_file(picture))


@pytest.fixture(scope="session")
def all_inside() -> Callable[[Picture], None]:
    """Complains of a mark, or of a word as wide as it is reckoned to be, that does not lie on the paper."""
    return _inside
