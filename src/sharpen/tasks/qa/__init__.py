"""Questions and answers from local files in their published formats: `qa/NAME` with the setting `data`.

`make` is what the registry calls. The families are tables in `passages`, `problems` and `programs`: which fields a published
row has, how the question is shown, what is accepted. `reading` and `loading` turn files into splits, `extracting`, `latex`
and `scoring` decide what an answer says and whether it is right, `code` runs programs against tests.
"""

from __future__ import annotations

from pathlib import Path

from sharpen.core.errors import UsageError, nearest
from sharpen.core.task import Task
from sharpen.tasks import splitting
from sharpen.tasks.qa.family import Family
from sharpen.tasks.qa.loading import Choice

DESCRIPTION = "Question answering from your local copy of a published data set (--data PATH)."
_PRESET = {"arc_challenge": ("arc", "challenge"), "arc_easy": ("arc", "easy")}


def families() -> dict[str, Family]:
    """Every family by name."""
    from sharpen.tasks.qa import passages, problems, programs

    return {family.name: family for table in (passages, problems, programs) for family in table.FAMILIES}


def members() -> list[str]:
    """The names that can stand behind `qa/`."""
    return [*families(), *_PRESET]


def make(
    name: str,
    *,
    data: str | None = None,
    subset: str | None = None,
    ratio: str = splitting.DEFAULT_RATIO,
    split_seed: int = 0,
    limit: int | None = None,
    context_chars: int = 16_000,
    max_tokens: int | None = None,
    sandbox: str = "bubblewrap",
) -> Task:
    """The family `name` over the file or folder `data`. `subset` keeps one of its tasks or subjects, `context_chars` bounds
    the passages that are shown, `sandbox` is for programs."""
    base, preset = _PRESET.get(name, (name, ""))
    known = families()
    if base not in known:
        raise UsageError(
            f"unknown question family {name!r}{nearest(name, members())}; the families are {', '.join(members())}"
        )
    if not isinstance(data, str) or not data:
        raise UsageError(
            f"qa/{name} needs its files: --data PATH (task.data), a file or folder as published; docs/qa.md says which"
        )
    for setting, value in (("split_seed", split_seed), ("context_chars", context_chars), ("max_tokens", max_tokens)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise UsageError(f"{setting} must be a whole number of 0 or more, got {value!r}")
    splitting.check_limit(limit)
    splitting.parse_ratio(ratio)
    choice = Choice(ratio, split_seed, limit, str(subset or preset), context_chars)
    if known[base].scorer == "code":
        from sharpen.tasks.qa.code import CodeTask

        return CodeTask(known[base], Path(data), choice, max_tokens, sandbox)
    from sharpen.tasks.qa.task import QATask

    return QATask(known[base], Path(data), choice, max_tokens)
