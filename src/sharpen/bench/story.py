"""A job's story as it stands on disk, for whoever looks at many jobs: one that is damaged must not hide the others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharpen.engine.opening import EVENTS
from sharpen.files import complete_lines


@dataclass(frozen=True)
class Story:
    """The lines of a story; none of them, and what is to be done, where it is damaged."""

    lines: list[dict[str, Any]]
    damage: str = ""


def read(job: Path) -> Story:
    """The story in a job's folder, which may not have begun."""
    lines = []
    for number, (_, text) in enumerate(complete_lines(job / EVENTS), start=1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not (isinstance(line, dict) and "type" in line):
            return Story(
                [], f"its story is damaged at line {number}; remove {job.parent.name}/{job.name} to run it anew"
            )
        lines.append(line)
    return Story(lines)
