"""What a stretch of the story used, by classic stage.

The classic account has one stage `rollout` for everything the target model did. Here it is the same sum, and beside it what
each purpose took: train, screen, gate, slow_update, promote, confirm, test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sharpen.bench.compat.story import Line
from sharpen.bench.compat.words import STAGES
from sharpen.core.usage import NOTHING, Usage

ROLLOUT = "rollout"
TOTAL = "_total"


def used(lines: Iterable[Line]) -> dict[str, dict[str, Any]]:
    """By stage, and together under `_total`: the sum of the stages."""
    stages: dict[str, Usage] = {}
    purposes: dict[str, Usage] = {}
    for line in lines:
        if line["type"] == "measured":
            purpose = line["purpose"].replace("-", "_")
            for row in line["usage"].values():
                purposes[purpose] = purposes.get(purpose, NOTHING) + Usage.from_told(row)
        elif line["type"] == "asked":
            word = str(line["scope"][0]) if line["scope"] else line["stage"]
            stage = STAGES.get(word, word)
            stages[stage] = stages.get(stage, NOTHING) + Usage.from_told(line["usage"])
    told = {stage: _named(usage) for stage, usage in stages.items()}
    if purposes:
        every = sum(purposes.values(), NOTHING)
        stages[ROLLOUT] = every
        told = {ROLLOUT: {**_named(every), "by_purpose": {name: _named(u) for name, u in purposes.items()}}, **told}
    return {**told, TOTAL: _named(sum(stages.values(), NOTHING))}


def _named(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
        "money": None if usage.money is None else round(usage.money, 9),
    }
