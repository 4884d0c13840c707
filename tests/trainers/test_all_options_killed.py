"""Every option of ReflACT on at once: killed at random instants and resumed, a training ends with the same bytes."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest

from sharpen.core.task import Task
from sharpen.tasks.codebook import Codebook
from sharpen.tasks.splitting import Deal
from sharpen.testing.processes import in_child
from sharpen.testing.trainers import Ran, Reaper, TrainerContract, left_behind
from sharpen.trainers.base import Trainer
from sharpen.trainers.reflact.loop import ReflACT

SMALL: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 10,
    "minibatch_size": 3,
    "screen_items": 4,
    "alternatives": 3,
    "slow_update_samples": 4,
    "proposers": ("instructions",),
    "skill_aware": True,
}
PATCHES = SMALL | {
    "accumulation": 2,
    "budget_control": "autonomous",
    "gate_metric": "mixed",
    "gate_mixed_weight": 0.3,
    "slow_update_gate": False,
    "longitudinal_pair_policy": "changed",
    "consolidate_threshold": 1,
    "context_tokens": 700,
    "answer_tokens": 100,
}
REWRITING = SMALL | {"update_mode": "rewrite_from_suggestions", "slow_update_gate": True, "drafts": False}
TOLD = {
    "patches": {"budget_chosen", "shortened", "notes_kept", "slow_updated force_accept", "meta_skill_written written"},
    "rewriting": {"notes_kept", "slow_updated reject", "meta_skill_written written", "step_done reject"},
}
"""What must have come about, so that the kills mean something."""


class Options(TrainerContract):
    """A small training with these settings, and how to kill it."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    def task(self) -> Task:
        return Codebook(Deal(limit=40))

    def make(self) -> Trainer:
        return ReflACT(ReflACT.Params.model_validate(self.params))

    def noisy(self, home: Path) -> Ran:
        return self.train(home, noise=0.1)

    def count_writes(self, home: Path) -> int:
        count = home / "count"

        def counted() -> None:
            reaper = Reaper()
            self.noisy(home / "counted")
            count.write_text(str(reaper.writes))

        assert in_child(counted) == 0
        return int(count.read_text())

    def killed_and_resumed(self, home: Path, at: int) -> Ran:
        def killed() -> None:
            Reaper(at)
            self.noisy(home)

        assert in_child(killed) == -signal.SIGKILL
        return self.noisy(home)


@pytest.mark.parametrize("name,params,kills", [("patches", PATCHES, 12), ("rewriting", REWRITING, 5)])
def test_a_training_with_every_option_on_ends_the_same_wherever_it_was_killed(
    tmp_path: Path, name: str, params: dict[str, Any], kills: int
) -> None:
    options = Options(params)
    whole = options.noisy(tmp_path / "whole")
    told = {f"{event['type']} {event.get('action', '')}".strip() for event in whole.events}
    assert whole.status == "done" and {"step_done accept", "promoted", *TOLD[name]} <= told
    writes = options.count_writes(tmp_path)
    expected = left_behind(whole.folder)
    for at in random.Random(25).sample(range(writes), kills):
        again = options.killed_and_resumed(tmp_path / f"killed-{at}", at)
        assert left_behind(again.folder) == expected, f"killed at write {at} of {writes}"
