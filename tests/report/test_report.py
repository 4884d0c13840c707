"""What people read: sentences that say neither more nor less than the numbers."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sharpen.bench import artifacts
from sharpen.core.candidate import Candidate
from sharpen.report import closing, steps, text
from sharpen.report.standing import State, planned_steps, standing


def gained(low: float, high: float, *, same: bool = False) -> dict[str, Any]:
    found = artifacts.results([])
    row = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 50, "failed": 0, "by_type": {}}
    found["test"] = {"initial": {"candidate": "a", **row}, "best": {"candidate": "a" if same else "b", **row}}
    found["gain"] = {"best": {"mean": (low + high) / 2, "low": low, "high": high, "n": 50, "method": "paired"}}
    return found


@pytest.mark.parametrize(
    ("low", "high", "beginning"),
    [(0.01, 0.2, "Better by +0.105"), (-0.2, -0.01, "Worse by -0.105"), (-0.05, 0.15, "No gain shown"),
     (0.0, 0.2, "No gain shown")],
)  # fmt: skip
def test_the_verdict_follows_the_interval(low: float, high: float, beginning: str) -> None:
    assert str(closing.verdict(gained(low, high))).startswith(beginning)


def test_an_unchanged_skill_is_no_gain_whatever_the_numbers() -> None:
    assert str(closing.verdict(gained(0.0, 0.0, same=True))).startswith("No gain: no change proved itself")


def test_a_job_without_a_test_has_no_verdict() -> None:
    assert closing.verdict(artifacts.results([])) is None


def test_a_report_of_nothing_still_says_where_things_are() -> None:
    place = closing.Place(Path("runs/x"), Path("runs/x/jobs/y"))
    out = io.StringIO()
    for block in closing.closing(artifacts.results([]), place, None):
        Console(file=out, width=100).print(block)
    assert "runs/x/jobs/y/events.jsonl" in out.getvalue()
    assert "sharpen resume x" in out.getvalue()


def test_a_long_skill_is_shown_in_part() -> None:
    shown = str(closing.trained(Candidate("line\n" * 2000)))
    assert "10,000 characters in all" in shown
    assert len(shown) < 6000


def test_unknown_money_is_never_shown_as_zero() -> None:
    found = artifacts.results([])
    row = {"calls": 1, "prompt_tokens": 2, "cached_tokens": 0, "completion_tokens": 3, "money": None}
    found["usage"] = {"stages": {"test/test": {"target": row}}, "total": row}
    out = io.StringIO()
    Console(file=out, width=100).print(closing.costs(found))
    assert "unknown" in out.getvalue()


EXAMPLE = "### Example\nInput: forty-two\nOutput: 42"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"op": "append", "content": EXAMPLE, "target": ""}, "add example forty-two → 42"),
        (
            {"op": "append", "content": f"{EXAMPLE}\n\n{EXAMPLE}\n", "target": ""},
            "add example forty-two → 42 and 1 more",
        ),
        ({"op": "delete", "content": "", "target": "- be brief"}, "remove '- be brief'"),
        ({"op": "replace", "content": "new", "target": "old"}, "replace 'old' by 'new'"),
    ],
)
def test_an_edit_in_short(record: dict[str, str], expected: str) -> None:
    assert steps.edit(record) == expected


def test_a_step_is_one_line() -> None:
    decision = {"effect": 0.1, "low": 0.02, "high": 0.2, "rollouts": 31}
    edits = [{"op": "append", "content": "- one\n- two", "target": ""}] * 4
    line = steps.line({"step": 3, "action": "accept", "edits": edits, "decision": decision})
    assert line == "step 3: accepted · add '- one - two'; add '- one - two'; and 2 more edits · " + (
        "+0.100 [+0.020, +0.200] on val, 31 rollouts"
    )


def test_every_action_of_the_loop_has_words() -> None:
    from sharpen.trainers.reflact.events import StepDone

    named = re.findall(r"\b(?:accept|reject|skip_\w+)", StepDone.__doc__ or "")
    assert len(named) >= 6
    assert all("_" not in steps.action(name) and steps.action(name) != name for name in named)


def test_an_effect_without_an_estimate_shows_its_bounds() -> None:
    assert steps.effect({"effect": None, "low": -0.1, "high": 0.4}) == "[-0.100, +0.400]"
    assert steps.effect({"effect": 0.1, "low": None, "high": None}) == "+0.100"
    assert steps.effect(None) == text.NOTHING


@given(st.text(), st.integers(5, 80))
def test_a_shortened_text_is_one_line_and_not_too_long(content: str, most: int) -> None:
    shown = text.short(content, most)
    assert len(shown) <= most
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3600, "1:00:00"), (None, "–")]
)
def test_durations(seconds: float | None, expected: str) -> None:
    assert text.clock(seconds) == expected


def test_small_negative_differences_do_not_read_as_minus_zero() -> None:
    assert text.signed(-0.0001) == "0.000"
    assert text.interval(-0.0001, 0.2, sign=True) == "[0.000, +0.200]"


def line(kind: str, **fields: Any) -> dict[str, Any]:
    return {"n": 0, "type": kind, "clock": {"at": 5.0, "elapsed": 2.0}, **fields}


START = line(
    "job_started", job_id="j", task="t", trainer="reflact", seed=0, splits={"train": [10, ""]},
    params={"epochs": 3, "batch_size": 4, "max_steps": None},
)  # fmt: skip
PLANNED = line("planned", steps=9, steps_per_epoch=3, items_per_step=4, deciding=8, held_back=2, remarks=[])


@pytest.mark.parametrize(
    ("ending", "running", "state"),
    [
        (None, True, State.RUNNING),
        (None, False, State.STOPPED),
        ("done", False, State.FINISHED),
        ("failed", False, State.FAILED),
        ("budget", False, State.BUDGET),
    ],
)
def test_the_state_of_a_job_follows_from_its_events(ending: str | None, running: bool, state: State) -> None:
    end = [] if ending is None else [line("job_ended", status=ending, message="why", usage={})]
    lines = [START, PLANNED, *end]
    found = standing("run", lines, artifacts.results(lines), running=running)
    assert (found.state, found.steps, found.last) == (state, 9, 5.0)


def test_a_best_score_of_zero_is_a_score() -> None:
    confirmed = line(
        "best_confirmed", candidate="c", how="", items=9, raw=0.4, value=0.0, low=0.0, high=0.1, initial=0.0
    )
    lines = [START, confirmed]
    assert standing("run", lines, artifacts.results(lines), running=False).best == 0.0


def test_steps_are_planned_only_where_a_trainer_says_so() -> None:
    assert planned_steps([START]) is None
    assert planned_steps([START, PLANNED]) == 9


def test_an_interval_that_leaves_nought_out_is_not_written_as_one_that_begins_there() -> None:
    assert text.interval(0.0002, 0.2, sign=True) == "[+0.0002, +0.200]"
    assert text.interval(-0.2, -0.0002, sign=True) == "[-0.200, -0.0002]"
