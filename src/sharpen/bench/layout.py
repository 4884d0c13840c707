"""The files of a run: where they are, and what is written before the first job starts.

runs/<run_id>/meta/            config.snapshot.yaml, manifest.json, env.json, git.json
runs/<run_id>/data/            the splits of a task that came from a data file, so that the run stands on its own
runs/<run_id>/items/           the items of a task that is made by code of the user's own, so that reading needs no code
runs/<run_id>/skill/           the texts training started from, where they were given
runs/<run_id>/ledger.db        what was paid for
runs/<run_id>/jobs/<job_id>/   job_meta.json, events.jsonl, results.json, checkpoints/

In a study data/, items/ and skill/ are in tasks/<task>/, and a job's folder has its own config.yaml, process.json and
stdout.log.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import sharpen
from sharpen.bench import withheld
from sharpen.bench.containment import check_contained
from sharpen.core.digest import Json
from sharpen.core.errors import StorageError, UsageError
from sharpen.core.printable import printable
from sharpen.files import storage_error, sync_folders, write_atomic, write_json

SCHEMA_VERSION = 1
_VARIABLES = ("SHARPEN_", "OPENAI_", "AZURE_", "ANTHROPIC_", "HF_", "CUDA_", "OMP_", "PYTHON")
"""Beginnings of environment variables that may matter to a result."""


SNAPSHOT = "config.snapshot.yaml"
"""A run's own configuration, in `meta`."""
JOB_CONFIG = "config.yaml"
"""A job's own configuration, in its folder of a study."""


@dataclass(frozen=True)
class RunFolder:
    """One run's folder. Paths inside its files are relative to it. In a study, `task` names whose data is meant."""

    path: Path
    task: str = ""

    @property
    def config(self) -> Path:
        return self.path / "meta" / SNAPSHOT

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.db"

    @property
    def data(self) -> Path:
        return self._home / "data"

    @property
    def skill(self) -> Path:
        return self._home / "skill"

    @property
    def items(self) -> Path:
        """The items of a task that is made by code of the user's own."""
        return self._home / "items"

    @property
    def _home(self) -> Path:
        return self.path / "tasks" / self.task if self.task else self.path

    @property
    def manifest(self) -> dict[str, Any]:
        """What was laid out before the first job: the version, and what is known of each job by its id."""
        path = self.path / "meta" / "manifest.json"
        try:
            found: dict[str, Any] = read_json(path)
            if not (isinstance(found, dict) and isinstance(found.get("jobs"), dict)):
                raise ValueError("a manifest is a mapping with the jobs in it")
        except (OSError, ValueError, StorageError) as error:
            gone = "is missing" if isinstance(error, OSError) else "is damaged"
            raise UsageError(f"{path} {gone}; of a study, the same `sharpen run` writes it again") from error
        return found

    def job(self, job_id: str) -> Path:
        if "/" in job_id or "\0" in job_id or job_id in ("", ".", ".."):
            raise UsageError(f"{self.path}: {job_id!r} can't be the name of a job")
        return self.path / "jobs" / job_id

    def jobs(self) -> list[Path]:
        """The folders of all jobs, oldest first."""
        found = (self.path / "jobs").glob("[!.]*/events.jsonl")
        return [path.parent for path in sorted(found, key=lambda path: path.parent.stat().st_ctime)]

    def write_meta(self, config: str, jobs: dict[str, Json]) -> None:
        """What must be known before the first job starts. Nothing here holds a secret."""
        write_atomic(self.config, withheld.blanked(config))
        self.write_manifest(jobs)
        write_json(self.path / "meta" / "env.json", environment())
        write_json(self.path / "meta" / "git.json", revision())

    def sync(self) -> None:
        """Bring the names of what was laid out to the disk: without its configuration a run can't be resumed."""
        laid_out = (path for name in ("meta", "data", "skill", "tasks") for path in (self.path / name).rglob("*"))
        inside = [path for path in laid_out if path.is_dir()]
        tops = [path for name in ("meta", "data", "skill", "tasks") if (path := self.path / name).is_dir()]
        sync_folders(*inside, *tops, self.path, self.path.parent)

    def write_manifest(self, jobs: dict[str, Json], **more: Json) -> None:
        manifest = {"schema_version": SCHEMA_VERSION, "sharpen": sharpen.__version__, **more, "jobs": jobs}
        write_json(self.path / "meta" / "manifest.json", manifest)


def new_run(root: Path, name: str) -> RunFolder:
    """A folder for a new run, named after what it does and when."""
    stamp, name = time.strftime("%Y%m%d-%H%M%S"), folder_name(name)
    for attempt in range(1, 1000):
        path = root / (f"{name}-{stamp}" if attempt == 1 else f"{name}-{stamp}-{attempt}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot make the run folder {path}: {error.strerror}") from error
        return RunFolder(path)
    raise UsageError(f"no free name for a run called {name!r} in {root}")


def folder_name(name: str) -> str:
    """The name of a task, which may have a slash or a control character in it, as part of a folder's name."""
    return "".join(
        "-" if plain != sign or plain == "/" else plain for plain, sign in zip(name, printable(name), strict=True)
    )


def open_run(path: Path) -> RunFolder:
    """The run in a folder that is there. It may be somebody else's: nothing in it may lead out of it."""
    check_contained(path)
    return RunFolder(path)


def find_run(given: str, root: Path) -> RunFolder:
    """A run by its path, by its name under `root`, or the newest one for `latest`."""
    for path in (Path(given), root / given):
        if (path / "meta" / SNAPSHOT).exists():
            return open_run(path)
    there = sorted(root.glob(f"*/meta/{SNAPSHOT}"), key=lambda path: path.stat().st_mtime)
    if given == "latest" and there:
        return open_run(there[-1].parent.parent)
    names = [path.parent.parent.name for path in there]
    known = f"runs in {root}: {', '.join(names[-5:])}" if names else f"there are no runs in {root}"
    raise UsageError(f"no run {given!r}; {known}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a job's folder: a second process that wants it is told so, instead of writing into it too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise storage_error(folder / "lock", error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"the job in {folder} is running in another process") from None
        yield
    finally:
        os.close(handle)


def is_running(folder: Path) -> bool:
    """Whether some process holds the job's folder now."""
    path = folder / "lock"
    if not path.exists():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment() -> dict[str, Json]:
    """What the run ran on: versions of everything installed, and the environment's variables that concern it, redacted."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    return {
        "schema_version": SCHEMA_VERSION,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": cores(),
        "packages": dict(sorted(_packages().items())),
        "variables": dict(sorted(variables.items())),
    }


def _packages() -> dict[str, str]:
    """The version of every installed package, the one that is imported first. Of its metadata only the headers are read:
    parsing the pages behind them cost a fifth of a short run."""
    found: dict[str, str] = {}
    for dist in distributions():
        text = dist.read_text("METADATA") or dist.read_text("PKG-INFO") or ""
        headers = dict(line.split(": ", 1) for line in text.partition("\n\n")[0].splitlines() if ": " in line)
        if "Name" in headers and "Version" in headers:
            found.setdefault(headers["Name"], headers["Version"])
    return found


def revision() -> dict[str, Json]:
    """The git state of the folder the command was run in, and of sharpen's own source, where they are repositories."""
    return {"schema_version": SCHEMA_VERSION, **_git(Path.cwd()), "sharpen": _git(Path(sharpen.__file__).parent)}


def _git(folder: Path) -> dict[str, Json]:
    def ask(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=5, check=True)
        return done.stdout.strip()

    try:
        return {"revision": ask("rev-parse", "HEAD"), "dirty": bool(ask("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {"revision": None, "dirty": None}


def read_json(path: Path) -> Json:
    """What a file of a run holds; a run may come from somebody else, or have been damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: {error}; `sharpen report` derives most files of a run anew") from error
