"""The script `scripted/rules`: target and optimizer of the `codebook` task.

A codebook item names a kind (`kind-07: please reply`); its answer is the code word of the kind. The skill may hold rule
lines (`- kind-07: azure`). As the target, the script answers the word of the last rule for the kind, or `unknown`. As an
optimizer it is given a JSON block after the line `## Data` and does what the block's `stage` says (`scripted_optimizer.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from sharpen.core.chat import Request
from sharpen.core.digest import Json
from sharpen.models.scripted import DATA_HEADING, last_said
from sharpen.models.scripted_optimizer import KIND, RULE, STAGES

UNKNOWN = "unknown"


def rules(request: Request) -> str:
    """The reply of the script, in whichever part it is asked."""
    data = _data(request)
    if data is None:
        return _answer(request)
    stage = STAGES.get(str(data.get("stage")))
    return UNKNOWN if stage is None else json.dumps(stage(data), ensure_ascii=False)


def _answer(request: Request) -> str:
    said = last_said(request)
    kinds = KIND.findall(said)
    if not kinds:
        return UNKNOWN
    if request.prompt is not None:
        return _book(request.prompt).get(kinds[-1], UNKNOWN)
    skill = "\n".join(m.content for m in request.messages if m.role == "system")
    return _book(skill).get(kinds[0], UNKNOWN)


@lru_cache(maxsize=64)
def _book(skill: str) -> Mapping[str, str]:
    return dict(RULE.findall(skill))


def _data(request: Request) -> Mapping[str, Json] | None:
    """The JSON block of the last user message that has one; earlier ones belong to questions already answered."""
    for message in reversed(request.messages):
        _, heading, rest = f"\n{message.content}".rpartition(f"\n{DATA_HEADING}\n")
        if message.role != "user" or not heading:
            continue
        _, fence, block = rest.partition("```json\n")
        if fence:
            value, _ = json.JSONDecoder().raw_decode(block.lstrip())
            return value if isinstance(value, Mapping) else None
    return None
