"""Placeholders for data, such as `{{question}}`, in a text that is trained. There are none: the text is sent as it stands
and each item follows it; how an item is asked is said by the task's template."""

from __future__ import annotations

import re

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.task import SPLITS
from sharpen.tasks.textual import TextTask

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}|(?<![\{$])\{(\w+)\}(?!\})")


def check_placeholders(task: TextTask, candidate: Candidate) -> None:
    """Refuse a text that names a field of the items as if it were filled in: a model would be sent the braces."""
    items = [item for name in SPLITS for item in task.splits()[name]]
    fields = set.intersection(*(set(item.inputs) for item in items)) if items else set()
    for part in candidate:
        for match in _PLACEHOLDER.finditer(candidate[part]):
            name = match[1] or match[2]
            if name in fields:
                line = candidate[part].count("\n", 0, match.start()) + 1
                raise UsageError(
                    f"{part}, line {line}, has {match[0]}, and a model would be sent just that: the text is trained and "
                    f"sent as it stands, and each item follows it. Take {match[0]} out of the text{_template(task, name)}"
                )


def _template(task: TextTask, name: str) -> str:
    if task.template is not None:
        return f"; the template {task.template!r} says how an item is asked"
    if name == "input":
        return "; the input is asked after it by itself"
    return f", and say how an item is asked with 'task.template={{{name}}}'"
