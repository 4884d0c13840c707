"""Progress of a running job: read from its story as it grows, shown in lines where there is no terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from sharpen.cli.live import Finished, OnTerminal, Plain, StepPace
from sharpen.cli.pace import Reading
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.job import Progress

STEP = {"step": 1, "epoch": 1, "action": "reject", "batch_score": 0.5, "current": "", "current_score": None, "best": "",
        "best_score": None, "best_step": 0}  # fmt: skip


def done(number: int) -> bytes:
    return json.dumps({"n": 0, "type": "step_done", **STEP, "step": number}).encode() + b"\n"


def test_steps_are_told_once_and_only_when_their_line_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    finished = Finished(path)
    assert list(finished.new()) == []
    path.write_bytes(done(1) + done(2)[:30])
    assert list(finished.new()) == ["step 1: rejected"]
    assert list(finished.new()) == []
    path.write_bytes(done(1) + done(2))
    assert list(finished.new()) == ["step 2: rejected"]


def job(*, spent: Usage = Usage(412, 60_000, 0, 1_204, 0.0), calls_per_rollout: int = 1, **progress: Any) -> Any:  # noqa: B008
    story = SimpleNamespace(replaying=False)
    budget = SimpleNamespace(spent=spent)
    return SimpleNamespace(
        progress=Progress(step=2, steps=5, stage="gate", done=7, total=53, score=0.25, best=0.5, **progress),
        runtime=SimpleNamespace(story=story), budget=budget, task=SimpleNamespace(calls_per_rollout=calls_per_rollout),
    )  # fmt: skip


def test_without_a_terminal_a_sign_of_life_comes_now_and_then() -> None:
    out = io.StringIO()
    display = Plain(Console(file=out, width=120))
    for tick in range(8 * 40):
        display.update(job(), tick / 8, 95.0)
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    for expected in ("step 2/5", "gate", "7/53", "0.250", "0.500", "412 calls", "61,204 tokens", "about 1:35 left"):
        assert expected in lines[0]


def test_a_policys_training_tells_its_evaluations_and_no_calls(tmp_path: Path) -> None:
    told = {"step": 2048, "candidate": "", "episodes": 20, "metrics": {"eval_return_mean": 168.45}, "best": True}
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"n": 0, "type": "policy_evaluated", **told, "normalised": 0.323}) + "\n")
    said = "step 2,048: mean return 168.450 (normalised 0.323) over 20 episodes, the best so far"
    assert list(Finished(path).new()) == [said]
    out = io.StringIO()
    Plain(Console(file=out, width=120)).update(job(spent=NOTHING, calls_per_rollout=0), 20.0, 95.0)
    assert "call" not in out.getvalue() and "about 1:35 left" in out.getvalue()


def test_the_time_left_of_a_policys_training_goes_by_its_steps() -> None:
    def at(done: int, elapsed: float, stage: str = "train") -> Reading:
        return Reading(step=done, steps=1000, stage=stage, calls=0, paid=0, elapsed=elapsed, open_items=0, done=done)

    pace = StepPace()
    assert pace.left(at(0, 0.0)) is None and pace.left(at(100, 1.0)) is None
    assert pace.left(at(200, 11.0)) == 80.0
    assert pace.left(at(200, 12.0, "select")) is None


def test_on_a_terminal_everything_is_in_view() -> None:
    out = io.StringIO()
    display = OnTerminal(Console(file=out, width=120, force_terminal=True, color_system=None))
    display.update(job(retries=3, last_retry="http://host answered 429"), 61.0, None)
    display.line("step 1: accepted")
    display.close()
    shown = out.getvalue()
    for expected in ("step 2/5", "gate", "best on val 0.500", "412 calls", "1:01 so far", "3 calls tried again", "429",
                     "step 1: accepted"):  # fmt: skip
        assert expected in shown
