"""The checkpoints of one job: which is the best, which are kept, and the files that say so.

Trainers save candidates and say how they did; everything else is here, the same for all. `judged` lets an evaluation
decide by the benchmark's metric; `led` takes the word of a gate. Either way `settle` brings the disk to where the story is:
`checkpoints/best` is the best so far, `checkpoints/metadata.json` names it and everything that is kept, and what is
neither among the best few nor among the last few is gone. The start and the best always stay. What is no number is never
the best; of equals the earliest is.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from sharpen.core.benchmark import POLICY_SCORES, Benchmark
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.engine import checkpoints
from sharpen.files import link, write_json

RESUME_ONLY = "replay.pt"
"""Needed to go on and for nothing else, and often large: kept with the newest checkpoint alone."""
WEIGHTS = "policy.pt"


@dataclass(frozen=True)
class Retention:
    """How many checkpoints are kept: the `top` ones by score, and the `last` ones."""

    top: int = 3
    last: int = 2


@dataclass(frozen=True)
class Entry:
    """A candidate that was evaluated. `value` is in the metric the best is chosen by; None where it is no number."""

    step: int
    candidate: str
    value: float | None
    metrics: Mapping[str, Json] = field(default_factory=dict)


def better(new: float | None, old: float | None, mode: str) -> bool:
    """Whether a value beats another. No number beats nothing, and any number beats no number."""
    if new is None or not isfinite(new):
        return False
    if old is None or not isfinite(old):
        return True
    return new > old if mode == "max" else new < old


def kept(entries: list[Entry], best: int | None, mode: str, retention: Retention) -> set[int]:
    """The steps whose checkpoints stay."""
    sign = -1.0 if mode == "max" else 1.0
    scored = [entry for entry in entries if entry.value is not None]
    top = sorted(scored, key=lambda entry: (sign * (entry.value or 0.0), entry.step))[: retention.top]
    last = entries[-retention.last :] if retention.last else []
    return {entry.step for entry in (*entries[:1], *top, *last)} | ({best} if best is not None else set())


@dataclass
class Shelf:
    """What a job has on disk under `checkpoints`, and what its story says should be there."""

    folder: Path
    benchmark: Benchmark | None = None
    retention: Retention | None = None
    """None keeps everything."""
    metric: str = ""
    """What `value` is, for whoever reads the metadata; a benchmark says it itself."""
    best: Entry | None = None
    confirmed: Mapping[str, Json] | None = None
    _entries: list[Entry] = field(default_factory=list)

    @property
    def mode(self) -> str:
        return "max" if self.benchmark is None else self.benchmark.best_metric_mode

    def save(self, candidate: Candidate, step: int, metrics: Mapping[str, Json], *, name: str = "") -> str:
        """Write a checkpoint to keep; returns its path relative to the job's folder."""
        lasting = {file: path for file, path in candidate.files.items() if file != RESUME_ONLY}
        return self._write(Candidate(candidate.parts, lasting), step, metrics, name)

    def grown(self, candidate: Candidate, step: int, metrics: Mapping[str, Json]) -> Candidate:
        """Save a policy that has been trained this far, and return it with its files where they lie now."""
        home = self.folder / self._write(candidate, step, metrics, _step(step))
        return Candidate(candidate.parts, {name: home / name for name in candidate.files})

    def newest(self) -> int | None:
        """The step of the newest policy on disk, from which training can go on."""
        found = [checkpoints.about(path).get("step") for path in self._grown()]
        return max((step for step in found if isinstance(step, int)), default=None)

    def found(self, candidate: Candidate, step: int) -> Candidate:
        """The candidate with its files as they were at that step, or else those of another step at which it was the same:
        before learning starts, all steps have the same weights and yet are at different places."""
        home = self.folder / checkpoints.FOLDER
        for path in (home / _step(step), *sorted(path.parent for path in home.glob(f"*/{checkpoints.METADATA}"))):
            about = checkpoints.about(path)
            if about.get("candidate") == candidate.digest and about.get("files"):
                return checkpoints.load(path)
        return candidate

    def leader(self) -> Candidate | None:
        """The best so far with its files, as it was settled; None where nothing was evaluated to a number."""
        return None if self.best is None else checkpoints.load(self.folder / checkpoints.FOLDER / "best")

    def judged(self, candidate: Candidate, step: int, metrics: Mapping[str, Json], metric: str) -> bool:
        """Take note of an evaluation; says whether this is the best so far."""
        self.metric = metric
        value = metrics.get(metric)
        entry = Entry(step, candidate.digest, value if isinstance(value, int | float) else None, dict(metrics))
        self._entries.append(entry)
        leads = better(entry.value, None if self.best is None else self.best.value, self.mode)
        if leads:
            self.best = entry
        return leads

    def led(self, candidate: Candidate, step: int, value: float | None) -> None:
        """Take note of a candidate that a gate, or a search, put in the lead."""
        self.best = Entry(step, candidate.digest, value)

    def settle(self, best: Candidate | None = None) -> None:
        """Bring the disk to where the story is. `best` is the one in the lead, where it isn't on disk under its step."""
        if self.best is None:
            return
        home = self.folder / checkpoints.FOLDER
        if checkpoints.about(home / "best").get("candidate") != self.best.candidate:
            chosen = best or checkpoints.load(home / _step(self.best.step))
            self.save(chosen, self.best.step, dict(self.best.metrics) or {"val": self.best.value}, name="best")
        self._link_weights()
        self._prune()
        self._write_index()

    def close(self, best: Candidate, step: int, value: float | None, confirmed: Mapping[str, Json]) -> None:
        """The last word on the best: which it is, and what it came to where selection had no hand."""
        if self.best is None or self.best.candidate != best.digest:
            self.best = Entry(step, best.digest, value)
        self.confirmed = confirmed
        self._link_weights()
        self._write_index()

    def _link_weights(self) -> None:
        """`best.pt`, where people look for it."""
        home = self.folder / checkpoints.FOLDER
        weights, known = home / "best" / WEIGHTS, home / "best.pt"
        if weights.exists() and not (known.exists() and known.samefile(weights)):
            link(weights, known)

    def _prune(self) -> None:
        if self.retention is None or not self._entries:
            return
        stay = kept(self._entries, self.best.step if self.best else None, self.mode, self.retention)
        newest = self._entries[-1].step
        for path in self._grown():
            step = checkpoints.about(path).get("step")
            if isinstance(step, int) and step <= newest and step not in stay:
                shutil.rmtree(path, ignore_errors=True)
            elif isinstance(step, int) and step < newest:
                (path / RESUME_ONLY).unlink(missing_ok=True)

    def _write_index(self) -> None:
        assert self.best is not None
        home = self.folder / checkpoints.FOLDER
        best = {"path": "best", **self._row(self.best)}
        if self.confirmed is not None:
            best["confirmed"] = dict(self.confirmed)
        rows = [{"path": _step(entry.step), **self._row(entry)} for entry in self._entries]
        there: list[Json] = [row for row in rows if (home / str(row["path"])).exists()]
        index = {"schema_version": checkpoints.SCHEMA_VERSION, "best": best, "kept": there, **self._said()}
        write_json(home / checkpoints.METADATA, index)

    def _row(self, entry: Entry) -> dict[str, Json]:
        said: dict[str, Json] = {
            "step": entry.step,
            "candidate": entry.candidate,
            "metric": self.metric,
            "mode": self.mode,
            "value": entry.value,
        }
        a_score = not self.metric.startswith("eval_") or self.metric in POLICY_SCORES
        if a_score and self.benchmark is not None and self.benchmark.random_score is not None:
            said["normalised"] = self.benchmark.normalised(entry.value)
        return said

    def _write(self, candidate: Candidate, step: int, metrics: Mapping[str, Json], name: str) -> str:
        return checkpoints.save(self.folder, candidate, step, metrics, name=name, more=self._said())

    def _said(self) -> dict[str, Json]:
        return {} if self.benchmark is None else {"benchmark": self.benchmark.row()}

    def _grown(self) -> list[Path]:
        """The checkpoints of policies that were trained so far, each under its step."""
        return sorted((self.folder / checkpoints.FOLDER).glob("step_" + "[0-9]" * 8))


def started(folder: Path) -> Path:
    """Where the checkpoint of a job in `folder` is that its training began with."""
    return folder / checkpoints.FOLDER / _step(0)


def _step(step: int) -> str:
    return f"step_{step:08d}"
