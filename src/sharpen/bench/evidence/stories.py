"""Arms from runs of sharpen: a run, one of its jobs, or a checkpoint. Read from events, so also while they go on.

The curves are `val` (the current candidate's score), `best` and `train` (the batch) by step, and of a policy what its
evaluations measured besides, as `eval/length_mean`; the finals `test` (the best
candidate), `test_initial`, `test_final` and `confirmed`. Items are those of the test split. Events name a whole split and
not its items; ids are then those of the run's own copy, else the item's place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharpen.bench import layout, strict_yaml
from sharpen.bench.artifacts import results
from sharpen.bench.benchmark import scale_of
from sharpen.bench.config import load
from sharpen.bench.evidence import ledgers
from sharpen.bench.evidence.nouns import TEST, Arm, Cost, Run, curves
from sharpen.bench.evidence.settings import flattened
from sharpen.bench.layout import JOB_CONFIG, RunFolder
from sharpen.bench.policy_curve import RETURNS
from sharpen.bench.tables import PROCESS
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.task import Splits
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.engine.spec import describe_splits
from sharpen.engine.stretches import Advanced
from sharpen.stats.curves import Curve
from sharpen.tasks.gym.about import DESCRIPTION

Line = dict[str, Any]

_CURVES = {"val": "current_score", "best": "best_score", "train": "batch_score"}
_RETURNS = tuple(f"eval_{name.removeprefix('eval/')}" for name in RETURNS)
_HOW_IT_IS_CARRIED_OUT = ("seed", "workers", "max_failures", "rollout_timeout", "sync_seconds")
"""Settings that are no difference between arms."""


def of_run(folder: RunFolder, by: str) -> list[Arm]:
    """The arms of a run: by its arms' labels, or by trainer."""
    manifest = folder.manifest
    ids = _Ids()
    arms: dict[str, list[Run]] = {}
    for job_id, about in manifest["jobs"].items():
        name = about["trainer"] if by == "trainer" else about.get("arm", about["trainer"])
        arms.setdefault(name, []).append(_job(folder, folder.job(job_id), about, manifest, ids))
    if not arms:
        raise UsageError(f"{folder.path} has no jobs")
    if by == "trainer":
        _one_variant_each(folder, manifest)
    return [Arm(name, tuple(runs)) for name, runs in arms.items()]


def of_job(folder: RunFolder, job: Path) -> Arm:
    """One job as an arm of one run."""
    manifest = folder.manifest
    about = _about(folder, manifest, job)
    return Arm(job.name, (_job(folder, job, about, manifest, _Ids()),))


def _about(folder: RunFolder, manifest: Mapping[str, Any], job: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = manifest["jobs"].get(job.name)
    if found is None:
        raise UsageError(f"{folder.path} knows no job {job.name}; its study had one once, or it was copied there")
    return found


def of_checkpoint(folder: RunFolder, job: Path, checkpoint: Path) -> Arm:
    """A checkpoint as an arm of one run, scored on what its job measured of it on the test split."""
    manifest = folder.manifest
    about = _about(folder, manifest, job)
    digest = layout.read_json(checkpoint / "metadata.json")["candidate"]
    run = _job(folder, job, about, manifest, _Ids(), digest)
    if not run.items:
        raise UsageError(
            f"{checkpoint} was not measured on test; `sharpen eval {checkpoint}` does that, and then it can be compared"
        )
    return Arm(checkpoint.name, (run,))


def _one_variant_each(folder: RunFolder, manifest: Mapping[str, Any]) -> None:
    """Arms of one trainer with different settings are not repetitions of each other."""
    labels: dict[str, set[str]] = {}
    for about in manifest["jobs"].values():
        labels.setdefault(about["trainer"], set()).add(about.get("arm", about["trainer"]))
    for trainer, found in labels.items():
        if len(found) > 1:
            raise UsageError(
                f"{folder.path.name} has {trainer} in {len(found)} variants ({', '.join(sorted(found))}): "
                "compare them with --by arm"
            )


def _job(
    folder: RunFolder, home: Path, about: Mapping[str, Any], manifest: Mapping[str, Any], ids: _Ids, digest: str = ""
) -> Run:
    lines = read_events(home / "events.jsonl")
    found = results(lines)
    name = f"{folder.path.name}/{home.name}"
    test = {which: row["mean"] for which, row in found["test"].items() if row["mean"] is not None}
    confirmed = (found["best"] or {}).get("confirmed", {}).get("value")
    best = digest or found["test"].get("best", {}).get("candidate", "")
    names = ids.of(folder, home, lines) if best else None
    items = _items(lines, best, names)
    if digest and not items and names:
        items = ledgers.item_means(folder.ledger, lines[0]["task"], digest, names)
    finals = {TEST: test.get("best"), "test_initial": test.get("initial"), "test_final": test.get("final")}
    finals["confirmed"] = confirmed
    if digest:
        finals = {TEST: sum(items.values()) / len(items) if items else None}
    gain = found["gain"].get("best", {}).get("mean")
    git = _read_if_there(folder.path / "meta" / "git.json")
    return Run(
        name=name,
        source=str(home),
        task=about["task"],
        seed=about["seed"],
        repeat=about.get("repeat", 0),
        curves={} if digest else _curves(found["steps"], name),
        finals={key: value for key, value in finals.items() if value is not None},
        items=items,
        groups=_groups(lines, names),
        cost=Cost() if digest else _cost(found),
        gain=None if digest else gain,
        lacks=_lacking(found, lines, home),
        began=found["clock"]["began"],
        version=str(manifest.get("sharpen", "")),
        commit=_commit(git),
        parameters=parameters_in(_size(lines)),
        settings=_settings(lines, home),
        text=_text(home, digest),
        reference=scale_of(found.get("benchmark")),
        lower=_less_is_better(found.get("benchmark")),
    )


def _curves(steps: Sequence[Mapping[str, Any]], name: str) -> dict[str, Curve]:
    points = {
        metric: [(float(row["step"]), float(row[key])) for row in steps if row[key] is not None]
        for metric, key in _CURVES.items()
    }
    for row in steps:
        for key, value in (row.get("metrics") or {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                points.setdefault(f"eval/{key.removeprefix('eval_')}", []).append((float(row["step"]), float(value)))
    return curves({metric: row for metric, row in points.items() if row}, name)[0]


def _items(lines: Sequence[Line], candidate: str, names: Sequence[str] | None) -> dict[str, float]:
    """The mean of an item's attempts on test, over those that were scored."""
    attempts: dict[str, list[float]] = {}
    for line in lines:
        if line["type"] != "measured":
            continue
        for group in line["groups"]:
            if group["candidate"] != candidate or group["items"] != "test":
                continue
            for place, score in enumerate(group["hard"]):
                if score is not None:
                    attempts.setdefault(names[place] if names else f"test[{place}]", []).append(float(score))
    return {item: sum(scores) / len(scores) for item, scores in attempts.items()}


def _groups(lines: Sequence[Line], names: Sequence[str] | None) -> dict[str, str]:
    """The groups of the test items as the story tells them, by the names that the items have here."""
    told: list[str] = next((line["groups"] for line in lines if line["type"] == "tested" and line.get("groups")), [])
    return {names[place] if names else f"test[{place}]": group for place, group in enumerate(told)}


class _Ids:
    """The ids of the test items of each task, looked up once; a run may not have them, or have others."""

    def __init__(self) -> None:
        self._known: dict[str, list[str] | None] = {}

    def of(self, folder: RunFolder, home: Path, lines: Sequence[Line]) -> list[str] | None:
        if not lines:
            return None
        key = str(lines[0]["splits"])
        if key not in self._known:
            splits = _splits(folder, home)
            same = splits is not None and describe_splits(splits) == lines[0]["splits"]
            self._known[key] = [item.id for item in splits["test"]] if splits is not None and same else None
        return self._known[key]


def _splits(folder: RunFolder, home: Path) -> Splits | None:
    from sharpen.bench.recorded_items import recorded_splits
    from sharpen.bench.reopening import home_of

    try:
        found = home_of(folder, home)
        return recorded_splits(load(found.config).task, found.run)
    except UsageError:
        return None


def _cost(found: Mapping[str, Any]) -> Cost:
    total = found["usage"]["total"]
    return Cost(
        total["calls"], total["prompt_tokens"] + total["completion_tokens"], total["money"], found["clock"]["seconds"]
    )


def _lacking(found: Mapping[str, Any], lines: Sequence[Line], home: Path) -> str:
    """What a job has not got: one whose process broke off tells nothing of that in its story, but its process is on file."""
    if found["status"] == "failed":
        return f"failed: {found['message']}"
    if found["status"] != "unfinished":
        return ""
    where = f" at step {len(found['steps'])}" if found["steps"] else ""
    if layout.is_running(home):
        return f"is still running{where}"
    process = _read_if_there(home / PROCESS)
    state, reason = process.get("state"), process.get("reason")
    if state == "stopped":
        return f"was stopped{where}"
    if reason:
        return f"was skipped: {reason}" if state == "skipped" else f"failed{where}: {reason}"
    return f"is not at its end (step {len(found['steps'])}) and not running" if lines else "has not begun"


def _less_is_better(told: Mapping[str, Any] | None) -> bool:
    """Whether the best is chosen by the least of a task's own scores."""
    return told is not None and told.get("best_metric_mode") == "min" and told.get("best_metric") in _RETURNS


def _commit(git: Mapping[str, Any]) -> str:
    own = git.get("sharpen") or {}
    words = [f"{name} {row['revision'][:12]}{'+' if row.get('dirty') else ''}"
             for name, row in (("project", git), ("sharpen", own)) if row.get("revision")]  # fmt: skip
    return ", ".join(words)


def _settings(lines: Sequence[Line], home: Path) -> dict[str, Json]:
    """Everything that decides the result, as the job understood it, and its caps."""
    if not lines:
        return {}
    started = lines[0]
    found: dict[str, Json] = {
        name: started[name] for name in ("task", "task_version", "trainer", "trainer_version", "render", "splits")
    }
    flat = {**found, **flattened({"params": started["params"], "models": started["models"]}), **_size(lines)}
    own = home / JOB_CONFIG
    if own.exists():
        config = strict_yaml.parse(own.read_text(encoding="utf-8"), str(own))
        flat |= flattened({"budget": config.get("budget") or {}})
    return {key: value for key, value in flat.items() if key not in _HOW_IT_IS_CARRIED_OUT}


def _size(lines: Sequence[Line]) -> dict[str, Json]:
    """How many parameters a policy has."""
    grown = next((line for line in lines if line["type"] == Advanced.type), None)
    said = {} if grown is None else json.loads(grown["parts"].get(DESCRIPTION, "{}"))
    return {f"policy.{name}": said[name] for name in ("parameters", "trained_parameters") if name in said}


def parameters_in(size: Mapping[str, Json]) -> float | None:
    """How many parameters of a policy are trained; all it has where that is not said."""
    found = size.get("policy.trained_parameters", size.get("policy.parameters"))
    return float(found) if isinstance(found, int | float) else None


def _text(home: Path, digest: str) -> dict[str, str]:
    """The trained text; what a policy says of itself is none."""
    place = _saved(home, lambda about: about["candidate"] == digest) if digest else home / "checkpoints" / "best"
    parts = checkpoints.load(place).parts if place is not None and place.exists() else {}
    return {name: text for name, text in parts.items() if name != DESCRIPTION}


def _saved(home: Path, fits: Callable[[Mapping[str, Any]], bool]) -> Path | None:
    found = sorted((home / "checkpoints").glob("*/metadata.json"))
    return next((path.parent for path in found if fits(layout.read_json(path))), None)


def _read_if_there(path: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = layout.read_json(path) if path.exists() else {}
    return found
