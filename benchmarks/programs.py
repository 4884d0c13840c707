"""What does it cost to evaluate a program: processor time of everything together, for each task that runs programs.

Each task's own program is evaluated so many times, one after the other, in a fresh process; the table gives the
milliseconds of processor time for one evaluation (our process, the processes that watch, bubblewrap, the program itself)
and the milliseconds on the clock. What starting the process costs is measured apart and subtracted. Each figure is the least
of several rounds, since whatever else a machine does only adds to it.

    python benchmarks/programs.py [--times 20] [--rounds 3] [TASK ...]

`--scores` prints the scores of the programs that come with the tasks instead, as JSON: the same before and after a change.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.sandbox import run_program
from sharpen.tasks import registry
from sharpen.tasks.algorithms.base import AlgorithmTask, references
from sharpen.tasks.qa.code import CodeTask
from sharpen.testing.tasks import FakeAttempt

_QA = {"qa/humaneval": "humaneval", "qa/mbpp": "mbpp"}
_DATA = Path(__file__).parents[1] / "tests" / "tasks" / "qa" / "data"
_EMPTY = "an empty program"


def names() -> list[str]:
    return [_EMPTY, *references(), *_QA]


async def evaluate(name: str, times: int) -> list[float]:
    """Evaluate a task's own program on its items in turn: the scores."""
    if name == _EMPTY:
        return [float((await run_program({}, ("python", "-c", ""))).ok) for _ in range(times)]
    if name in _QA:
        task = registry.get(name, data=str(_DATA / _QA[name]))
        assert isinstance(task, CodeTask)
        items = task.splits().test
        answers = [(task.gold(item) or "", item) for item in items]
        return [(await task.tested(*answers[number % len(items)])).hard for number in range(times)]
    algorithm = registry.get(name)
    assert isinstance(algorithm, AlgorithmTask)
    items, program = algorithm.splits().test, Candidate({"program.py": algorithm.start})
    outcomes = [await algorithm.rollout(items[n % len(items)], program, FakeAttempt("")) for n in range(times)]
    return [float(outcome.hard or 0.0) for outcome in outcomes]


def measure(name: str, times: int) -> tuple[float, float]:
    """Processor seconds and seconds on the clock of a fresh process that evaluates `times` times."""
    begun = time.monotonic()
    words = [sys.executable, __file__, "--worker", "--times", str(times), name]
    cpu = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout
    return float(cpu), time.monotonic() - begun


def report_cpu(before: float) -> None:
    """Print what was used since `before`, by this process and by all that it has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(time.process_time() - before + used.ru_utime + used.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what evaluating a program costs.")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("task", nargs="*")
    chosen = parser.parse_args()
    if chosen.worker:
        atexit.register(report_cpu, time.process_time())  # called after the launcher of sandboxes has been waited for
        asyncio.run(evaluate(chosen.task[0], chosen.times))
        return
    if chosen.scores:
        scores = {name: asyncio.run(evaluate(name, 6)) for name in (chosen.task or names()[1:])}
        print(json.dumps(scores, indent=1))
        return
    print("| task | CPU ms | ms on the clock |\n|---|---|---|")
    for name in chosen.task or names():
        least = []
        for times in (1, 1 + chosen.times):
            rounds = [measure(name, times) for _ in range(chosen.rounds)]
            least.append((min(cpu for cpu, _ in rounds), min(wall for _, wall in rounds)))
        cpu, wall = (1000.0 * (many - one) / chosen.times for one, many in zip(*least, strict=True))
        print(f"| {name} | {cpu:.1f} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
