"""How far does a search without a model bring the algorithm tasks, and how far is that from the references?

Each task is trained with `basic-search` and the proposer `syntax` alone, from the program that comes with it, for so many
seconds. The table gives the mean score on the test instances (the value beside its reference, at most 1) at the start and
at the end, the raw value on the same instances, and what it took: steps, program runs, and CPU seconds of everything
together. The sum of radii of circle packing is also given with its distance to the best known one.

    python benchmarks/algorithms.py [--seconds 60] [--seed 0] [TASK ...]

The seconds are those of the clock. On a machine that is shared, the CPU seconds say how much of them there was: two quiet
cores have twice as many.
`python benchmarks/algorithms.py --seconds 600 circle-packing` is the run docs/algorithms.md tells of.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.engine.replay import read_events
from sharpen.tasks import registry
from sharpen.tasks.algorithms.base import AlgorithmTask, references

_SETTINGS = ("iterations=100000", "num_proposals=4", "proposers=[syntax]", "finalists=1")
_SCREENED = ("num_proposals=8", "acceptance=minibatch", "batch_size=4")
"""Where there are several instances, a program is tried on four of train before it is tried on val."""
_BUDGET_ENDED = 3


@dataclass(frozen=True)
class Row:
    task: str
    scores: tuple[float, float]
    values: tuple[float, float]
    reference: float
    steps: int
    runs: int
    cpu: float


def train(name: str, seconds: float, seed: int, root: Path) -> Row:
    """Train in a process of its own, so that the CPU seconds of everything it starts are known when it has ended."""
    task = registry.get(name)
    assert isinstance(task, AlgorithmTask)
    chosen = _SETTINGS if max(task.sizes) == 1 else _SETTINGS + _SCREENED
    params = [f"trainer.params.{setting}" for setting in chosen]
    before = _cpu()
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("sharpen")), "train", name, "trainer=basic-search", *params,
            "--budget", f"seconds={seconds:g}", "--seed", str(seed), "--runs", str(root), "--json",
        ],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert done.returncode in (0, _BUDGET_ENDED), f"training {name} ended with {done.returncode}"
    folder = Path(json.loads(done.stdout)["job"])
    return _read(task, read_events(folder / "events.jsonl"), _cpu() - before)


def _read(task: AlgorithmTask, events: list[dict[str, Any]], cpu: float) -> Row:
    tested = {event["which"]: event for event in events if event["type"] == "tested"}
    measured = next(event for event in events if event["type"] == "measured" and event["purpose"] == "test")
    values = {group["candidate"]: group["measures"][task.measure] for group in measured["groups"]}
    pair = tuple(_mean(values[tested[which]["candidate"]]) for which in ("initial", "best"))
    seeds = [int(str(item.inputs["seed"])) for item in task.splits().test]
    runs = sum(len(group["hard"]) for event in events if event["type"] == "measured" for group in event["groups"])
    return Row(
        task.name,
        (tested["initial"]["score"][0], tested["best"]["score"][0]),
        (pair[0], pair[1]),
        _mean([references()[task.name][seed] for seed in seeds]),
        sum(event["type"] == "step_done" for event in events),
        runs,
        cpu,
    )


def _mean(values: list[Any]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


def _cpu() -> float:
    """CPU seconds of everything this process has started and that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the algorithm tasks without a model.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", default=list(references()))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("task                start   end     start value   end value   reference   steps    runs   CPU s")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.tasks:
            row = train(name, given.seconds, given.seed, Path(folder))
            print(
                f"{row.task:<19} {row.scores[0]:.3f}   {row.scores[1]:.3f}   {row.values[0]:>11.4f}  {row.values[1]:>10.4f}"
                f"  {row.reference:>10.4f}  {row.steps:>6}  {row.runs:>6}  {row.cpu:>6.0f}",
                flush=True,
            )
            if name == "circle-packing":
                print(f"{'':<19} {row.reference - row.values[1]:.4f} below the best known sum of radii")


if __name__ == "__main__":
    main()
