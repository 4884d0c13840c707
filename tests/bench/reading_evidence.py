"""What others left behind, read as `sharpen compare` reads it; for the tests of each kind of log."""

from __future__ import annotations

from pathlib import Path

from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.bench.evidence.sources import arms_of


def read(path: Path) -> list[Arm]:
    return arms_of(str(path), path.parent / "no-runs")


def only(path: Path) -> Run:
    (arm,) = read(path)
    (run,) = arm.runs
    return run
