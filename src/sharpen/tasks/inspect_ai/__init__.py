"""Tasks of Inspect AI as tasks of ours: `inspect/PACKAGE/TASK` or `inspect/path/to/file.py@TASK` (extra `inspect`).

The candidate is the first system message of every sample; Inspect's solvers and scorers do the rest, and every call they
make of the model under evaluation comes through the attempt, so it is in our ledger and our budget. `make` is what the
registry calls; `loading` finds a task and turns its samples into items, `provider` is our model as Inspect sees it, `floor`
runs samples, `values` turns what a scorer says into scores. Nothing here imports the package before it is needed.
"""

from __future__ import annotations

import importlib.util

from sharpen.core.digest import Json
from sharpen.core.errors import MissingRequirement
from sharpen.core.task import Task
from sharpen.tasks import splitting

DESCRIPTION = "Any task of Inspect AI, by package and name or as path/to/file.py@name."
_NEEDS = "inspect/NAME needs the Python package inspect-ai; install it with pip install 'sharpen[inspect]'"


def members() -> list[str]:
    """No name is known before a package or file is named."""
    _check_installed()
    return []


def make(
    name: str,
    *,
    ratio: str = splitting.DEFAULT_RATIO,
    split_seed: int = 0,
    limit: int | None = None,
    max_tokens: int = 1024,
    max_calls: int | None = None,
    scorer: str | None = None,
    score_range: str = "0:1",
    grader: str = "target",
    grader_calls: int = 0,
    args: dict[str, Json] | None = None,
) -> Task:
    """The Inspect task `name`, made with `args`. `max_calls` is how often a sample may call the model, where that is more
    than once; `scorer` chooses one of several, `score_range` is LO:HI of scores that are not 0..1, `grader` the role that
    grades (`target` or `judge`) and `grader_calls` how often it does for a sample."""
    _check_installed()
    from sharpen.tasks.inspect_ai.loading import Settings, load
    from sharpen.tasks.inspect_ai.task import InspectTask

    settings = Settings(ratio, split_seed, limit, max_tokens, max_calls, scorer, score_range, grader, grader_calls)
    return InspectTask(load(name, dict(args or {})), settings)


def _check_installed() -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        raise MissingRequirement(_NEEDS)
