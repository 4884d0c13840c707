"""What the pages say of the code is held against the code: events and fields, settings and defaults, prompts, links."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from sharpen.engine.events import Event
from sharpen.report import steps
from sharpen.trainers.reflact import prompts
from sharpen.trainers.reflact.params import ReflACTParams

DOCS = Path(__file__).parents[1] / "docs"
TELLERS = ("sharpen.engine.events", "sharpen.trainers.reflact.events", "sharpen.bench.evaluate")


def events() -> list[type[Event]]:
    """The events the program itself tells; those that other tests make up are not among them."""
    for module in TELLERS:
        importlib.import_module(module)
    return sorted((kind for kind in Event.kinds.values() if kind.__module__ in TELLERS), key=lambda kind: kind.type)


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def rows(page: str) -> dict[str, list[str]]:
    """The rows of a page's tables by what their first cell names in code, the name itself left out."""
    found: dict[str, list[str]] = {}
    for line in text(page).splitlines():
        if match := re.match(r"\| `(\w+)` \| (.*) \|$", line):
            found.setdefault(match[1], match[2].split(" | "))
    return found


@pytest.mark.parametrize("kind", events(), ids=lambda kind: kind.type)
def test_every_event_is_described_with_exactly_its_fields(kind: type[Event]) -> None:
    described = rows("files.md")[kind.type][-1]
    assert re.findall(r"`(\w+)`", described) == [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("name", ReflACTParams.model_fields)
def test_every_setting_of_the_trainer_is_explained_with_its_default(name: str) -> None:
    field = ReflACTParams.model_fields[name]
    default = field.get_default(call_default_factory=True)
    assert default is not PydanticUndefined
    if name == "prompts":
        assert "`trainer.params.prompts`" in text("training.md")
        return
    shown = rows("training.md")[name][0].strip("`")
    if isinstance(default, tuple):
        assert shown == f"[{', '.join(default)}]"
    else:
        assert shown == ("none" if default is None else default if isinstance(default, str) else json.dumps(default))


def test_every_way_a_step_or_a_slow_update_can_end_is_explained() -> None:
    page = text("training.md") + text("trainers.md")
    assert {name for name in (*steps._ACTIONS, *steps._SLOW_ACTIONS) if f"`{name}`" not in page} == set()


def test_every_prompt_is_named() -> None:
    assert {name for name in prompts.names() if f"`{name}`" not in text("training.md")} == set()


def test_the_index_leads_to_every_page() -> None:
    linked = re.findall(r"\]\((\w[\w-]*\.md)\)", text("index.md"))
    assert sorted(linked) == sorted(page.name for page in DOCS.glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_to_headings_find_them(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([\w.-]*)#([\w-]+)\)", page.read_text(encoding="utf-8")):
        headings = re.findall(r"^#+ (.+)$", text(target or page.name), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
        assert anchor in slugs, f"{target}#{anchor}"
