"""What is to be done, as people write it down: one strict schema for every command.

A configuration is YAML, or options of a command, or both. `_base_` names a file (or several) to start from; `a.b=c` changes
one setting, and a whole block where `c` is a mapping. The files a configuration names are looked for beside it first. An
unknown key is an error that names the file, the key and the nearest valid one.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sharpen.bench import strict_yaml, withheld
from sharpen.bench.layout import JOB_CONFIG, SNAPSHOT
from sharpen.core.errors import UsageError, nearest
from sharpen.core.redact import remember_settings

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The safe one in C, where it was built: ten times as fast."""
_MAY_BE_EMPTY = ("models", "benchmark", "checkpoints", "budget", "total")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TaskConfig(Strict):
    """A task by name, or a data file or folder by path."""

    name: str = Field(description="A task's name, or the path of a data file or folder.")
    metric: str | None = Field(None, description="How answers are scored, for data files.")
    ratio: str | None = Field(None, description="train:val:test, for one file without a split column.")
    split_seed: int | None = Field(None, description="Which way a file is split.")
    limit: int | None = Field(None, ge=1, description="Use at most this many items of each split.")
    data: str | None = Field(None, description="The file or folder a named task takes its items from.")
    size: int | None = Field(None, ge=1, description="How many items to make, for tasks that generate them.")
    params: dict[str, Any] = Field({}, description="Further settings of a named task, such as a generator's own.")
    fields: dict[str, str] | None = Field(None, description="Which column is input, answer, id, type, split.")
    skill: str | None = Field(None, description="The file or folder training starts from, instead of the task's own.")
    template: str | None = Field(
        None, description="How an item's fields become the question, such as '{context} {input}'."
    )
    drop_duplicates: bool | None = Field(None, description="Leave out data lines that repeat an earlier one.")
    description: str | None = Field(None, description="What the task asks for, in a sentence.")
    max_tokens: int | None = Field(None, ge=1, description="The longest answer, in tokens; 64 for data files.")

    @field_validator("data")
    @classmethod
    def _found_from_anywhere(cls, data: str | None) -> str | None:
        return None if data is None else str(Path(data).expanduser().resolve())


class TrainerConfig(Strict):
    name: str = Field("reflact", description="How to train: see `sharpen list trainers`; or `path/to/file.py:Class`.")
    params: dict[str, Any] = Field({}, description="The trainer's own settings; below for each trainer.")


class ModelsConfig(Strict):
    target: str = Field("local/smollm2-135m", description="The model that does the task.")
    optimizer: str | None = Field(None, description="The model that writes the edits; none: proposers without a model.")
    judge: str | None = Field(None, description="The model that scores, where a task needs one.")
    temperature: float | None = Field(None, ge=0, description="Of the target; none: the task's own choice.")
    render: Literal["auto", "system", "turns", "completion"] = Field("auto", description="How the skill reaches it.")


class BudgetConfig(Strict):
    calls: int | None = Field(None, ge=1, description="The most model calls, the closing measurement included.")
    tokens: int | None = Field(None, ge=1, description="The most tokens, prompts and answers together.")
    money: float | None = Field(None, gt=0, description="The most money, at the prices known for the models.")
    seconds: float | None = Field(None, gt=0, description="The longest time, over all sittings of the run.")


class BenchmarkConfig(Strict):
    """What scores are measured against: two scores that are given, or a table they are looked up in; or nothing, where it
    only says what the best is chosen by."""

    random_score: float | None = Field(
        None, allow_inf_nan=False, description="What a random player scores; 0 on the normalised scale."
    )
    human_score: float | None = Field(
        None, allow_inf_nan=False, description="What a person, or an expert, scores; `scale` on the normalised scale."
    )
    reference: str | None = Field(
        None, description="A table both scores are looked up in by the task's name: `atari57`, `d4rl`, `classic`."
    )
    protocol: str | None = Field(
        None, description="How the two were measured: your words for scores of yours, a table's own for its scores."
    )
    scale: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="What the human score is normalised to: 1, or 100."
    )
    best_metric: str | None = Field(
        None,
        description="What the best is chosen by; none: `eval_return_mean` for policies, the gate's metric for texts.",
    )
    best_metric_mode: Literal["max", "min"] | None = Field(None, description="Which is better; none: `max`.")

    @model_validator(mode="after")
    def _one_source(self) -> BenchmarkConfig:
        given = [self.random_score, self.human_score]
        if given.count(None) == 1:
            raise ValueError("random_score and human_score belong together: give both, or neither")
        if None not in given and self.reference is not None:
            raise ValueError("give random_score and human_score, or a reference to look them up in, not both")
        if self.random_score is not None and self.random_score == self.human_score:
            raise ValueError(
                f"random_score and human_score are both {self.random_score:g}: a score can't be placed between them"
            )
        return self


class CheckpointsConfig(Strict):
    """Which checkpoints of a policy are kept. Texts are small: all of theirs are."""

    top: int | None = Field(3, ge=1, description="Of a policy: how many of the best checkpoints are kept; none: all.")
    last: int = Field(2, ge=1, description="Of a policy: how many of the newest checkpoints are kept besides.")


class RunConfig(Strict):
    """One configuration. What decides a result is in task, trainer, models, seed, repeat and benchmark; the rest is how it
    is run."""

    task: TaskConfig
    trainer: TrainerConfig = TrainerConfig()
    models: ModelsConfig = ModelsConfig()
    seed: int = Field(0, description="Everything random follows from it.")
    repeat: int = Field(
        0, ge=0, description="Which repetition of the seed this is; repetitions share nothing that was paid for."
    )
    benchmark: BenchmarkConfig = BenchmarkConfig()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    budget: BudgetConfig = BudgetConfig()
    workers: int = Field(64, ge=1, le=10_000, description="Rollouts under way at once.")
    max_failures: float = Field(0.1, ge=0, le=1, description="Share of a measurement that may fail.")
    rollout_timeout: float = Field(600.0, gt=0, description="Seconds one rollout may take.")
    sync_seconds: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="Seconds of work that a power failure may take, at most."
    )


def load(path: Path | None, settings: Mapping[str, Any] | None = None, overrides: Sequence[str] = ()) -> RunConfig:
    """A configuration from a file, settings of a command, and `a.b=c` overrides, later ones winning."""
    found = validated(RunConfig, read(path, settings, overrides), str(path) if path else "the command line")
    assert isinstance(found, RunConfig)
    return found


def read(path: Path | None, settings: Mapping[str, Any] | None = None, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The mapping that a file, settings and overrides come to, before any schema has seen it."""
    merged: dict[str, Any] = {} if path is None else _read(path, ())
    _merge(merged, _shorthand(dict(settings or {})))
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise UsageError(f"{override!r} is not an override; write key.key=value")
        parsed = _parsed(value, override)
        if isinstance(parsed, dict):
            _take_away(merged, key.split("."))
        _merge(merged, _shorthand(_nested(key.split("."), parsed)))
    for block in _MAY_BE_EMPTY:
        if block in merged and merged[block] is None:
            merged[block] = {}
    merged = withheld.restored(merged, "the configuration" if path is None else str(path))
    remember_settings(merged)
    return merged


def validated(model: type[BaseModel], values: Mapping[str, Any], where: str) -> BaseModel:
    """Settings checked against a schema, with errors a person can act on."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UsageError("\n".join(_explain(e, where, model) for e in error.errors()[:5])) from None


@dataclass(frozen=True)
class Fault:
    """Something in a mapping that does not fit its schema, and where it stands: keys, and positions in lists."""

    place: tuple[str | int, ...]
    message: str


def faults(model: type[BaseModel], values: Mapping[str, Any], where: str) -> list[Fault]:
    """Everything in settings that does not fit a schema, in words a person can act on."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        return [Fault(e["loc"], _explain(e, where, model)) for e in error.errors()]
    return []


def understood(config: RunConfig, params: BaseModel) -> RunConfig:
    """A configuration with the trainer's settings as they were understood, so that nothing in them depends on a file that
    may change."""
    trainer = config.trainer.model_copy(update={"params": params.model_dump(mode="json", exclude_unset=True)})
    return config.model_copy(update={"trainer": trainer})


def dump(config: RunConfig, params: BaseModel) -> str:
    """The whole configuration as YAML, for the snapshot in a run's folder."""
    whole = understood(config, params).model_dump(mode="json")
    return yaml.dump(whole, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)


def _read(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    path = path.resolve()
    if path in seen:
        raise UsageError(f"{path}: _base_ leads back to itself: {' -> '.join(p.name for p in (*seen, path))}")
    try:
        content = strict_yaml.parse(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise UsageError(f"no configuration file {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds a {type(content).__name__}; a configuration is a mapping of keys to values")
    if _is_snapshot(path):
        if "_base_" in content:
            raise UsageError(f"{path}: the snapshot of a run is whole, and has no _base_; take it out")
        return _shorthand(content)
    bases = content.pop("_base_", [])
    if isinstance(bases, str):
        bases = [bases]
    if not (isinstance(bases, list) and all(isinstance(base, str) for base in bases)):
        raise UsageError(f"{path}: _base_ must be a path or a list of paths, got {bases!r}")
    merged: dict[str, Any] = {}
    for base in bases:
        _merge(merged, _read(path.parent / base, (*seen, path)))
    _merge(merged, _found_beside(_shorthand(content), path.parent))
    return merged


def _is_snapshot(path: Path) -> bool:
    """Whether a configuration is one that a run keeps: it stands for itself, and leads to no file beside it."""
    return path.name == SNAPSHOT or (path.name == JOB_CONFIG and path.parent.parent.name == "jobs")


def _shorthand(content: dict[str, Any]) -> dict[str, Any]:
    """`task: name` and `trainer: name` stand for `task: {name: name}`, in the lists of a study too."""
    for key in ("task", "trainer"):
        if isinstance(content.get(key), str):
            content[key] = {"name": content[key]}
    for key in ("tasks", "trainers"):
        if isinstance(content.get(key), list):
            content[key] = [{"name": entry} if isinstance(entry, str) else entry for entry in content[key]]
    return content


def _found_beside(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Files that a configuration names for its task, for its trainer and for that one's prompts are those beside it, where
    there are such; else the current folder's."""
    for trainer in _entries(content, "trainer"):
        _named_beside(trainer, ("name",), folder)
        params = trainer.get("params")
        prompts = params.get("prompts") if isinstance(params, dict) else None
        prompts = prompts if isinstance(prompts, dict) else {}
        for name, given in list(prompts.items()):
            if isinstance(given, str) and given.endswith(".md") and (folder / given).is_file():
                prompts[name] = str((folder / given).resolve())
    for task in _entries(content, "task"):
        _named_beside(task, ("name", "metric", "skill", "data"), folder)
    return content


def _entries(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The mapping under a key and those in the list under its plural."""
    several = content.get(f"{key}s")
    found = [content.get(key), *(several if isinstance(several, list) else ())]
    return [entry for entry in found if isinstance(entry, dict)]


def _named_beside(entry: dict[str, Any], keys: Sequence[str], folder: Path) -> None:
    for key in keys:
        given = entry.get(key)
        if not isinstance(given, str):
            continue
        file, suffix, attribute = given.partition(".py:")
        path = folder / (file + suffix.removesuffix(":"))
        if (key in ("skill", "data") or "/" in given or path.suffix) and path.exists():
            path = path.resolve()
            shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            entry[key] = f"{shown}:{attribute}" if suffix else str(shown)


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _take_away(found: Any, keys: Sequence[str]) -> None:
    """Take what stands at a place out of nested mappings, where there is such a place."""
    for key in keys[:-1]:
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, dict):
        found.pop(keys[-1], None)


def _nested(keys: Sequence[str], value: Any) -> dict[str, Any]:
    return {keys[0]: value if len(keys) == 1 else _nested(keys[1:], value)}


def _parsed(value: str, override: str) -> Any:
    try:
        return strict_yaml.parse(value, override)
    except yaml.YAMLError:
        raise UsageError(f"the value of {override!r} is not YAML; quote it") from None


def _explain(error: Any, where: str, model: type[BaseModel] = RunConfig) -> str:
    location = [str(part) for part in error["loc"]]
    key = ".".join(location) or "the configuration"
    if error["type"] == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        return f"{where}: unknown key {key!r}{nearest(location[-1], known)}; known here: {', '.join(known)}"
    if error["type"] == "missing":
        return f"{where}: {key!r} is missing"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "model_type":
        message = "a mapping of keys to values is wanted"
    return f"{where}: {key}: {message}, got {error['input']!r}" if location else f"{where}: {message}"


def _fields_at(model: type[BaseModel], keys: Sequence[str]) -> list[str]:
    for key in keys:
        if key.isdigit():
            continue
        field = model.model_fields.get(key)
        kinds = () if field is None else (field.annotation, *typing.get_args(field.annotation))
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)
