"""How many rollouts does it take to learn twenty classes, and what does the trainer itself cost?

The task is `codebook` with 200 train, 100 val and 200 test items: the score is 0.0 at the start and 1.0 once the skill holds
a rule for each of the twenty kinds. The scripted model plays target and optimizer at no latency, so CPU seconds are the
trainer's and engine's own. A published system with the same settings (batch 40, four edits a step falling to two, slow
update and meta skill on, two epochs, 16 workers) needs 6 to 7 accepted steps, 1,907 to 2,008 model calls in all, and 1.6 to
2 ms of CPU per call; 1.0 was reached there after 940 to 1,080 rollouts. Here the same, for several seeds: the accepted
steps and the rollouts until the best skill holds the right rule for all twenty kinds (its true score is then 1.0), the model
calls and the CPU milliseconds per call of the whole run, test included. A first run, which also pays for imports, is left
out. CPU time on a machine that is shared moves by a factor of two with what runs beside it; the smallest figure of several
seeds is the one to compare.

    python benchmarks/codebook.py [--seeds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.engine import checkpoints
from sharpen.engine.opening import How, open_job
from sharpen.engine.replay import read_events
from sharpen.models.scripted import ScriptedModel
from sharpen.models.scripted_optimizer import RULE
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.testing.jobs import make_setup
from sharpen.trainers.finish import finish
from sharpen.trainers.reflact.loop import ReflACT

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"proposers": []},
    "no screening": {"proposers": [], "screen_items": 0},
    "strict gate, no screening": {"proposers": [], "screen_items": 0, "gate": "strict", "drafts": False},
}


class Large(Codebook):
    sizes = (200, 100, 200)
    per_kind = 25


@dataclass(frozen=True)
class Result:
    accepted: int
    rollouts: int | None
    calls: int
    test: float
    cpu: float


async def run(params: dict[str, Any], seed: int, root: Path) -> Result:
    models = {"target": ScriptedModel("scripted/rules"), "optimizer": ScriptedModel("scripted/rules")}
    whole = {"epochs": 2, "batch_size": 40, **params}
    setup = make_setup(Large(), models, seed=seed, params=whole)
    began = time.process_time()
    async with open_job(setup, root, root / "ledger.db", How(workers=16)) as job:
        trained = await ReflACT(ReflACT.Params.model_validate(whole)).train(job)
        await finish(job, trained, step=job.progress.step)
        calls = job.budget.spent.calls
    cpu = time.process_time() - began
    return _read(read_events(root / "events.jsonl"), root, calls, cpu)


def true_score(candidate: Candidate) -> float:
    """The share of the kinds for which the last rule in the skill is right."""
    rules = dict(RULE.findall(candidate.text))
    words = code_words()
    return sum(rules.get(kind) == word for kind, word in words.items()) / len(words)


def _read(events: list[dict[str, Any]], root: Path, calls: int, cpu: float) -> Result:
    accepted = rollouts = 0
    reached = None
    saved: dict[str, float] = {}
    promoted: dict[str, int] = {}
    for event in events:
        if event["type"] == "checkpointed":
            saved[event["candidate"]] = true_score(checkpoints.load(root / event["path"]))
        if event["type"] == "measured":
            rollouts += sum(row[0] for row in event["usage"].values())
        if event["type"] == "promoted" and event["promoted"] and reached is None:
            promoted[event["candidate"]] = rollouts
        if event["type"] == "step_done":
            accepted += event["action"] == "accept" and reached is None
            if saved.get(event["best"]) == 1.0 and reached is None:
                reached = rollouts
    if reached is None:
        reached = next((at for candidate, at in promoted.items() if saved.get(candidate) == 1.0), None)
    test = next(event["score"][0] for event in events if event["type"] == "tested" and event["which"] == "best")
    return Result(accepted, reached, calls, test, cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{'settings':28} {'seed':>4} {'accepted':>9} {'rollouts to 1.0':>16} {'calls':>7} {'test':>6} {'CPU ms/call':>12}"
    )
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run({"proposers": []}, 0, Path(folder)))
    for name, params in SETTINGS.items():
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                r = asyncio.run(run(params, seed, Path(folder)))
            reached = "not reached" if r.rollouts is None else f"{r.rollouts:,}"
            each = 1000 * r.cpu / r.calls
            print(
                f"{name:28} {seed:>4} {r.accepted:>9} {reached:>16} {r.calls:>7,} {r.test:>6.3f} {each:>12.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
