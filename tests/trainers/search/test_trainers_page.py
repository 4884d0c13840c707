"""What the page on trainers says is held against the code: trainers, settings and defaults, events and fields."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from sharpen.engine.events import Event
from sharpen.trainers import registry
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.search import events as told

PAGE = (Path(__file__).parents[3] / "docs" / "trainers.md").read_text(encoding="utf-8")
NAMES = (
    "gepa-base", "gepa-ucb", "gepa-beam", "pareto-search", "priority-search", "polca", "basic-search", "beam-search",
    "ucb-search", "minibatch", "few-shot", "opro", "noop",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_trainer_and_each_of_its_settings_is_explained(name: str) -> None:
    kind = registry.get(name)
    assert kind.name == name and re.search(rf"^\| `{name}` \| ", PAGE, re.MULTILINE)
    inherited = set(ProposalParams.model_fields) - {"failure_only"}
    for setting, field in kind.Params.model_fields.items():
        lines = [line for line in PAGE.splitlines() if f"`{setting}`" in line]
        assert lines, setting
        default = field.get_default(call_default_factory=True)
        as_in_reflact = setting in inherited or setting in ("gate_mixed_weight", "confirm_share")
        if isinstance(default, int | float) and not isinstance(default, bool) and not as_in_reflact:
            number = rf"(?<![\d.]){re.escape(str(default))}(?![\d.]*\d)"
            assert any(re.search(number, line) for line in lines), f"{setting} is {default}"


@pytest.mark.parametrize(
    "kind", [kind for kind in Event.kinds.values() if kind.__module__ == told.__name__], ids=lambda kind: kind.type
)
def test_every_event_of_searches_is_described_with_exactly_its_fields(kind: type[Event]) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{kind.type}` |"))
    assert re.findall(r"`(\w+)`", row.split(" | ")[-1]) == [field.name for field in dataclasses.fields(kind)]
