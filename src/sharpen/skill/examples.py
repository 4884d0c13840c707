"""Worked examples inside a skill document: how they are written, found, and told apart from the instructions.

An example is a Markdown block that people can read and edit:

    ### Example
    Input: forty-two
    Output: 42

Further lines of a longer input or output are indented by two spaces, so any text survives the round trip. `parse` gives
the instructions (everything else) and the examples in order; how they reach a model is the rendering's choice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = "### Example"
_INDENT = "  "
_BLOCK = re.compile(
    r"^### Example[ \t]*\n"
    r"Input:(?P<input>[^\n]*(?:\n  [^\n]*)*)\n"
    r"Output:(?P<output>[^\n]*(?:\n  [^\n]*)*)(?:\n|\Z)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Example:
    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Parsed:
    instructions: str
    examples: tuple[Example, ...]


def write(example: Example) -> str:
    """The Markdown block of an example, without a newline at its end."""
    return f"{HEADING}\nInput:{_indent(example.input)}\nOutput:{_indent(example.output)}"


def parse(text: str) -> Parsed:
    """Split a document into its instructions and its worked examples."""
    examples = tuple(Example(_unindent(m["input"]), _unindent(m["output"])) for m in _BLOCK.finditer(text))
    instructions = re.sub(r"\n{3,}", "\n\n", _BLOCK.sub("", text)).strip()
    return Parsed(instructions, examples)


def spans(text: str) -> list[tuple[int, int]]:
    """Where the example blocks stand, as half-open intervals without the newline behind the block."""
    return [(m.start(), m.start() + len(m[0].removesuffix("\n"))) for m in _BLOCK.finditer(text)]


def blocks(text: str) -> list[str]:
    """The example blocks exactly as they stand in the document: targets for edits, where they are unique."""
    return [text[start:end] for start, end in spans(text)]


def _indent(text: str) -> str:
    return " " + text.replace("\n", "\n" + _INDENT)


def _unindent(text: str) -> str:
    return text.removeprefix(" ").replace("\n" + _INDENT, "\n")
