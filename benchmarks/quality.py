"""Does the trainer of the demo do at least as well as greedy example climbing, for the same number of calls?

For each family and each seed both start from the same skill, see the same splits, and may make as many calls to learn
from; then the result is measured on the test split. The climber is the obvious thing to do without evidence: each step, try
a few random train examples on 40 val items and keep the best if its mean is higher. Prints test scores with 95 % intervals
over seeds, and the paired difference. Needs the embedded model; two to three hours on two cores for all eight families, less
where `--root` names a folder: what was measured before is found there, and a run that was stopped goes on.

    python benchmarks/quality.py [--families number-words,iso-dates] [--seeds 5] [--calls 940] [--root FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.errors import BudgetExhausted
from sharpen.engine.budget import Caps
from sharpen.engine.job import Job
from sharpen.engine.opening import How, open_job
from sharpen.models.base import Model
from sharpen.models.registry import open_model
from sharpen.skill import examples
from sharpen.stats.intervals import bounded_mean
from sharpen.tasks import registry as tasks
from sharpen.testing.jobs import make_setup
from sharpen.trainers.reflact.loop import ReflACT

DEFAULT_FAMILIES = "number-words,iso-dates,plural-nouns,count-letter,one-digit-sums,sum-json,email-json,intent-4"
_VAL_ITEMS = 40
_CANDIDATES = 4


async def climb(job: Job) -> Candidate:
    """Greedy: the best of a few random additions, if its mean on the val items is higher."""
    val = job.splits.val[:_VAL_ITEMS]
    current = job.initial
    score = (await job.evaluate(current, val, purpose="gate")).mean or 0.0
    for step in range(1, 1000):
        rng = job.rng("climb", step)
        tried = []
        for _ in range(_CANDIDATES):
            shown = job.task.example(rng.choice(job.splits.train))
            assert shown is not None
            block = examples.write(examples.Example(*shown))
            candidate = Candidate(current.text.rstrip("\n") + f"\n\n{block}\n")
            found = await job.evaluate(candidate, val, purpose="gate")
            tried.append((found.mean or 0.0, candidate))
        best = max(tried, key=lambda pair: pair[0])
        if best[0] > score:
            score, current = best
        job.climbed = current  # type: ignore[attr-defined]
    return current


async def train(job: Job, params: dict[str, object]) -> Candidate:
    return (await ReflACT(ReflACT.Params.model_validate(params)).train(job)).best


@dataclass(frozen=True)
class Result:
    test: float
    calls: int
    seconds: float


async def run(which: str, family: str, seed: int, calls: int, model: Model, root: Path) -> Result:
    task = tasks.get(family)
    setup = make_setup(task, {"target": model}, seed=seed, params={"which": which, "calls": calls})
    folder = root / f"{family}-{seed}-{which}"
    how = How(Caps(calls=calls))
    began = time.monotonic()
    async with open_job(setup, folder, root / f"{family}.db", how) as job:
        best = job.initial
        try:
            best = await (climb(job) if which == "climber" else train(job, {"epochs": 50, "batch_size": 40}))
        except BudgetExhausted:
            best = getattr(job, "climbed", job.initial)
        used = job.budget.spent.calls
    async with open_job(setup, folder / "test", root / f"{family}.db", How()) as job:
        test = await job.evaluate(best, job.splits.test, purpose="test")
    assert test.mean is not None
    return Result(test.mean, used, time.monotonic() - began)


class KeptOpen:
    """The model, started once for all runs: opening and closing it is the benchmark's business, not each job's."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def open(self) -> None: ...
    async def close(self) -> None: ...


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=DEFAULT_FAMILIES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=940)
    parser.add_argument("--root", type=Path, help="where measurements are kept, to go on with another time")
    options = parser.parse_args()
    model = open_model("local/smollm2-135m")
    await model.open()
    kept: Model = KeptOpen(model)  # type: ignore[assignment]
    print(f"{'family':16} {'climber':>22} {'sharpen':>22} {'difference':>24} {'calls':>11} {'s':>5}", flush=True)
    try:
        with tempfile.TemporaryDirectory() if options.root is None else nullcontext(options.root) as root:
            for family in options.families.split(","):
                rows: dict[str, list[Result]] = {"climber": [], "sharpen": []}
                for seed in range(options.seeds):
                    for which in rows:
                        rows[which].append(await run(which, family, seed, options.calls, kept, Path(root)))
                report(family, rows["climber"], rows["sharpen"])
    finally:
        await model.close()


def report(family: str, climber: list[Result], sharpen: list[Result]) -> None:
    rows = ([r.test for r in climber], [r.test for r in sharpen])
    differences = [ours - theirs for theirs, ours in zip(*rows, strict=True)]
    cells = [shown(row, 0.0) for row in rows] + [shown(differences, -1.0)]
    calls = sum(r.calls for r in sharpen) // len(sharpen)
    seconds = sum(r.seconds for r in sharpen) / len(sharpen)
    print(f"{family:16} {cells[0]:>22} {cells[1]:>22} {cells[2]:>24} {calls:>11} {seconds:>5.0f}", flush=True)
    each = [" ".join(f"{score:.2f}" for score in row) for row in rows]
    print(f"{'  each seed':16} {each[0]:>22} {each[1]:>22}", flush=True)


def shown(values: list[float], lowest: float) -> str:
    low, high, _ = bounded_mean(values, low=lowest)
    return f"{sum(values) / len(values):.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    asyncio.run(main())
