"""Which reader a source is for. A source is written as a path or a run's name, with `@ARM` behind it where one of several
arms is meant: `runs/study@evidence`, `results.csv@ppo`."""

from __future__ import annotations

from pathlib import Path

from sharpen.bench.evidence import event_files, inspect_logs, stories, tables, wandb_exports, wandb_files
from sharpen.bench.evidence.nouns import Arm, picked
from sharpen.bench.layout import RunFolder, find_run, open_run
from sharpen.core.errors import UsageError

_KINDS = (
    "a run of sharpen, one of its jobs or checkpoints, a CSV file, a folder with TensorBoard's event files, a folder of "
    "W&B's offline runs, histories exported from W&B as JSON, or logs of Inspect"
)


def arms_of(given: str, root: Path, *, by: str = "arm", scorer: str | None = None) -> list[Arm]:
    """The arms of a source, in its order."""
    source, _, wanted = given.partition("@") if not Path(given).exists() else (given, "", "")
    try:
        found = _read(source, root, by, scorer)
    except RecursionError:
        raise UsageError(f"{source}: something in it is nested too deeply") from None
    return [picked(found, wanted, source)] if wanted else found


def _read(source: str, root: Path, by: str, scorer: str | None) -> list[Arm]:
    for path in (Path(source), root / source):
        own = _of_sharpen(path, by)
        if own:
            return own
    path = Path(source)
    if not path.exists():
        return stories.of_run(_run_or_complain(source, root), by)
    if path.is_file() and path.suffix in (".csv", ".tsv"):
        return tables.read(path)
    if inspect_logs.holds(path):
        return [inspect_logs.read(path, scorer)]
    if wandb_files.holds(path):
        return wandb_files.read(path)
    if event_files.is_event_file(path) or (path.is_dir() and event_files.holds(path)):
        return event_files.read(path)
    if wandb_exports.holds(path):
        return wandb_exports.read(path)
    if path.is_dir() and not any(path.iterdir()):
        raise UsageError(f"{path} is an empty folder; a comparison reads {_KINDS}")
    raise UsageError(f"{path}: nothing here that can be compared; that would be {_KINDS}")


def _of_sharpen(path: Path, by: str) -> list[Arm]:
    """A run, a job or a checkpoint, where the path is one."""
    if (path / "meta" / "config.snapshot.yaml").exists():
        return stories.of_run(open_run(path), by)
    if path.parent.name == "jobs" and path.is_dir():
        return [stories.of_job(open_run(path.parent.parent), path)]
    if path.parent.name == "checkpoints" and (path / "metadata.json").exists():
        job = path.parent.parent
        return [stories.of_checkpoint(open_run(job.parent.parent), job, path)]
    return []


def _run_or_complain(source: str, root: Path) -> RunFolder:
    try:
        return find_run(source, root)
    except UsageError as error:
        raise UsageError(f"{error}. A comparison reads {_KINDS}") from error
