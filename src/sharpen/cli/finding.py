"""Which job a command is about: a run by path, name or `latest`, or one job's own folder inside a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.bench import policy_curve
from sharpen.bench.layout import RunFolder, find_run, open_run
from sharpen.core.errors import UsageError
from sharpen.engine import checkpoints


@dataclass(frozen=True)
class Found:
    """A run and those of its jobs that were meant: one where a job's folder was given, else all that have begun."""

    run: RunFolder
    jobs: tuple[Path, ...]

    def only(self) -> Path:
        """The job, where there can be no doubt which."""
        if not self.jobs:
            raise UsageError(f"nothing has happened yet in {self.run.path}; start it with `sharpen resume`")
        if len(self.jobs) > 1:
            several = ", ".join(str(job) for job in self.jobs[:5])
            raise UsageError(f"{self.run.path} has {len(self.jobs)} jobs; name one of them: {several}")
        return self.jobs[0]


def find(given: str, root: Path) -> Found:
    """What `given` stands for: a job's folder, or a run as every command takes it."""
    for path in (Path(given), root / given):
        run = RunFolder(path.parent.parent)
        if path.parent.name == "jobs" and path.is_dir() and run.config.exists():
            return Found(open_run(run.path), (path,))
    run = find_run(given, root)
    return Found(run, tuple(run.jobs()))


def must_be_text(job: Path, lines: Iterable[Mapping[str, Any]], wanted: str) -> None:
    """Refuse a job that trains a policy, for a command that is about texts."""
    if any(line["type"] == policy_curve.ADVANCED for line in lines):
        raise UsageError(
            f"{job} trains a policy, and {wanted}; a policy's checkpoint is whole by itself: copy its folder, "
            f"{checkpoints.FOLDER}/best, and `sharpen play` and `sharpen eval` take it anywhere"
        )


def checkpoint_of(path: Path) -> Path:
    """The checkpoint that is meant by its weights' file, or by the folder of all of them; any other path as it is."""
    if path.is_file():
        weights, among_others = path, path.parent.name == checkpoints.FOLDER
        path = path.parent / path.stem if among_others else path.parent
        if not (path / checkpoints.METADATA).exists():
            raise UsageError(f"{weights} is no checkpoint: give the whole folder of one, which says what it is")
    best = path / "best"
    return best if path.name == checkpoints.FOLDER and best.exists() else path
