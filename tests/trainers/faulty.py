"""Trainings that faults are injected into: small ones, of every kind of trainer that asks or measures side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.faults import LOSES_REPLIES, Ended, Fault, Faults
from sharpen.testing.trainers import left_behind
from sharpen.trainers import registry

TRAINERS: dict[str, tuple[str, dict[str, Any], float]] = {
    "reflact": (
        "reflact",
        {"epochs": 2, "max_steps": 2, "batch_size": 6, "minibatch_size": 2, "answer_tokens": 200},
        0.0,
    ),
    "reflact, answers vary": (
        "reflact",
        {"epochs": 1, "max_steps": 1, "batch_size": 6, "minibatch_size": 2, "answer_tokens": 200},
        0.1,
    ),
    "search": (
        "pareto-search",
        {"iterations": 2, "batch_size": 4, "minibatch_size": 2, "num_proposals": 2, "answer_tokens": 200},
        0.0,
    ),
    "few-shot": ("few-shot", {"num_candidate_programs": 2}, 0.0),
    "opro": ("opro", {"iterations": 2, "num_proposals": 3, "batch_size": 4}, 0.0),
}
ITEMS = {name: 10 if name == "opro" else 6 for name in TRAINERS}
"""Items in each split. There is a log of opro with 10 that an earlier version wrote."""


def faults_of(name: str, workers: int = 4) -> Faults:
    trainer, params, noise = TRAINERS[name]
    kind = registry.get(trainer)
    return Faults(
        lambda: kind(kind.Params(**params)), lambda: Codebook(Deal(limit=ITEMS[name])), noise=noise, workers=workers
    )


def closing_calls(name: str) -> int:
    """What the closing measurement sets aside."""
    trainer, params, noise = TRAINERS[name]
    kind, task = registry.get(trainer), Codebook(Deal(limit=ITEMS[name]))
    return kind(kind.Params(**params)).closing_calls(task, task.splits(), repeatable=noise > 0)


@dataclass(frozen=True)
class Whole:
    """A training that was not disturbed."""

    name: str
    ended: Ended
    files: dict[str, bytes]
    bill: Counter[str]

    def places(self, kind: str) -> int:
        """At how many places a fault of this kind can happen."""
        return self.ended.counts[Fault(kind, 1).place]


@cache
def run_whole(name: str, home: Path) -> Whole:
    bill: Counter[str] = Counter()
    ended = faults_of(name).run(home / name, bill=bill)
    assert ended.status == "done" and set(bill.values()) == {1}
    return Whole(name, ended, left_behind(ended.folder), bill)


def disturb(home: Path, faults: list[Fault], whole: Whole) -> int:
    """Run into these faults one after the other, then carry on to the end: it must be as if nothing had happened. Returns
    how often it was resumed."""
    world, bill = faults_of(whole.name), Counter[str]()
    ends = [world.run(home, fault, salt=number + 1, bill=bill) for number, fault in enumerate(faults)]
    ends.append(world.run(home, salt=99, bill=bill))
    assert ends[-1].status == "done"
    assert left_behind(ends[-1].folder) == whole.files, faults
    assert set(bill) == set(whole.bill), faults
    if not any(fault.kind in LOSES_REPLIES for fault in faults):
        assert max(bill.values()) == 1, f"{faults}: something that was stored was paid for again"
    return len(ends) - 1
