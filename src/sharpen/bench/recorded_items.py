"""The items of a job as they lie in its run, for whoever only reads: no code of the user's is needed for them.

A task that is only data has its copy in `data/`. A task that is made by code of the user's own has its items and its
description written to `items/` when the run is laid out. Any other task is sharpen's own, or an installed package's, and
is made again.
"""

from __future__ import annotations

from sharpen.bench import trust
from sharpen.bench.config import TaskConfig
from sharpen.bench.item_files import START, read_description, read_items
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import make_task
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.task import Splits, Task
from sharpen.engine import checkpoints


def recorded_splits(config: TaskConfig, run: RunFolder) -> Splits:
    """The items of a job's task, without running code of the user's. `UsageError` where the run does not have them."""
    if run.items.is_dir():
        return read_items(run.items)
    return recorded_task(config, run).splits()


def recorded_start(config: TaskConfig, run: RunFolder) -> Candidate:
    """The texts training started from."""
    if run.skill.is_dir():
        return checkpoints.load(run.skill)
    if run.items.is_dir():
        return checkpoints.load(run.items / START)
    return recorded_task(config, run).seed()


def recorded_description(config: TaskConfig, run: RunFolder) -> str:
    """What the task says it is about."""
    try:
        if run.items.is_dir():
            return read_description(run.items)
        return recorded_task(config, run).brief.description
    except UsageError:
        return config.description or ""


def recorded_task(config: TaskConfig, run: RunFolder) -> Task:
    """A job's task as far as it can be had without code of the user's: one that is only data asks as it did, but an own
    metric is not loaded. `UsageError` for a task that is made by code."""
    listed = [use for use in trust.task_uses(config, run) if use.setting != "task.metric"]
    code = next((use for use in listed if use.action == trust.RUNS), None)
    if code is not None:
        raise UsageError(f"the task is made by code of its own ({code.name}), which is not run to read a job")
    trust.require(run.path, listed)
    own = config.metric is not None and ":" in config.metric.partition("?")[0]
    return make_task(config.model_copy(update={"metric": None}) if own else config, run.data)
