"""What a tree of processes uses at this moment, read from /proc; and killing such a tree.

The kernel's own limits hold for each process alone. Adding up here is what makes them hold for a program that starts others.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Tally:
    """A process and all its descendants together. `memory_kb` counts what they share only once."""

    processes: int
    cpu_seconds: float
    memory_kb: int


def tally(root: int) -> Tally:
    """Add up what `root` and its descendants use. Who ends meanwhile is left out."""
    everyone = [root, *descendants(root)]
    return Tally(len(everyone), sum(map(_cpu, everyone)), sum(map(_memory, everyone)))


def descendants(root: int) -> list[int]:
    """Every process below `root`, nearest first."""
    found = children(root)
    for process in found:
        found += children(process)
    return found


def children(process: int) -> list[int]:
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def threads_of(user: int) -> int:
    """How many threads a user has on this machine: what the kernel holds against the limit of processes."""
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                count += len(os.listdir(f"{entry.path}/task")) if entry.stat().st_uid == user else 0
            except OSError:
                continue
    return count


def kill_below(root: int) -> None:
    """Kill every descendant of `root`."""
    for process in reversed(descendants(root)):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            continue


def _cpu(process: int) -> float:
    """Its own time and that of the children it has waited for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _memory(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
