"""Everything a page is made of, read from the folder of a run: its jobs' stories, its arms and how they compare.

Works at any time, also while jobs run; what is not there yet is empty. Nothing here is drawn or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.bench import tables
from sharpen.bench.artifacts import results
from sharpen.bench.benchmark import scale_of
from sharpen.bench.comparison.assembly import Compared, Wish, compare_all
from sharpen.bench.comparison.matchups import matchups
from sharpen.bench.comparison.measure import choose
from sharpen.bench.evidence import stories
from sharpen.bench.evidence.nouns import Arm
from sharpen.bench.layout import RunFolder
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.redact import redact
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.report.page.normal import shared
from sharpen.report.policies import is_policy
from sharpen.stats.errors import BadData
from sharpen.stats.normalise import Reference

Results = Mapping[str, Any]
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Version:
    """A candidate that was saved on the way: under which name, at which step, with what is known of it. Secrets are out of
    its text, so the digest is kept beside it."""

    name: str
    step: int
    digest: str
    candidate: Candidate
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class JobStory:
    """One job: what it is, what it came to, its events, and the candidates it went through, first to best."""

    job_id: str
    task: str
    arm: str
    seed: int
    status: str
    results: Results
    lines: Sequence[Line]
    versions: tuple[Version, ...]
    best: Version | None

    @property
    def title(self) -> str:
        return f"{self.task} · {self.arm} · seed {self.seed}"

    @property
    def normal(self) -> Reference | None:
        """What 0 and 1 stand for, where the job's results say so."""
        return scale_of(self.results.get("benchmark"))

    @property
    def is_policy(self) -> bool:
        """Whether a policy was trained and not a text: its steps are evaluations, and it has neither gate nor items."""
        return is_policy(self.results)


@dataclass(frozen=True)
class Gathered:
    """A whole run. `rows` and `board` are those of results.csv and leaderboard.csv. `silent` says why arms
    that are there were not compared; it is empty where all of them were, or where there is one."""

    name: str
    rows: tuple[Mapping[str, Any], ...]
    board: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any]
    jobs: tuple[JobStory, ...]
    arms: tuple[Arm, ...]
    compared: tuple[Compared, ...]
    silent: str

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row["task_id"] for row in self.rows))

    def on(self, task: str) -> tuple[JobStory, ...]:
        return tuple(job for job in self.jobs if job.task == task)

    def normal(self, task: str) -> Reference | None:
        """What 0 and 1 stand for on a task, where all of its jobs that have begun agree on it."""
        return shared(job.results for job in self.on(task) if job.lines)


def gather(folder: RunFolder) -> Gathered:
    """Read a run."""
    rows = tuple(tables.table(folder, {}))
    arms = tuple(stories.of_run(folder, "arm"))
    compared, silent = _compared(folder.path.name, arms)
    return Gathered(
        name=folder.path.resolve().name,
        rows=rows,
        board=tuple(tables.leaderboard(rows)),
        summary=tables.summary(folder, rows),
        jobs=tuple(_story(folder, row) for row in rows),
        arms=arms,
        compared=compared,
        silent=silent,
    )


def _compared(name: str, arms: Sequence[Arm]) -> tuple[tuple[Compared, ...], str]:
    """Every arm against the first that has a run to show. An arm that can't be compared does not keep the others from it."""
    usable = [arm for arm in arms if any(not run.lacks for run in arm.runs)]
    if len(usable) < 2:
        return (), "there are no two arms with a run at its end" if len(arms) > 1 else ""
    try:
        wish = Wish(choose(usable))
    except (UsageError, BadData) as error:
        return (), str(error)
    met, why = [], [f"{arm.name} has no run at its end" for arm in arms if arm not in usable]
    for pair in matchups([(name, usable)], None):
        try:
            compare_all([pair], wish)
        except (UsageError, BadData) as error:
            why.append(str(error))
        else:
            met.append(pair)
    return tuple(compare_all(met, wish)) if met else (), "; ".join(why)


def _story(folder: RunFolder, row: Mapping[str, Any]) -> JobStory:
    home = folder.job(row["job_id"])
    lines = read_events(home / "events.jsonl")
    versions, best = _versions(home, lines)
    return JobStory(
        row["job_id"], row["task_id"], row["arm"], row["seed"], row["status"], results(lines), lines, versions, best
    )  # fmt: skip


def _versions(home: Path, lines: Sequence[Line]) -> tuple[tuple[Version, ...], Version | None]:
    """The candidates in the order they became the current one, and the best. `best` and `final` are not on the way; where
    the best is none of those that are, as a draft that the final check made the best, it ends the row."""
    made: list[Version] = []
    best: Version | None = None
    for line in lines:
        candidate = _load(home, line) if line["type"] == "checkpointed" else None
        if candidate is None:
            continue
        clean = Candidate({name: redact(content) for name, content in candidate.parts.items()})
        version = Version(Path(line["path"]).name, line["step"], candidate.digest, clean, line["metrics"])
        if version.name == "best":
            best = version
        elif version.name != "final" and (not made or made[-1].digest != version.digest):
            made.append(version)
    if best is not None and all(one.digest != best.digest for one in made):
        made.append(best)
    return tuple(made), best


def _load(home: Path, line: Line) -> Candidate | None:
    try:
        return checkpoints.load(checkpoints.path_in(home, line["path"]))
    except (UsageError, OSError):
        return None
