"""Whatever ends a session of a training, in whatever order questions are answered: resumed, it ends with the same bytes as
one that was never disturbed, and nothing that was stored is paid for again.

The matrix is too large for every run of the suite: a sample of it is here, the bulk is marked `slow`."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from faulty import TRAINERS, Whole, closing_calls, disturb, faults_of

from sharpen.engine.budget import Caps
from sharpen.engine.replay import read_events
from sharpen.testing.faults import KINDS, Fault
from sharpen.testing.trainers import left_behind

Undisturbed = Callable[[str], Whole]


def test_the_questions_of_these_trainings_run_side_by_side(undisturbed: Undisturbed) -> None:
    for name in TRAINERS:
        events = read_events(undisturbed(name).ended.folder / "events.jsonl")
        asked = [number for number, event in enumerate(events) if event["type"] == "asked"]
        assert name == "few-shot" or any(b == a + 1 for a, b in pairwise(asked))


def test_every_kind_of_fault_has_a_place_in_every_training(undisturbed: Undisturbed) -> None:
    for name in TRAINERS:
        assert not [kind for kind in KINDS if not undisturbed(name).places(kind)]


def test_some_faults_at_some_places(tmp_path: Path, undisturbed: Undisturbed) -> None:
    whole, luck = undisturbed("reflact"), random.Random(1)
    for number, kind in enumerate(KINDS):
        fault = Fault(kind, luck.randint(1, whole.places(kind)), luck.choice([0.0, 5.0]))
        disturb(tmp_path / str(number), [fault], whole)


def test_a_refused_key_at_every_question(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """The others are answered before it, or after it."""
    whole = undisturbed("opro")
    for number, at in enumerate((15, 16, 17, 32, 33, 34)):
        disturb(tmp_path / str(at), [Fault("auth", at, 5.0 * (number % 2))], whole)


@pytest.mark.parametrize("name", ["reflact", "search"])
@pytest.mark.parametrize("cap", ["calls", "tokens", "money", "seconds"])
def test_a_budget_that_ended_and_was_raised(name: str, cap: str, tmp_path: Path, undisturbed: Undisturbed) -> None:
    luck = random.Random(f"{name} {cap}")
    check_budget(name, cap, luck.random(), tmp_path, undisturbed(name))


def check_budget(name: str, cap: str, share: float, home: Path, whole: Whole) -> int:
    """End a training by a budget; replay it; cut it within its closing part and carry on; raise the cap. Returns resumes."""
    bill: Counter[str] = Counter()
    caps = _caps(cap, share, whole)
    ended = faults_of(name).run(home, caps=caps, bill=bill)
    log = ended.folder / "events.jsonl"
    resumes = 0
    if ended.status == "budget":
        told, files, paid = log.read_bytes(), left_behind(ended.folder), sum(bill.values())
        lines = told.splitlines(keepends=True)
        end = next(n for n, line in enumerate(lines) if b'"type":"budget_ended"' in line)
        for keep in {end + 1, (end + len(lines)) // 2, len(lines) - 1}:
            log.write_bytes(b"".join(lines[:keep]))
            again = faults_of(name).run(home, caps=caps, salt=7, bill=bill)
            resumes += 1
            assert again.status == "budget" and (cap == "seconds" or left_behind(ended.folder) == files)
            assert cap == "seconds" or sum(bill.values()) == paid
    again = faults_of(name).run(home, more_budget=True, salt=8, bill=bill)
    assert again.status == "done" and left_behind(again.folder) == whole.files
    assert max(bill.values()) == 1 or cap == "seconds", "calls that the clock cut off are sent again"
    assert set(bill) >= set(whole.bill)
    return resumes + 1


def _caps(cap: str, share: float, whole: Whole) -> Caps:
    """A cap that leaves room for the closing measurement and this share of the training."""
    events = read_events(whole.ended.folder / "events.jsonl")
    used = next(event["usage"] for event in events if event["type"] == "job_ended")
    rows = [row for part in used.values() for row in part.values()]
    calls, tokens, money = sum(r[0] for r in rows), sum(r[1] + r[2] for r in rows), sum(r[3] for r in rows)
    if cap == "calls":
        least = closing_calls(whole.name) + 1
        return Caps(calls=least + round(share * max(10, calls - least)))
    if cap == "tokens":
        return Caps(tokens=round((0.3 + 0.7 * share) * tokens))
    if cap == "money":
        return Caps(money=(0.3 + 0.7 * share) * money)
    return Caps(seconds=1.0 + share * 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_all_faults_at_all_places(name: str, tmp_path: Path, undisturbed: Undisturbed) -> None:
    """About 2,000 resumes over all trainings: every kind of fault alone, and several in a row."""
    whole, luck = undisturbed(name), random.Random(name)
    resumes = 0
    for kind in KINDS:
        places = range(1, whole.places(kind) + 1)
        for at in luck.sample(places, min(2, len(places))):
            resumes += disturb(_clear(tmp_path / "one"), [Fault(kind, at, luck.choice([0.0, 0.5, 5.0]))], whole)
    while resumes < 400:
        row = [_any_fault(luck, whole) for _ in range(luck.randint(4, 9))]
        resumes += disturb(_clear(tmp_path / "row"), row, whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_all_budgets_at_many_places(name: str, tmp_path: Path, undisturbed: Undisturbed) -> None:
    for cap in ("calls", "tokens", "money", "seconds"):
        for number in range(2):
            check_budget(name, cap, (1 + number) / 3, _clear(tmp_path / "job"), undisturbed(name))


def _any_fault(luck: random.Random, whole: Whole) -> Fault:
    """Early ones are more frequent: what an earlier session has done is not done again."""
    kind = luck.choice(KINDS)
    return Fault(kind, 1 + int(whole.places(kind) * luck.random() ** 3), luck.choice([0.0, 0.5, 5.0]))


def _clear(home: Path) -> Path:
    shutil.rmtree(home, ignore_errors=True)
    return home
