"""The prompts of the analysts, one Markdown file each, and how a question is built from them.

Every question ends in a section `## Data` with one JSON block, so that a model sees where the instructions end and the
material begins, and a program can read it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from sharpen.core.chat import Message
from sharpen.core.digest import Json


@cache
def load(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def question(name: str, data: Mapping[str, Json]) -> tuple[Message, ...]:
    """The messages that put the question `name` about `data`."""
    block = json.dumps(dict(data), ensure_ascii=False, indent=1)
    return (Message("system", load(name)), Message("user", f"## Data\n\n```json\n{block}\n```"))
