"""docs/qa.md names every family and every scorer."""

from __future__ import annotations

import re
from pathlib import Path

from sharpen.tasks import qa

PAGE = (Path(__file__).parents[3] / "docs" / "qa.md").read_text(encoding="utf-8")


def test_every_family_stands_on_the_page_with_its_scorer() -> None:
    listed = dict(re.findall(r"^\| ((?:`\w+`,? ?)+) \|.*\| (\w+) \|$", PAGE, re.MULTILINE))
    told = {name: scorer for names, scorer in listed.items() for name in re.findall(r"`(\w+)`", names)}
    assert set(told) == set(qa.members())
    assert {name: told[name] for name in qa.families()} == {f.name: f.scorer for f in qa.families().values()}


def test_every_scorer_is_explained() -> None:
    explained = set(re.findall(r"^\| (\w+) \| .* \| .* \|$", PAGE, re.MULTILINE))
    assert {family.scorer for family in qa.families().values()} <= explained
