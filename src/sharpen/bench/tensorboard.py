"""A job's curves for TensorBoard, derived from its events: `jobs/<job>/tb/`, for `tensorboard --logdir runs/<run>/jobs`.

Per step: the scores on val and train, how many changes were accepted, and what the job had used by then; of a policy, what
each evaluation and each stretch of training measured. At the end the confirmed score, the scores on test, what the job used
in all (under `total/`: that is no further step), and the best skill as text; at the start the settings. Where there is a
benchmark, every score has its value on that scale under `normalised/`. The times are those of the events. `records` is a
pure function of the story's lines: the file of a story that went on begins with the same bytes, so that it is carried on
where TensorBoard stopped reading.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import fmean
from typing import Any

from sharpen.bench import benchmark, policy_curve
from sharpen.bench.tfevents import Record, encode
from sharpen.core.digest import Json
from sharpen.core.errors import StorageError, UsageError
from sharpen.core.redact import redact
from sharpen.core.usage import NOTHING, Usage
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.files import storage_error, write_atomic
from sharpen.stats.normalise import Reference

FOLDER = "tb"
FILE = "events.out.tfevents.sharpen"
"""TensorBoard takes every file with `tfevents` in its name."""
_EVERY = 10.0
_SHARE = 0.02
"""How much of a job's time keeping the file up to date may take."""

Line = Mapping[str, Any]


def write(folder: Path, lines: Sequence[Line]) -> None:
    """Derive the file of a job's folder anew; where it only grew, by adding to it. A story without scores has none."""
    made = list(records(lines, _best(folder)))
    if not any(record.scalars for record in made):
        return
    data, path = encode(made), folder / FOLDER / FILE
    before = path.read_bytes() if path.exists() else b""
    if not data.startswith(before):
        write_atomic(path, data)
    elif len(data) > len(before):
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as file:
                file.write(data[len(before) :])
        except OSError as error:
            raise storage_error(path, error) from error


@asynccontextmanager
async def following(folder: Path) -> AsyncIterator[None]:
    """Keep the file of a running job up to date, at a small share of its time."""
    task = asyncio.create_task(_follow(folder))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(folder: Path) -> None:
    story, seen, pause = folder / "events.jsonl", -1, _EVERY
    while True:
        await asyncio.sleep(pause)
        size = os.stat(story).st_size if story.exists() else -1
        if size == seen:
            continue
        began, seen = time.monotonic(), size
        with suppress(StorageError):  # the job itself will meet a disk that is full, and say so
            write(folder, read_events(story))
        pause = max(_EVERY, (time.monotonic() - began) / _SHARE)


def records(lines: Sequence[Line], best: Mapping[str, str]) -> Iterator[Record]:
    """What TensorBoard is told, in the order it happened. `best` holds the texts of the best candidate, once it is known."""
    used, step, accepted = NOTHING, 0, 0
    scale = benchmark.scale_of(benchmark.stated(lines))
    curve = {row["step"]: row for row in policy_curve.rows(lines)}
    raw: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        at, kind = line["clock"].get("at") or 0.0, line["type"]
        if kind == "job_started":
            yield Record(at, 0, {}, {"job": _as_table(_about(line))}, _settings(line))
        elif kind == "measured":
            used = sum((Usage.from_told(row) for row in line["usage"].values()), used)
            if line["purpose"] == "test":
                raw |= {group["candidate"]: group.get("measures") or {} for group in line["groups"]}
        elif kind == "asked":
            used += Usage.from_told(line["usage"])
        elif kind == "step_done":
            step = line["step"]
            accepted += line["action"] == "accept"
            told = {**_curve(line, scale), "steps/accepted": accepted, **_used(used, line)}
            yield Record(at, step, _known(told))
        elif kind == policy_curve.ADVANCED:
            step = line["step"]
            yield Record(at, step, policy_curve.scalars(line))
        elif kind == policy_curve.EVALUATED:
            step = line["step"]
            returns = {
                name: value for name, value in policy_curve.scalars(line).items() if name in policy_curve.RETURNS
            }
            told = {**policy_curve.scalars(line), **_both(returns, scale), **_curve(curve[step], scale)}
            told |= _used(used, line)
            yield Record(at, step, _known(told))
        elif kind == "best_confirmed":
            scores = {"val/confirmed": line["value"], "val/confirmed_initial": line["initial"], "val/raw": line["raw"]}
            yield Record(at, step, _known(_both(scores, scale)))
        elif kind == "tested":
            yield Record(at, step, _known(_tested(line, raw.get(line["candidate"], {}), scale)))
        elif kind == "gained":
            told = {f"test/gain_{line['new']}": line["mean"]}
            if scale is not None and line["mean"] is not None:
                told[f"normalised/test/gain_{line['new']}"] = line["mean"] * scale.factor
            yield Record(at, step, _known(told))
        elif kind == "job_ended":
            texts = {f"best/{part}": _fenced(redact(text)) for part, text in best.items()}
            ending = f"{line['status']}: {redact(line['message'])}" if line["message"] else line["status"]
            in_all = {name.replace("used/", "total/"): value for name, value in _used(used, line).items()}
            yield Record(at, step, _known(in_all), {"ended": ending, **texts})


def _curve(row: Line, scale: Reference | None) -> dict[str, float | None]:
    names = {"val/current": "current_score", "val/best": "best_score", "train/batch": "batch_score"}
    return _both({name: row[key] for name, key in names.items()}, scale)


def _both(scores: Mapping[str, float | None], scale: Reference | None) -> dict[str, float | None]:
    """Scores as they are, and on the benchmark's scale where there is one."""
    if scale is None:
        return dict(scores)
    turned = {f"normalised/{name}": None if score is None else scale.of(score) for name, score in scores.items()}
    return {**scores, **turned}


def _used(used: Usage, line: Line) -> dict[str, float | None]:
    tokens = used.prompt_tokens + used.completion_tokens
    seconds = line["clock"].get("elapsed")
    return {"used/calls": used.calls, "used/tokens": tokens, "used/money": used.money, "used/seconds": seconds}


def _tested(line: Line, raw: Mapping[str, Any], scale: Reference | None) -> dict[str, float | None]:
    """A score on test, by type too where there are several; and the means of what the task measures besides, as it is."""
    which = line["which"]
    found: dict[str, float | None] = {f"test/{which}": line["score"][0]}
    if len(line["by_type"]) > 1 and which != "final":
        found |= {f"test_by_type/{which}/{name}": row[0] for name, row in line["by_type"].items()}
    found = _both(found, scale)
    for name, values in raw.items():
        known = [value for value in values if value is not None]
        found[f"test_measures/{which}/{name}"] = fmean(known) if known else None
    return found


def _about(line: Line) -> dict[str, Json]:
    plain = ("job_id", "task", "task_version", "trainer", "trainer_version", "seed", "render")
    models = {f"models.{role}": identity for role, identity in line["models"].items()}
    params = {f"params.{name}": value for name, value in line["params"].items()}
    return {**{name: line[name] for name in plain}, **models, **params}


def _settings(line: Line) -> dict[str, str | float | bool]:
    """What tells jobs apart on the page that compares them: short and flat."""
    about = _about(line)
    found: dict[str, str | float | bool] = {}
    for name in ("task", "trainer", "seed", *(name for name in about if name.startswith("params."))):
        value = about[name]
        if value is not None:
            found[name] = value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
    return {name: redact(value) if isinstance(value, str) else value for name, value in found.items()}


def _as_table(about: Mapping[str, Json]) -> str:
    rows = [f"| {name} | {_cell(value)} |" for name, value in about.items()]
    return "\n".join(["| setting | value |", "|---|---|", *rows])


def _cell(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return redact(text).replace("|", "\\|").replace("\n", " ")


def _fenced(text: str) -> str:
    """A text as it stands: TensorBoard would show a skill's own Markdown, and not what the model reads."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}


def _best(folder: Path) -> Mapping[str, str]:
    path = folder / "checkpoints" / "best"
    if not path.exists():
        return {}
    try:
        return checkpoints.load(path).parts
    except UsageError:  # a folder that somebody changed by hand
        return {}
