"""What does a study cost beside its jobs' own work?

Jobs whose trainer does nothing, two at a time, on a task of three items per split with a scripted model: what each adds to
the CPU of all processes together, and to the time. A study of one job is taken off first, so the start (imports, the
nursery, the run's own files) is not in the figure per job but beside it. Two sizes of study tell whether a job of a
large one costs more. The same on a built-in task with ten items per split shows what a job's own work adds. Last, a cold
process that carries out one such job by itself.

    python benchmarks/runner.py [--jobs 100] [--more-jobs 400] [--parallel 2]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
MODEL = "scripted/rules?noise=0.1"
TINY, BUILT_IN = "{name: tiny.jsonl, ratio: '1:1:1'}", "{name: codebook, limit: 10}"


@dataclass(frozen=True)
class Cost:
    """Seconds: on the wall, of CPU in all processes, and of CPU in the processes of jobs."""

    wall: float
    cpu: float
    jobs: tuple[float, ...] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--more-jobs", type=int, default=400)
    parser.add_argument("--parallel", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps({"input": f"question {n}", "answer": f"answer {n}"}) for n in range(9)]
        (Path(folder) / "tiny.jsonl").write_text("\n".join(lines) + "\n")
        print(f"{'no-op jobs, CPU':40} {'start s':>8} {'ms/job':>8} {'in the job':>11} {'wall s':>8}")
        for name, task in (("tiny task", TINY), ("codebook", BUILT_IN)):
            start = study(folder, task, 1, options.parallel)
            for jobs in (options.jobs, options.more_jobs):
                whole = study(folder, task, jobs, options.parallel)
                each = 1000 * (whole.cpu - start.cpu) / (jobs - 1)
                own = 1000 * statistics.median(whole.jobs)
                title = f"{name}, {jobs} jobs, {options.parallel} at a time"
                print(f"{title:40} {start.cpu:>8.2f} {each:>8.1f} {own:>11.1f} {whole.wall:>8.1f}", flush=True)
        for name, words in (("tiny task", ["tiny.jsonl"]), ("codebook", ["codebook", "--limit", "10"])):
            cold = timed([*PROGRAM, "train", *words, "--model", MODEL, "-q", "trainer=noop"], folder)
            print(f"{f'{name}, a cold process with one job':40} {cold.cpu:>8.2f} {'':>8} {'':>11} {cold.wall:>8.1f}")


def study(folder: str, task: str, jobs: int, parallel: int) -> Cost:
    """The cost of a new study of so many jobs."""
    path = Path(tempfile.mkstemp(dir=folder, suffix=".yaml")[1])
    path.write_text(
        f'tasks: [{task}]\ntrainers: [noop]\nseeds: {jobs}\nparallel: {parallel}\nmodels: {{target: "{MODEL}"}}\n'
    )
    cost = timed([*PROGRAM, "run", path.name, "-q"], folder)
    ended = [json.loads(one.read_text()) for one in Path(folder).glob(f"runs/{path.stem}/jobs/*/process.json")]
    assert [one["state"] for one in ended] == ["done"] * jobs, (
        f"{len(ended)} of {jobs} jobs ended, not all of them well"
    )
    return Cost(cost.wall, cost.cpu, tuple(one["clock"]["cpu"] for one in ended))


def timed(command: list[str], folder: str) -> Cost:
    """What a command costs, all its processes included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.monotonic() - began, cpu)


if __name__ == "__main__":
    main()
