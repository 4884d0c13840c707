"""Logs that an earlier version of sharpen wrote with answers at the place of a question that failed: they are cut back and
go on, and paid answers are not paid for again. A log that is another program's is refused, and left as it is."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty import Whole, faults_of

from sharpen.core.errors import NotDeterministic
from sharpen.engine.events import encode
from sharpen.engine.replay import read_events
from sharpen.engine.shifted import is_shifted
from sharpen.testing.faults import Fault
from sharpen.testing.trainers import left_behind

FIXTURE = Path(__file__).parent / "data" / "shifted_log"
"""A run of opro, made with the last version that shifted: the first of three questions was refused with a 401."""
NAME = "opro"

Line = dict[str, Any]


@pytest.fixture
def reference(undisturbed: Callable[[str], Whole]) -> Whole:
    return undisturbed(NAME)


def lay_out_with_ledger(home: Path, events: list[Line], reference: Whole) -> Path:
    """A run with this log, and a ledger that knows every answer."""
    shutil.copytree(reference.ended.folder.parents[1], home)
    shutil.rmtree(home / "jobs")
    return lay_out(home, events, reference)


def lay_out(home: Path, events: list[Line], reference: Whole) -> Path:
    job = home / "jobs" / reference.ended.folder.name
    job.mkdir(parents=True)
    text = b"".join(encode({**line, "n": n}) + b"\n" for n, line in enumerate(events))
    (job / "events.jsonl").write_bytes(text)
    return job / "events.jsonl"


def unmarked(events: list[Line]) -> list[Line]:
    """The lines as an earlier version would have written them."""
    return [{**line, "clock": {k: v for k, v in line["clock"].items() if k != "log"}} for line in events]


def without(files: dict[str, bytes], start: str) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not name.startswith(start)}


def old_shift(events: list[Line], gone: int, answered: int, then: list[Line]) -> list[Line]:
    """What the earlier version left of `events` where the question at `gone` failed, so many after it were answered, and
    `then` followed."""
    return [*events[:gone], *events[gone + 1 : gone + 1 + answered], *then]


def questions(events: list[Line]) -> list[int]:
    return [n for n, line in enumerate(events) if line["type"] == "asked"]


def test_a_run_that_the_earlier_version_broke_goes_on(tmp_path: Path, reference: Whole) -> None:
    events = read_events(FIXTURE / "events.jsonl")
    own = read_events(reference.ended.folder / "events.jsonl")
    path = lay_out(tmp_path, [*unmarked(own[:1]), *events[1:]], reference)
    with gzip.open(FIXTURE / "ledger.db.gz") as packed, (tmp_path / "ledger.db").open("wb") as ledger:
        shutil.copyfileobj(packed, ledger)
    cut = [line for line in events[7:] if line["type"] != "job_ended"]
    assert [line["scope"] for line in cut] == [["opro", 1, 1], ["opro", 1, 2]], (
        "answers to the second and third question"
    )
    bill: Counter[str] = Counter()
    ended = faults_of(NAME).run(tmp_path, bill=bill)
    assert ended.status == "done"
    files = left_behind(ended.folder)
    assert without(files, "events-cut") == reference.files
    kept = read_events(path.with_name("events-cut-7.jsonl"))
    assert [(line["n"], line["scope"]) for line in kept] == [(7, ["opro", 1, 1]), (8, ["opro", 1, 2])]
    assert sum(bill.values()) == sum(reference.bill.values()) - 16, "16 answers were paid for by the earlier version"
    assert ended.notices == [
        "events.jsonl: an earlier version of sharpen wrote 2 events from number 7 on at wrong positions when a question "
        "failed; they are now in events-cut-7.jsonl, and the job goes on from event 7"
    ]


@pytest.mark.parametrize("ending", ["stopped", "failed", "budget"])
@pytest.mark.parametrize("group,gone,answered", [(0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 1)])
def test_wherever_the_earlier_version_shifted(
    tmp_path: Path, reference: Whole, group: int, gone: int, answered: int, ending: str
) -> None:
    events = unmarked(read_events(reference.ended.folder / "events.jsonl"))
    place = questions(events)[3 * group + gone]
    then: dict[str, list[Line]] = {
        "stopped": [],
        "failed": [{"type": "job_ended", "status": "failed", "message": "401", "usage": {}, "clock": {}}],
        "budget": [{"type": "budget_ended", "message": "enough", "clock": {}}, *events[-12:-1]],
    }
    lay_out_with_ledger(tmp_path / "run", old_shift(events, place, answered, then[ending]), reference)
    bill: Counter[str] = Counter()
    ended = faults_of(NAME).run(tmp_path / "run", bill=bill)
    assert without(left_behind(ended.folder), "events-cut") == reference.files
    assert not bill and len(ended.notices) == 1


class TestRefused:
    """Something that is no shift stops the job, and the log stays as it is."""

    def refuse(self, home: Path, reference: Whole, change: Callable[[list[Line], int], list[Line]]) -> None:
        events = unmarked(read_events(reference.ended.folder / "events.jsonl"))
        path = lay_out_with_ledger(home / "run", change(events, questions(events)[0]), reference)
        before = path.read_bytes()
        with pytest.raises(NotDeterministic):
            faults_of(NAME).run(home / "run")
        assert path.read_bytes() == before and [*path.parent.glob("events*")] == [path]

    def test_questions_in_another_order(self, tmp_path: Path, reference: Whole) -> None:
        self.refuse(tmp_path, reference, lambda e, n: [*e[:n], e[n + 1], e[n], e[n + 2]])

    def test_a_question_left_out_by_a_program_that_went_on(self, tmp_path: Path, reference: Whole) -> None:
        self.refuse(tmp_path, reference, lambda e, n: [*e[:n], *e[n + 1 :]])

    def test_a_question_nobody_asks(self, tmp_path: Path, reference: Whole) -> None:
        self.refuse(tmp_path, reference, lambda e, n: [*e[:n], {**e[n], "scope": ["opro", 1, 7]}])

    def test_a_question_put_between(self, tmp_path: Path, reference: Whole) -> None:
        self.refuse(tmp_path, reference, lambda e, n: [*e[:n], {**e[n], "scope": ["opro", 1, 7]}, *e[n : n + 2]])

    def test_scores_of_a_metric_that_changed_its_mind(self, tmp_path: Path, reference: Whole) -> None:
        def change(events: list[Line], n: int) -> list[Line]:
            measured = next(m for m in range(n) if events[m]["type"] == "measured")
            groups = json.loads(json.dumps(events[measured]["groups"]))
            groups[0]["hard"] = [1 - score for score in groups[0]["hard"]]
            return [*events[:measured], {**events[measured], "groups": groups}, *events[measured + 1 :]]

        self.refuse(tmp_path, reference, change)

    def test_a_shift_in_a_log_of_this_version(self, tmp_path: Path, reference: Whole) -> None:
        """It can't come about, so it is something else."""
        mark = {"log": 2}
        self.refuse(tmp_path, reference, lambda e, n: [{**e[0], "clock": mark}, *old_shift(e[1:], n - 1, 2, [])])


def test_what_is_shifted() -> None:
    def asked(scope: str) -> Line:
        return {"type": "asked", "scope": scope}

    a, b, c = asked("a"), asked("b"), asked("c")
    end: Line = {"type": "budget_ended"}
    assert is_shifted([b], [a, b, c]) and is_shifted([b, c], [a, b, c]) and is_shifted([c, end, b], [a, b, c])
    assert not is_shifted([], [a, b, c]) and not is_shifted([end, b], [a, b, c])
    assert not is_shifted([b, a], [a, b, c]) and not is_shifted([c, b], [a, b, c])
    assert not is_shifted([b, b], [a, b, c]) and not is_shifted([b, asked("d")], [a, b, c]) and not is_shifted([b], [a])


def test_a_fault_of_this_version_leaves_nothing_to_cut(tmp_path: Path, reference: Whole) -> None:
    ended = faults_of(NAME).run(tmp_path, Fault("auth", 15))
    assert ended.error is not None
    again = faults_of(NAME).run(tmp_path)
    assert again.notices == [] and left_behind(again.folder) == reference.files
