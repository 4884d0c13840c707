"""What do the gate and the slow update bring, when the optimizer's proposals have known true effects?

The task is `RuleTask`: lines of the skill repair or break numbered items, a fifth of the items are coin flips, and the true
score of any skill can be computed. The scripted optimizer proposes repairs, idle remarks and breakages in fixed shares, and
its guidance at an epoch's end repairs some of the items that still fail, or breaks some. Every arm has the same budget of
calls and the same seeds; screening on train items is off, so that the gate alone decides. Printed are the true score of the
skill each training vouches for (start 0.40), the rollouts it took, and the share of accepted changes that were truly worse
or idle, means over seeds with 95 % intervals.

    python benchmarks/reflact.py [--seeds 20] [--calls 4000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.rng import Stream
from sharpen.engine import checkpoints
from sharpen.engine.budget import Caps
from sharpen.engine.opening import How, open_job
from sharpen.engine.replay import read_events
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.stats.intervals import bounded_mean
from sharpen.testing.jobs import make_setup
from sharpen.testing.simulator import RuleTask
from sharpen.trainers.reflact.loop import ReflACT

_ITEMS = 100
_GATES = ("sequential", "strict", "force")
_SLOW = {"no": {"slow_update": False}, "gated": {"slow_update_gate": True}, "forced": {"slow_update_gate": False}}


def optimizer(request: Request) -> str:
    """Two proposals in five repair items, two do nothing, one breaks more than it repairs; the prompt alone decides."""
    data: dict[str, Any] = json.loads(last_said(request).partition("```json")[2].partition("\n```")[0])
    draw = Stream(0, last_said(request))
    if data["stage"] == "reflect":
        return json.dumps({"edits": [{"op": "append", "content": _line(data["attempts"], draw), "support": 1}]})
    if data["stage"] == "slow_update":
        failing = [pair for pair in data["pairs"] if pair["category"] in ("regressed", "persistent_failure")]
        content = f"{data['guidance']}\n{_line(failing, draw)}" if failing else ""
        return json.dumps({"reasons": "", "content": content})
    edits = [edit for patch in data.get("patches", []) for edit in patch["edits"]]
    return json.dumps({"edits": edits, "order": list(range(len(data.get("edits", [])))), "content": ""})


def _line(attempts: list[dict[str, Any]], draw: Stream) -> str:
    numbers = [attempt["item"].partition("-")[2] for attempt in attempts]
    luck = draw.below(5)
    if luck < 2 and numbers:
        return f"fix: {' '.join(draw.shuffled(numbers)[:4])}"
    if luck < 4:
        return f"Take care ({draw.below(10_000)})."
    return f"break: {' '.join(str(draw.below(_ITEMS)) for _ in range(6))}"


@dataclass(frozen=True)
class Result:
    truth: float
    rollouts: int
    accepted: int
    mistaken: int
    seconds: float


async def run(gate: str, slow: str, seed: int, calls: int, root: Path) -> Result:
    task = RuleTask(items=_ITEMS, coins=0.2, base=0.375, seed=seed)
    models = {"target": ScriptedModel("scripted/echo"), "optimizer": ScriptedModel("own/optimizer", optimizer)}
    params = {
        "epochs": 200, "batch_size": 20, "minibatch_size": 10, "edit_budget": 2, "min_edit_budget": 2, "proposers": [],
        "failure_only": True, "screen_items": 0, "drafts": False, "meta_skill": False, "gate": gate, **_SLOW[slow],
    }  # fmt: skip
    setup = make_setup(task, models, seed=seed, params=params)
    began = time.process_time()
    async with open_job(setup, root, root / "ledger.db", How(Caps(calls=calls))) as job:
        trained = await ReflACT(ReflACT.Params.model_validate(params)).train(job)
        used = job.budget.spent.calls
    events = read_events(root / "events.jsonl")
    known = {e["candidate"]: checkpoints.load(root / e["path"]) for e in events if e["type"] == "checkpointed"}
    verdicts = [
        e for e in events if e["type"] == "decided" and e["accepted"] and e["new"] in known and e["old"] in known
    ]
    mistaken = sum(_truth(task, known[e["new"]]) <= _truth(task, known[e["old"]]) for e in verdicts)
    return Result(_truth(task, trained.best), used, len(verdicts), mistaken, time.process_time() - began)


def _truth(task: RuleTask, candidate: Candidate) -> float:
    return task.true_score(candidate, "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=4000)
    options = parser.parse_args()
    print(
        f"{'gate':12} {'slow update':12} {'true score':>24} {'calls':>7} {'accepted':>9} {'not better':>11} {'CPU s':>7}"
    )
    for gate in _GATES:
        for slow in _SLOW:
            found = []
            for seed in range(options.seeds):
                with tempfile.TemporaryDirectory() as folder:
                    found.append(asyncio.run(run(gate, slow, seed, options.calls, Path(folder))))
            report(gate, slow, found)


def report(gate: str, slow: str, found: list[Result]) -> None:
    truths = [result.truth for result in found]
    low, high, _ = bounded_mean(truths)
    n, accepted = len(found), sum(result.accepted for result in found)
    score = f"{sum(truths) / n:.3f} [{low:.3f}, {high:.3f}]"
    share = f"{sum(result.mistaken for result in found) / accepted:.0%}" if accepted else "-"
    calls, seconds = sum(r.rollouts for r in found) // n, sum(r.seconds for r in found) / n
    print(f"{gate:12} {slow:12} {score:>24} {calls:>7} {accepted / n:>9.1f} {share:>11} {seconds:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
