"""Going back to a job that was run: which configuration it had, and where its copies of data and skill are.

A run of one job has one configuration. In a study every job has its own, in its folder, and its data is that of its task;
the study's snapshot says what all of them came from and is no job's configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sharpen.bench.config import load
from sharpen.bench.layout import JOB_CONFIG, RunFolder, open_run
from sharpen.bench.study import task_key


@dataclass(frozen=True)
class Home:
    """A job's run, with its task named where the run is a study, and the file that holds the job's configuration."""

    run: RunFolder
    config: Path


def home_of(run: RunFolder, job: Path) -> Home:
    """Where the job in folder `job` of `run` is at home."""
    own = job / JOB_CONFIG
    if not own.exists():
        return Home(run, run.config)
    return Home(RunFolder(run.path, task_key(load(own).task)), own)


def job_around(path: Path) -> tuple[RunFolder, Path] | None:
    """The run and the job's folder that a path is or lies in; None where it is in no job."""
    path = path.resolve()
    for folder in (path, *path.parents):
        run = RunFolder(folder.parent.parent)
        if folder.parent.name == "jobs" and run.config.exists():
            return open_run(run.path), folder
    return None
