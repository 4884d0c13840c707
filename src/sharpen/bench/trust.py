"""Whose code may run: what a configuration would execute, read or write outside of its run, and what this user allowed.

A run folder is data. Reading one (report, compare, export, status, ...) needs nothing of this. Carrying one on needs the
code its configuration names, and code in a folder that somebody sent is theirs. So every use has a digest: of the source
text and of the own files it imports, of the name in it and of the settings it is given. `train` and `run` remember the uses
of their own configuration, since the user named it; a configuration that is read back from a run folder is checked against
that memory, and a use that is not in it has to be allowed by the user, once. Code that has changed since has another
digest, and is asked about again. To send a key to an address that a run names is such a use.

The memory is one small file per use in `$SHARPEN_STATE/trusted`, else `$XDG_STATE_HOME/sharpen/trusted`, else
`~/.local/state/sharpen/trusted`. A package that is installed and brings a task or a model through an entry point was chosen
by who installed it, and is not asked about; `package.module:name` is, since a configuration may name any function there is;
and so is the address of an endpoint, since a key may go there.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.bench.config import RunConfig, TaskConfig
from sharpen.bench.layout import RunFolder
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json, digest
from sharpen.core.errors import StorageError, UsageError
from sharpen.core.redact import redact_json
from sharpen.files import write_json
from sharpen.models import keys
from sharpen.tasks import registry as tasks
from sharpen.tasks.gym import about
from sharpen.tasks.own_imports import imported_sources, is_own

SCHEMA_VERSION = 1
TASK, TRAINER = "task.name", "trainer.name"
RUNS, READS, WRITES = "runs", "reads", "writes"
SENDS = f"sends {keys.SHARPEN_KEY} to"
_RECORD = "record:"
_REPLAY = "replay/"
_INSPECT = "inspect/"


@dataclass(frozen=True)
class Use:
    """Something outside of sharpen that a setting leads to. `path` is the file, where it is known."""

    setting: str
    name: str
    action: str
    path: Path | None
    digest: str

    def __str__(self) -> str:
        if self.action == SENDS:
            return f"{self.setting}: {SENDS} {self.name} (as would naming it in {keys.SHARPEN_BASE})"
        what = f"the module {self.name.rpartition(':')[0]}" if self.path is None else str(self.path)
        return f"{self.setting} {self.name}: {self.action} {what}"


class NotTrusted(UsageError):
    """A run names code or files that this user has not allowed."""

    def __init__(self, folder: Path, uses: Sequence[Use]) -> None:
        listed = "".join(f"\n  {use}{', changed since it ran here' if has_run(use) else ''}" for use in uses)
        super().__init__(
            f"{folder} leads to what was not run here before:{listed}\n"
            "look at these first; --trust allows them, and they are not asked about again until they change"
        )
        self.uses = tuple(uses)


def state_folder() -> Path:
    """`$SHARPEN_STATE`, else `$XDG_STATE_HOME/sharpen`, else `~/.local/state/sharpen`."""
    if own := os.environ.get("SHARPEN_STATE"):
        return Path(own).expanduser()
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base).expanduser() / "sharpen"
    return Path.home() / ".local" / "state" / "sharpen"


def uses(config: RunConfig, run: RunFolder | None = None) -> list[Use]:
    """Everything outside of sharpen, and outside of the folder `run`, that carrying out a configuration leads to."""
    listed = [*task_uses(config.task, run)]
    name = config.trainer.name
    if ":" in name:
        listed.append(_code(TRAINER, name, config.trainer.params))
    prompts = config.trainer.params.get("prompts")
    for key, value in (prompts if isinstance(prompts, dict) else {}).items():
        if isinstance(value, str) and value.endswith(".md") and "\n" not in value:
            listed.append(_file(f"trainer.params.prompts.{key}", value, READS))
    listed += model_uses(config)
    return [use for use in listed if run is None or not (use.action == READS and _is_inside(use.path, run.path))]


def task_uses(task: TaskConfig, run: RunFolder | None = None) -> Iterator[Use]:
    """What making a task leads to. A run has its own copy of the data of a task that is only data."""
    name, script = task.name, task.name.removeprefix(_INSPECT).partition("@")
    plain = task.model_dump(mode="json", exclude={"name", "metric", "skill", "params"}, exclude_none=True)
    settings: dict[str, Any] = {**task.params, **plain}
    if run is None or not run.data.exists():
        if name.startswith(_INSPECT) and script[0].endswith(".py"):
            yield _code(TASK, f"{script[0]}:{script[2]}", settings)
        elif ":" in name and not Path(name).exists():
            yield _code(TASK, name, {} if tasks.is_environment(name) else settings)
        elif Path(name).exists() and name not in tasks.names():
            yield _file(TASK, name, READS)
    if task.metric is not None and ":" in task.metric.partition("?")[0]:
        yield _code("task.metric", task.metric, {})
    if task.data is not None:
        yield _file("task.data", task.data, READS)
    if task.skill is not None and (run is None or not run.skill.exists()):
        yield _file("task.skill", task.skill, READS)
    text = task.params.get("skill")
    if isinstance(text, str) and text.endswith((".md", ".txt")) and "\n" not in text:
        yield _file("task.params.skill", text, READS)


def model_uses(config: RunConfig) -> Iterator[Use]:
    """What asking the models of a configuration leads to, beside the calls."""
    for role in ("target", "optimizer", "judge"):
        yield from _of_model(f"models.{role}", getattr(config.models, role) or "")


def policy_uses(candidate: Candidate) -> list[Use]:
    """What playing a policy that lies outside of its run leads to: the import of its environment's module."""
    if about.DESCRIPTION not in candidate.parts:
        return []
    environment, settings = about.environment_of(candidate), about.settings_of(candidate)
    return list(task_uses(TaskConfig(name=environment, params=settings)))


def unknown(listed: Iterable[Use]) -> list[Use]:
    """Those of some uses that this user has neither made nor allowed."""
    folder = state_folder() / "trusted"
    needed = [use for use in dict.fromkeys(listed) if use.action != SENDS or _sends_secret(use.name)]
    return [use for use in needed if not (folder / use.digest).is_file()]


def _sends_secret(address: str) -> bool:
    """Whether asking at an address hands over a key, or a variable that the address names (`models/address.py`)."""
    return keys.goes_by_name(address) or "${" in address


def has_run(use: Use) -> bool:
    """Whether code at this place was run or allowed here before, whatever it says by now."""
    return (state_folder() / "trusted" / _place(use)).is_file()


def require(folder: Path, listed: Iterable[Use]) -> None:
    """Refuse what is not known."""
    if missing := unknown(listed):
        raise NotTrusted(folder, missing)


def remember(listed: Iterable[Use]) -> str:
    """Allow some uses from now on. Returns why that can't be remembered; empty where it is."""
    folder = state_folder() / "trusted"
    try:
        for use in dict.fromkeys(listed):
            if (folder / use.digest).is_file() and (folder / _place(use)).is_file():
                continue
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            record = {"setting": use.setting, "name": use.name, "action": use.action, "path": str(use.path or "")}
            for name in (use.digest, _place(use)):
                write_json(folder / name, {"schema_version": SCHEMA_VERSION, **record, "since": since})
    except StorageError as error:
        return str(error)
    except OSError as error:
        return f"cannot write {folder}: {error.strerror}"
    return ""


def _of_model(setting: str, name: str) -> Iterator[Use]:
    """A recording is written wherever its name says, and a cassette is read from there. A key that is bound to no address
    goes to any that is named."""
    while name.startswith(_RECORD):
        path, _, name = name.removeprefix(_RECORD).partition(".jsonl:")
        yield _file(setting, f"{path}.jsonl", WRITES)
    if name.startswith(_REPLAY):
        yield _file(setting, name.removeprefix(_REPLAY).partition("?")[0], READS)
    if address := keys.address_in(name):
        yield Use(setting, address, SENDS, None, digest([SCHEMA_VERSION, SENDS, keys.place(address)]))


def _file(setting: str, name: str, action: str) -> Use:
    path = Path(name).expanduser().resolve()
    return Use(setting, name, action, path, digest([SCHEMA_VERSION, action, setting, str(path)]))


def _code(setting: str, name: str, settings: Json) -> Use:
    """The use of a Python object by its path. Where the file lies makes no difference: the same text, with the same own
    files that it imports, does the same."""
    where, _, attribute = name.rpartition(":")
    is_script = where.endswith(".py")
    path = Path(where).resolve() if is_script else _source(where)
    texts = _texts(path, "" if is_script else where.rpartition(".")[0]) if is_script or _is_own(path) else []
    key: Json = [SCHEMA_VERSION, RUNS, setting, "" if is_script else where, attribute, texts, redact_json(settings)]
    return Use(setting, name, RUNS, path, digest(key))


def _texts(path: Path | None, package: str) -> Json:
    try:
        source = "" if path is None else path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [source, {} if path is None else imported_sources(path, source, package=package)]


def _is_own(path: Path | None) -> bool:
    """Whether a module is neither Python's own nor among the installed packages, whose upgrades are the user's doing."""
    return path is not None and is_own(path)


def _place(use: Use) -> str:
    return digest([SCHEMA_VERSION, "place", use.action, use.name if use.path is None else str(use.path)])


def _source(module: str) -> Path | None:
    """The file of a module, found without importing any of it; None where it has none, or is not there."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top) if top else None
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.has_location and spec.origin else None
    for folder in spec.submodule_search_locations or ():
        inner = Path(folder, *rest)
        for path in (inner.with_suffix(".py"), inner / "__init__.py"):
            if path.is_file():
                return path
    return None


def _is_inside(path: Path | None, folder: Path | None) -> bool:
    return path is not None and folder is not None and path.resolve().is_relative_to(folder.resolve())
