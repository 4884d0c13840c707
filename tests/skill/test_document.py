"""Sections and protected regions as spans."""

from __future__ import annotations

import pytest

from sharpen.core.errors import UsageError
from sharpen.skill.document import find_section, heading_level, lines, regions, sections

DOCUMENT = """# Title

Intro.

## Rules

- one

### Deeper

text

## Examples

```
## not a heading
```
last
"""


def test_a_section_reaches_to_the_next_heading_of_its_level():
    found = {section.title: section for section in sections(DOCUMENT)}
    assert list(found) == ["Title", "Rules", "Deeper", "Examples"]
    rules = found["Rules"]
    assert DOCUMENT[rules.start : rules.end].startswith("## Rules\n\n- one")
    assert DOCUMENT[rules.start : rules.end].endswith("### Deeper\n\ntext\n\n")
    assert DOCUMENT[rules.body :].startswith("\n- one")
    assert found["Title"].end == len(DOCUMENT) == found["Examples"].end


def test_sections_are_found_by_title_whatever_the_case():
    section = find_section(DOCUMENT, "rules")
    assert section is not None and section.title == "Rules"
    assert find_section(DOCUMENT, "Deeper") is None
    assert find_section(DOCUMENT, "Deeper", level=3) is not None


def test_code_and_front_matter_hold_no_headings():
    text = "---\nname: x\n# comment\n---\n# Real\n~~~~\n# code\n~~~\n# still code\n~~~~\n## After\n"
    assert [section.title for section in sections(text)] == ["Real", "After"]


def test_lines_cover_the_document():
    assert "".join(f"{line.text}\n" for line in lines(DOCUMENT)) == DOCUMENT
    assert [line.text for line in lines("a\n\nb")] == ["a", "", "b"]
    assert list(lines("")) == []


def test_heading_levels():
    assert [heading_level(line) for line in ("# a", "###### b", "####### c", "#d", "text", "## Title ##")] == [
        1,
        6,
        0,
        0,
        0,
        2,
    ]


def test_regions_of_both_kinds_are_found_with_their_markers():
    text = (
        "a\n<!-- PROTECTED:slow START -->\nx\n<!-- PROTECTED:slow END -->\nb"
        "<!--SLOW_UPDATE_START-->y<!-- SLOW_UPDATE_END -->\n<!-- APPENDIX_START --><!-- APPENDIX_END -->"
    )
    found = regions(text)
    assert [region.name for region in found] == ["PROTECTED:slow", "SLOW_UPDATE", "APPENDIX"]
    assert text[found[0].start : found[0].end] == "<!-- PROTECTED:slow START -->\nx\n<!-- PROTECTED:slow END -->"
    assert text[found[1].start : found[1].end] == "<!--SLOW_UPDATE_START-->y<!-- SLOW_UPDATE_END -->"


def test_touching_is_intersection_of_half_open_intervals():
    (region,) = regions("ab<!-- A_START --><!-- A_END -->cd")
    start, end = region.start, region.end
    assert not region.touches(0, start)
    assert region.touches(0, start + 1)
    assert region.touches(end - 1, end + 1)
    assert not region.touches(end, end + 2)
    assert not region.touches(start, start) and not region.touches(end, end)
    assert region.touches(start + 1, start + 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\n<!-- A_START -->\n", "begins but never ends"),
        ("a\n<!-- A_END -->\n", "ends but never began"),
        ("<!-- B_START -->\n<!-- A_START --><!-- A_END --><!-- B_END -->", "begins inside"),
        ("<!-- A_START -->\n<!-- B_END -->", "closed by the end of"),
    ],
)
def test_markers_that_do_not_pair_up_are_an_error_with_part_and_line(text: str, why: str):
    with pytest.raises(UsageError, match=f"(?s)notes.md, line [12]: .*{why}"):
        regions(text, "notes.md")
