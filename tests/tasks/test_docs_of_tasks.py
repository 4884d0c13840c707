"""What docs/tasks.md shows is true: its code runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharpen.tasks import metrics, registry
from sharpen.tasks.render import STYLES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tasks.md").read_text(encoding="utf-8")
FAMILIES = "sharpen.tasks.families."
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_on_the_page_runs(number: int) -> None:
    exec(compile(BLOCKS[number], f"docs/tasks.md, block {number}", "exec"), {"__name__": "page"})


def named(page: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))


def test_the_page_names_every_metric_and_rendering() -> None:
    assert {*metrics.names(), *STYLES} <= named(PAGE)


def test_every_task_stands_in_a_table_of_some_page() -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")]
    assert set(registry.names()) <= set().union(*map(named, pages))


def test_every_task_the_embedded_model_plays_has_measured_scores() -> None:
    measured = re.findall(r"^\| ([a-z0-9-]+) \| [.\d]+ \|", PAGE, re.MULTILINE)
    families = {name for name in registry.names() if type(registry.get(name)).__module__.startswith(FAMILIES)}
    assert set(measured) == families
