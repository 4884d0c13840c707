"""Jobs that another run has finished: which of them can be taken over as they are, what stands in the way of the others, and
the taking over.

A job is taken over whole or not at all: only where everything a result depends on is the same there, its budget and the
version of sharpen included. Its folder then says where it came from, and it costs this run nothing. What the other run
paid for single answers stays in its ledger: a job that is not the same one is run from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import sharpen
from sharpen.bench import layout, story, strict_yaml
from sharpen.bench.artifacts import results
from sharpen.bench.config import BudgetConfig
from sharpen.bench.layout import JOB_CONFIG, RunFolder
from sharpen.bench.matrix import Planned
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.engine.durability import RECORD
from sharpen.engine.opening import EVENTS
from sharpen.engine.spec import JobSpec
from sharpen.files import json_text, write_folder

MARK = "reused.json"
"""In the folder of a job that was taken over: which run carried it out."""
_FINISHED = ("done", "budget")
_META = "job_meta.json"
_NEVER_WRITTEN_AGAIN = "checkpoints"


@dataclass(frozen=True)
class Found:
    """What other runs have of a job: the run it can be taken over from, or why it can't be."""

    run: RunFolder | None = None
    why: str = ""

    def record(self) -> dict[str, Json]:
        return {"afresh": self.why} if self.run is None else {"reused": self.run.path.name}


_STAYS = ("lock", RECORD)
"""What is of this run alone: who works on the job, and how far its ledger reaches."""


def sources(names: Sequence[str], root: Path, own: RunFolder | None = None) -> list[RunFolder]:
    """The runs of these names, under `root` or by their paths, without the run `own` itself. One that can't be found is an
    error, but not for a run that is carried on: that has taken over what it could when it began."""
    found = []
    for name in names:
        try:
            found.append(layout.find_run(name, root))
        except UsageError:
            if own is None or not own.config.exists():
                raise
    return [run for run in found if own is None or run.path.resolve() != own.path.resolve()]


def find(jobs: Sequence[Planned], runs: Sequence[RunFolder]) -> dict[str, Found]:
    """By job id: the first of the runs a job can be taken over from, or what stands in the way in each."""
    others = [(run, _manifest(run)) for run in runs]
    return {job.job_id: _found(job, others) for job in jobs}


def take_over(job_id: str, source: RunFolder, run: RunFolder) -> None:
    """Copy a finished job into another run, in one step. Who carried it out first stays on record."""
    home = source.job(job_id)
    contents: dict[str, str | bytes | Path] = {}
    for path in sorted(path for path in home.rglob("*") if path.is_file() and path.name not in _STAYS):
        name = path.relative_to(home)
        contents[str(name)] = path if name.parts[0] == _NEVER_WRITTEN_AGAIN else path.read_bytes()
    if MARK not in contents:
        about = {"run": source.path.name, "path": str(source.path), "sharpen": _manifest(source).get("sharpen")}
        contents[MARK] = json_text({"schema_version": layout.SCHEMA_VERSION, "job_id": job_id, **about})
    write_folder(run.job(job_id), contents)


def reused_from(job: Path) -> str:
    """The name of the run a job was taken over from; empty where it was carried out here."""
    path = job / MARK
    return str(layout.read_json(path)["run"]) if path.exists() else ""


def _found(job: Planned, others: Sequence[tuple[RunFolder, Mapping[str, Any]]]) -> Found:
    said = []
    for run, manifest in others:
        why = _in_the_way(job, run, manifest)
        if not why:
            return Found(run)
        said.append(f"{run.path.name} {why}")
    return Found(None, "; ".join(said))


def _in_the_way(job: Planned, run: RunFolder, manifest: Mapping[str, Any]) -> str:
    """Why a run's job can't be taken over, as the rest of a sentence that begins with the run; empty where it can."""
    home, spec = run.job(job.job_id), job.parts.setup.spec
    if not (home / EVENTS).exists():
        return _likeness(job, run, manifest)
    told = story.read(home)
    if told.damage:
        return "has it, damaged"
    status = results(told.lines)["status"]
    if status not in _FINISHED or layout.is_running(home):
        return "has it, not finished" if status != "failed" else "has it, failed"
    if other := list(_differences(spec, home)):
        return f"has it with other {', '.join(other)}"
    if _budget_of(run, home) != job.cell.config.budget:
        return "has it with other caps"
    made_by = manifest.get("sharpen")
    return "" if made_by == sharpen.__version__ else f"was made by sharpen {made_by}"


def _likeness(job: Planned, run: RunFolder, manifest: Mapping[str, Any]) -> str:
    """What is there in place of a job: the one of the same task, arm and seed, and what makes it another one."""
    cell, seed = job.cell, job.parts.setup.spec.seed
    for job_id, about in manifest.get("jobs", {}).items():
        arm = about.get("arm", about.get("trainer"))
        same = (about.get("task"), arm, about.get("seed")) == (cell.task, cell.arm, seed)
        if same and (run.job(job_id) / _META).exists():
            other = list(_differences(job.parts.setup.spec, run.job(job_id)))
            return f"has it with other {', '.join(other)}" if other else "has no such job"
    return "has no such job"


def _differences(spec: JobSpec, home: Path) -> Iterator[str]:
    """What of a job's specification is another one in that folder, in words."""
    there = layout.read_json(home / _META)
    for field in fields(spec):
        own = json.loads(json.dumps(getattr(spec, field.name)))
        if there.get(field.name, field.default) != own:
            yield field.name.replace("_", " ")


def _budget_of(run: RunFolder, home: Path) -> BudgetConfig:
    """The caps a job had: in its own configuration, or in that of a run of one training."""
    path = home / JOB_CONFIG if (home / JOB_CONFIG).exists() else run.config
    content = strict_yaml.parse(path.read_text(encoding="utf-8"), str(path))
    return BudgetConfig.model_validate(content.get("budget") or {})


def _manifest(run: RunFolder) -> Mapping[str, Any]:
    path = run.path / "meta" / "manifest.json"
    found: Mapping[str, Any] = layout.read_json(path) if path.exists() else {}
    return found
