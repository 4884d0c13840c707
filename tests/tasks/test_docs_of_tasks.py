"""What docs/tasks.md shows is true: its code runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharpen.tasks import metrics, registry
from sharpen.tasks.render import STYLES

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_on_the_page_runs(number: int) -> None:
    exec(compile(BLOCKS[number], f"docs/tasks.md, block {number}", "exec"), {"__name__": "page"})


def test_the_page_names_every_task_metric_and_rendering() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert {*registry.names(), *metrics.names(), *STYLES} <= set(rows)


def test_every_task_the_embedded_model_plays_has_measured_scores() -> None:
    measured = re.findall(r"^\| ([a-z0-9-]+) \| [.\d]+ \|", PAGE, re.MULTILINE)
    assert set(measured) == set(registry.names()) - {"codebook", "keys-and-doors"}
