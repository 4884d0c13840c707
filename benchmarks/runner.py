"""What does a study cost beside its jobs' own work?

A hundred jobs whose trainer does nothing, two at a time, on a small task with a scripted model: the seconds it takes, the
CPU of each job's process (forked from one that has everything imported), that of the parent per job, and that of a cold
process that carries out one such job by itself.

    python benchmarks/runner.py [--jobs 100] [--parallel 2]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--parallel", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.yaml"
        task = "{name: codebook, limit: 10}"
        study.write_text(
            f"tasks: [{task}]\ntrainers: [noop]\nseeds: {options.jobs}\nparallel: {options.parallel}\n"
            'models: {target: "scripted/rules?noise=0.1"}\n'
        )
        wall, cpu = timed([*PROGRAM, "run", str(study), "-q"], folder)
        processes = [
            json.loads(path.read_text())["clock"] for path in Path(folder).glob("runs/study/jobs/*/process.json")
        ]
        assert len(processes) == options.jobs, f"{len(processes)} of {options.jobs} jobs ended"
        cold_wall, cold = timed(
            [
                *PROGRAM,
                "train",
                "codebook",
                "--limit",
                "10",
                "--model",
                "scripted/rules?noise=0.1",
                "-q",
                "trainer=noop",
            ],
            folder,
        )
    each = sorted(clock["cpu"] for clock in processes)
    print(f"{'':34} {'CPU ms':>9} {'wall':>9}")
    print(f"{f'{options.jobs} no-op jobs, {options.parallel} at a time':34} {1000 * cpu:>9.0f} {wall:>7.1f} s")
    print(f"{'a job in its own process, median':34} {1000 * each[len(each) // 2]:>9.1f}")
    print(f"{'the parent and the rest, per job':34} {1000 * (cpu - sum(each)) / options.jobs:>9.1f}")
    print(f"{'a cold process with one job':34} {1000 * cold:>9.0f} {cold_wall:>7.1f} s")


def timed(command: list[str], folder: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command, all its processes included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu


if __name__ == "__main__":
    main()
