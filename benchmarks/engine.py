"""How close the engine comes to the ideal, with its ledger and events on: one process, a model that only waits.

Prints one table: efficiency (ideal time over wall time), CPU per rollout, by how much memory was up at its peak, and how
long 100,000 rollouts take, first time and replayed. Below it, what one more rollout takes at the peak, in bytes: the
difference between 10,000 and 100,000 of them. The items themselves are in memory before and do not count.

    python benchmarks/engine.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.models.scripted import ScriptedModel
from sharpen.tasks.textual import TextTask
from sharpen.testing.jobs import make_setup, running_job


class Many(TextTask):
    """As many items as asked for, each an easy question."""

    name = "many"
    metric = "exact_match"
    skill = "Say the word you are given.\n\n" + "Keep to the point, and add nothing of your own. " * 20

    def __init__(self, count: int) -> None:
        super().__init__()
        few = tuple(
            Item(f"{name}-{n}", {"input": f"word {n} {name}"}, f"word {n}") for name in ("v", "t") for n in (1,)
        )
        items = tuple(Item(f"i{n}", {"input": f"word {n}"}, f"word {n}") for n in range(count))
        self._splits = Splits(items, few[:1], few[1:])


def memory_mb(what: str) -> float:
    """`VmRSS` is what the process has now, `VmHWM` the most it has had since `forget_peak`. Linux knows both."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def measure(count: int, latency: float, in_flight: int, folder: Path) -> tuple[float, float, float]:
    """Wall and CPU seconds of one evaluation of `count` items, and by how many megabytes memory was up at its peak."""
    task = Many(count)
    model = ScriptedModel("scripted/echo", latency=latency)
    setup = make_setup(task, {"target": model})
    async with running_job(setup, folder, workers=in_flight) as job:
        items = setup.splits.train
        _ = [item.digest for item in items]
        forget_peak()
        before = memory_mb("VmRSS")
        wall, cpu = time.perf_counter(), time.process_time()
        evaluation = await job.evaluate(setup.initial, items, purpose="bench")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        assert evaluation.mean == 1.0, evaluation.mean
        return wall, cpu, memory_mb("VmHWM") - before


def in_own_process(*arguments: object) -> list[float]:
    """One measurement in a fresh interpreter, so that neither memory nor warm caches carry over."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(word) for word in out.split()]


def one(count: int, latency: float, in_flight: int, folder: str) -> None:
    print(*asyncio.run(measure(count, latency, in_flight, Path(folder))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=4, metavar=("COUNT", "LATENCY", "IN_FLIGHT", "FOLDER"))
    parser.add_argument("--quick", action="store_true", help="10,000 rollouts instead of 100,000")
    options = parser.parse_args()
    if options.one:
        count, latency, in_flight, folder = options.one
        return one(int(count), float(latency), int(in_flight), folder)
    print(f"{'what':44} {'ideal s':>8} {'wall s':>8} {'efficiency':>10} {'CPU ms each':>11} {'peak MB':>10}")
    for count, latency, in_flight in ((1_000, 0.05, 64), (2_048, 1.0, 512)):
        with tempfile.TemporaryDirectory() as folder:
            wall, cpu, peak = in_own_process(count, latency, in_flight, folder)
        ideal = latency * -(-count // in_flight)
        what = f"{count} items, {latency * 1000:.0f} ms model, {in_flight} in flight"
        print(f"{what:44} {ideal:8.2f} {wall:8.2f} {ideal / wall:10.3f} {1000 * cpu / count:11.3f} {peak:+10.1f}")
    few, many = (1_000, 10_000) if options.quick else (10_000, 100_000)
    peaks = {}
    for count in (few, many):
        with tempfile.TemporaryDirectory() as folder:
            for how in ("first time", "replayed"):
                wall, cpu, peak = in_own_process(count, 0.0, 64, folder)
                peaks[how, count] = peak
                what = f"{count} rollouts, {how}"
                print(f"{what:44} {'':>8} {wall:8.2f} {'':>10} {1000 * cpu / count:11.3f} {peak:+10.1f}")
    for how in ("first time", "replayed"):
        slope = (peaks[how, many] - peaks[how, few]) * (1 << 20) / (many - few)
        print(f"one more rollout at the peak, {how}: {slope:.0f} bytes")
    return None


if __name__ == "__main__":
    main()
