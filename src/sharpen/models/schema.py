"""Replies that must have a shape: take the JSON out of what a model said, check it, and say what is wrong with it.

The shape is a pydantic model class. `json_schema` is what a request carries to an endpoint that can obey it; `validate`
checks what came back, whether or not the endpoint promised anything; `reask` makes the request that shows the model its
own reply and the error. JSON is found as the whole reply, in a fenced block, or as an object in the text around it, in
time linear in the reply. If more than one value fits, or the JSON breaks off, that is an error: nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.digest import Json, canonical

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    Shape = TypeVar("Shape", bound=BaseModel)
else:
    Shape = TypeVar("Shape")

_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_MOST_OBJECTS = 64
_MOST_ERRORS = 5
_LONGEST_ECHO = 60


@dataclass(frozen=True, slots=True)
class Checked(Generic[Shape]):
    """Either the validated `value` and its plain JSON form `data`, or an `error` fit to be shown to the model."""

    value: Shape | None = None
    data: Json = None
    error: str = ""


@lru_cache(maxsize=64)
def json_schema(shape: type[BaseModel]) -> Mapping[str, Json]:
    """The JSON schema of a model class, for `Request.schema`."""
    return shape.model_json_schema()


def validate(text: str, shape: type[Shape]) -> Checked[Shape]:
    """The one value in `text` that has the given shape, or why there is none."""
    from pydantic import ValidationError

    found, problem = _find(_without_thoughts(text))
    fitting: dict[str, Checked[Shape]] = {}
    errors: list[str] = []
    for candidate in map(_whole, found):
        try:
            value = shape.model_validate(candidate)
        except ValidationError as error:
            errors.append(_explain(error))
        else:
            data = value.model_dump(mode="json")
            fitting[canonical(data)] = Checked(value, data)
    if len(fitting) > 1:
        return Checked(error=f"there are {len(fitting)} different JSON values that fit; give exactly one")
    if fitting:
        return next(iter(fitting.values()))
    return Checked(error=errors[0] if errors else problem)


def _whole(value: Json) -> Json:
    """A JSON value without half characters, which an escape such as \\ud83d alone stands for and no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return value


def reask(request: Request, reply: Reply, error: str) -> Request:
    """The same request once more, with the reply that was wrong and what was wrong with it."""
    complaint = f"That reply cannot be used: {error}\nReply again with the complete, corrected JSON and nothing else."
    if request.prompt is not None:
        return replace(request, prompt=f"{request.prompt}{reply.text}\n\n{complaint}\n\n")
    return replace(request, messages=(*request.messages, Message("assistant", reply.text), Message("user", complaint)))


def _without_thoughts(text: str) -> str:
    """Some endpoints leave a model's thinking, which may hold drafts, at the head of the reply."""
    head, end, rest = text.partition("</think>")
    return rest if end and head.lstrip().startswith("<think>") else text


def _find(text: str) -> tuple[list[Json], str]:
    """JSON values that may be the answer, and what to say if there are none."""
    try:
        return [_decode(text)], ""
    except (ValueError, RecursionError):
        pass
    fenced = []
    for block in _FENCE.finditer(text):
        try:
            fenced.append(_decode(block.group(1)))
        except (ValueError, RecursionError):
            continue
    if fenced:
        return fenced, ""
    return _scan(text)


def _scan(text: str) -> tuple[list[Json], str]:
    """Every JSON object in running text. After a broken one the search goes on where it broke, so that no fragment of a
    broken object is taken for the answer."""
    decoder = json.JSONDecoder(strict=False, parse_constant=_no_constant)
    end = len(text.rstrip())
    found: list[Json] = []
    problem = "there is no JSON object in it"
    at = text.find("{")
    # The decoder counts lines up to each error, so endless attempts would take time quadratic in the text.
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return found, problem
        try:
            value, after = decoder.raw_decode(text, at)
            found.append(value)
        except json.JSONDecodeError as error:
            if error.pos >= end or error.msg.startswith("Unterminated"):
                return [], "the JSON breaks off before its end"
            problem = f"the JSON is broken: {error.msg} near {text[error.pos : error.pos + 30]!r}"
            after = max(error.pos, at + 1)
        except (ValueError, RecursionError) as error:
            return [], f"the JSON cannot be read: {error}"
        at = text.find("{", after)
    return [], "there are too many pieces of JSON in it"


def _decode(text: str) -> Json:
    return json.loads(text, strict=False, parse_constant=_no_constant)


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value")


def _explain(error: ValidationError) -> str:
    rows = error.errors(include_url=False, include_context=False)
    lines = []
    for row in rows[:_MOST_ERRORS]:
        where = ".".join(str(step) for step in row["loc"]) or "the reply"
        got = "" if row["type"] == "missing" else f" (got {_short(row['input'])})"
        lines.append(f"{where}: {row['msg']}{got}")
    if len(rows) > _MOST_ERRORS:
        lines.append(f"and {len(rows) - _MOST_ERRORS} more")
    return "; ".join(lines)


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_ECHO else text[: _LONGEST_ECHO - 3] + "..."
