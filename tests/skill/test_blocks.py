"""A skill in blocks: what is one piece, what stays, and what is left when pieces go."""

from __future__ import annotations

import pytest

from sharpen.core.candidate import Candidate
from sharpen.skill.blocks import Kind, blocks, without

SKILL = """---
name: codes
---
# Codes

Answer with one word.
- kind-01: ruby

### Example
Input: kind-01, please
  and soon
Output: ruby

```python
x = 1

y = 2
```

<!-- SLOW_UPDATE_START -->
- kind-02: jade
<!-- SLOW_UPDATE_END -->
"""


def test_rules_are_lines_and_examples_and_code_are_whole() -> None:
    found = [
        (block.kind, block.text.split("\n")[0], len(block.numbers), block.stays) for block in blocks(Candidate(SKILL))
    ]
    assert found == [
        (Kind.FRONT_MATTER, "---", 3, "front matter"),
        (Kind.HEADING, "# Codes", 1, ""),
        (Kind.LINE, "Answer with one word.", 1, ""),
        (Kind.LINE, "- kind-01: ruby", 1, ""),
        (Kind.EXAMPLE, "### Example", 4, ""),
        (Kind.CODE, "```python", 5, ""),
        (Kind.PROTECTED, "- kind-02: jade", 1, "protected"),
    ]


def test_what_is_left_has_no_gaps_and_the_rest_is_untouched() -> None:
    skill = Candidate(SKILL)
    gone = [block for block in blocks(skill) if block.kind in (Kind.EXAMPLE, Kind.CODE)]
    assert without(skill, gone).text == SKILL[: SKILL.index("### Example")] + SKILL[SKILL.index("<!-- SLOW") :]
    assert without(Candidate("a\n\nb\n"), blocks(Candidate("a\n\nb\n"))[:1]).text == "b\n"
    assert without(Candidate("a\n\nb\n"), blocks(Candidate("a\n\nb\n"))[1:]).text == "a\n"


@pytest.mark.parametrize("text", ["a", "a\nb\nc", "a\n\n\n\nb\n", "a\r\nb\r\n", "\n\na\n"])
def test_taking_out_everything_leaves_nothing_to_read(text: str) -> None:
    skill = Candidate(text)
    assert not without(skill, blocks(skill)).text.strip()


def test_a_line_that_python_needs_stays_and_says_why() -> None:
    skill = Candidate({"SKILL.md": "Read f.py.\n", "f.py": "def f():\n    return 1\n\nx = f()\n"})
    stays = {block.text.strip(): block.stays for block in blocks(skill)}
    assert stays["x = f()"] == "" and stays["Read f.py."] == ""
    assert stays["return 1"].startswith("f.py would not be Python any more")
