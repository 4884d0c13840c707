"""How a candidate and one item become a request: the named styles `system`, `turns` and `completion`.

Which style is used decides whether a small model learns from worked examples at all, so it is a choice of task and model
and part of what a rollout is known by.

- `system`: every part as it stands as the system message (further parts under their file names), the item as user message.
- `turns`: the instructions as the system message, each worked example as a user and an assistant message, then the item.
- `completion`: one text to be continued: the instructions, then `User: ...` / `Assistant: ...` blocks, the last one open.
  The answer ends at the first newline, or, where a worked example shows an answer of several lines, at the next
  `User:`. Inputs of several lines stand as they are.

Everything here is pure. `Request.shared` covers exactly what does not depend on the item; in the `completion` style it
reaches up to and including the `User:` of the item, where a token ends in any case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.errors import UsageError, nearest
from sharpen.skill import examples

VERSION = "1"
"""Bumped whenever the same candidate and item would be rendered differently than before."""

USER = "User:"
ASSISTANT = "Assistant:"

_HEADING = re.compile(r"(#{1,6})[ \t]+\S")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The part of a request that a style decides. `stop` is what the style itself needs to end an answer."""

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    stop: tuple[str, ...] = ()
    shared: int = 0


Asked = str | tuple[Message, ...]
"""What an item asks: a text, or a conversation that ends with the user's message."""
Style = Callable[[Candidate, Asked], Rendered]


def render(
    style: str, candidate: Candidate, asked: Asked, *, max_tokens: int, stop: tuple[str, ...] | None = None
) -> Request:
    """The request that asks a model that works from `candidate`. A given `stop` replaces the style's."""
    rendered = style_named(style)(candidate, asked)
    return Request(
        messages=rendered.messages,
        prompt=rendered.prompt,
        max_tokens=max_tokens,
        stop=rendered.stop if stop is None else stop,
        shared=rendered.shared,
    )


def style_named(name: str) -> Style:
    if name not in STYLES:
        raise UsageError(
            f"unknown rendering {name!r}; the renderings are {', '.join(STYLES)}{nearest(name, tuple(STYLES))}"
        )
    return STYLES[name]


@lru_cache(maxsize=64)
def whole_text(candidate: Candidate) -> str:
    """All parts as one text: the main part first, each further part under its file name."""
    return _joined(candidate, candidate.text)


def _system(candidate: Candidate, asked: Asked) -> Rendered:
    opening = _opening(whole_text(candidate))
    return Rendered(messages=(*opening, *_messages(asked)), shared=len(opening))


def _turns(candidate: Candidate, asked: Asked) -> Rendered:
    parsed = examples.parse(candidate.text)
    opening = [*_opening(_joined(candidate, _without_empty_sections(parsed.instructions)))]
    for example in parsed.examples:
        opening += [Message("user", example.input), Message("assistant", example.output)]
    return Rendered(messages=(*opening, *_messages(asked)), shared=len(opening))


def _completion(candidate: Candidate, asked: Asked) -> Rendered:
    parsed = examples.parse(candidate.text)
    instructions = _joined(candidate, _without_empty_sections(parsed.instructions))
    blocks = [f"{USER} {example.input}\n{ASSISTANT} {example.output}\n\n" for example in parsed.examples]
    prefix = "".join([f"{instructions}\n\n" if instructions else "", *blocks, USER])
    several_lines = any("\n" in example.output for example in parsed.examples)
    return Rendered(
        prompt=f"{prefix} {_continued(asked)}\n{ASSISTANT}",
        stop=(f"\n{USER}",) if several_lines else ("\n",),
        shared=len(prefix),
    )


def _messages(asked: Asked) -> tuple[Message, ...]:
    return (Message("user", asked),) if isinstance(asked, str) else asked


def _continued(asked: Asked) -> str:
    """What follows the first `User:`. What a conversation's system says stands before what the user says first."""
    if isinstance(asked, str):
        return asked
    told = "\n\n".join(message.content for message in asked if message.role == "system")
    turns = [message for message in asked if message.role != "system"]
    first, *rest = turns
    text = f"{told}\n\n{first.content}" if told else first.content
    for message in rest:
        text += f"\n{ASSISTANT} {message.content}" if message.role == "assistant" else f"\n\n{USER} {message.content}"
    return text


def _opening(text: str) -> tuple[Message, ...]:
    return (Message("system", text),) if text else ()


def _joined(candidate: Candidate, main: str) -> str:
    references = (f"## {name}\n\n{candidate[name]}" for name in candidate if name != candidate.main)
    return "\n\n".join(text.strip("\n") for text in (main, *references) if text.strip())


def _without_empty_sections(text: str) -> str:
    """Leave out headings that only worked examples stood under: they would announce something that does not follow.
    A title of the first level stays even with nothing under it, since it may be all the instruction there is."""
    kept: list[str] = []
    level_below = 0  # level of the next heading below when nothing stands in between, 7 when something does
    for line in reversed(text.split("\n")):
        heading = _HEADING.match(line)
        if heading is None:
            level_below = 7 if line.strip() else level_below
        elif 2 <= len(heading[1]) >= level_below:
            continue
        else:
            level_below = len(heading[1])
        kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(reversed(kept))).strip()


STYLES: dict[str, Style] = {"system": _system, "turns": _turns, "completion": _completion}
