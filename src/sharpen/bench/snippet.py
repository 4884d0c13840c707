"""A Python file that asks a model exactly as training did, with the `openai` package and nothing of sharpen.

How a task asks is the task's own business, so it is not guessed: `asking` carries out the beginning of a rollout, up to the
first request, and takes the request apart into what stands before the question and the question itself. `python_file`
writes that down as code that people can read and change.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sharpen.bench.export import Label, Origin, checked_name
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Task
from sharpen.tasks.textual import TextTask

_OWN_HOST = "api.openai.com"
_REASONING = ("gpt-5", "o1", "o3", "o4")
"""OpenAI's models that take neither a temperature nor stop texts."""


@dataclass(frozen=True)
class Asking:
    """How the target is asked. A conversation has an `opening`; a text to be continued has something `before` and `after`
    the question. `template` is how an item's fields become the question, where there are several."""

    opening: tuple[Message, ...]
    before: str
    after: str
    plain: bool
    template: str | None
    request: Request
    calls: int
    """The most calls one attempt took; this is the first of them."""


class _Asked(Exception):
    def __init__(self, request: Request) -> None:
        super().__init__("the target was asked")
        self.request = request


class _Probe:
    """An attempt that goes as far as the first request to the target, and hands it over instead of sending it."""

    def __init__(self, render: str, scratch: Path) -> None:
        self.render = render
        self.rng = Stream(0, "export")
        self.scratch = scratch

    async def complete(self, request: Request, *, role: str = "target") -> Reply:
        if role != "target":
            raise UsageError(
                f"the task asks its {role} before the target; a Python file can't: use --as skill or prompt"
            )
        raise _Asked(request)


async def asking(task: Task, candidate: Candidate, render: str) -> Asking:
    """How the task asks the target when it works from `candidate`."""
    items = task.splits().train
    first, second = [await _first_request(task, item, candidate, render) for item in (items[0], items[-1])]
    template = task.template if isinstance(task, TextTask) else None
    calls = task.calls_per_rollout
    if first.prompt is None:
        opening = first.messages[:-1]
        if opening != second.messages[:-1] or first.messages[-1].role != "user":
            raise _not_one_question(task)
        return Asking(opening, "", "", False, template, first, calls)
    question = task.ask(items[0]) if isinstance(task, TextTask) else ""
    before, found, after = first.prompt[first.shared :].partition(question)
    if not question or not found:
        raise _not_one_question(task)
    return Asking((), first.prompt[: first.shared] + before, after, True, template, first, calls)


def python_file(how: Asking, made: Origin, label: Label, models: Mapping[str, Any], brief: str = "") -> dict[str, str]:
    """The file, by its name. `models` is what the story says of the models."""
    name = checked_name(label.name, made.task).replace("-", "_")
    target: Mapping[str, Any] = models["target"]
    url = str(target.get("base_url") or "")
    settings = _settings(how.request, target, models.get("temperature"), own=urlsplit(url).hostname == _OWN_HOST)
    pieces = [
        _docstring(how, made, label.description or brief, f"{name}.py"),
        _constants(str(target.get("model") or ""), url, settings, target.get("extra") or {}),
        _told(how),
        _functions(how, bool(target.get("extra"))),
    ]
    return {f"{name}.py": "\n".join(pieces)}


async def _first_request(task: Task, item: Item, candidate: Candidate, render: str) -> Request:
    with tempfile.TemporaryDirectory(prefix="sharpen-") as scratch:
        try:
            await task.rollout(item, candidate, _Probe(render, Path(scratch)))
        except _Asked as asked:
            return asked.request
    raise UsageError(f"the task {task.name!r} ended an attempt without asking the model; use --as skill or prompt")


def _not_one_question(task: Task) -> UsageError:
    return UsageError(
        f"the task {task.name!r} does not ask one question after a beginning that is always the same; "
        "use --as skill or prompt"
    )


def _settings(request: Request, target: Mapping[str, Any], override: float | None, *, own: bool) -> dict[str, Json]:
    """The settings of a call, as the target of the training was given them."""
    chosen = (target.get("temperature"), override, request.temperature)
    found: dict[str, Json] = {"max_completion_tokens" if own else "max_tokens": request.max_tokens}
    if own and str(target.get("model")).startswith(_REASONING):
        return found
    found["temperature"] = next(value for value in chosen if value is not None)
    return {**found, "stop": list(request.stop)} if request.stop else found


def _docstring(how: Asking, made: Origin, description: str, file: str) -> str:
    facts = [f"{topic}: {words}" for topic, words in made.facts().items()]
    given = '{"field": "..."}' if how.template else "the question"
    lines = [
        description or f"Asks a model as it was asked in training for the task {made.task}.",
        "",
        "Where it came from:",
        *(f"  {fact}" for fact in facts),
        "",
        f"Run it: OPENAI_API_KEY=... OPENAI_MODEL=... python {file} '{given}'",
        "OPENAI_BASE_URL names another server; from Python, call answer(...).",
    ]
    if how.calls > 1:
        lines.append(f"In training an attempt took up to {how.calls} calls; what is here is the first of them.")
    inside = "\n".join(lines).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    modules = ["json", "os", "sys"] if how.template else ["os", "sys"]
    imports = "\n".join(f"import {module}" for module in modules)
    return f'"""{inside}\n"""\n\n{imports}\n\nfrom openai import OpenAI\n'


def _constants(model: str, url: str, settings: Mapping[str, Json], extra: Mapping[str, Json]) -> str:
    address = "" if not url or urlsplit(url).hostname == _OWN_HOST else f", {_literal(url)}"
    lines = [
        f'MODEL = os.environ.get("OPENAI_MODEL"{f", {_literal(model)}" if model else ""})',
        f'BASE_URL = os.environ.get("OPENAI_BASE_URL"{address})',
        f"SETTINGS = {_literal(settings)}",
    ]
    if extra:
        lines.append(f"EXTRA = {_literal(extra)}")
    return "\n".join(lines) + "\n"


def _told(how: Asking) -> str:
    """What the model is told around the question, as constants."""
    lines = ["# What the model is told around the question, exactly as in training."]
    if how.plain:
        lines += [f"BEFORE = {_text(how.before, '')}", f"AFTER = {_text(how.after, '')}"]
    else:
        lines.append("OPENING = [")
        for message in how.opening:
            lines.append(f'    {{"role": {_literal(message.role)}, "content": {_text(message.content, "    ")}}},')
        lines.append("]")
    if how.template is not None:
        lines += ["# How the fields of an input become the question.", f"TEMPLATE = {_text(how.template, '')}"]
    return "\n".join(lines) + "\n"


def _functions(how: Asking, extra: bool) -> str:
    parameters, question = ("**fields", "TEMPLATE.format_map(fields)") if how.template else ("text", "text")
    built = f"BEFORE + {question} + AFTER" if how.plain else f'[*OPENING, {{"role": "user", "content": {question}}}]'
    kind, call = ("prompt", "completions") if how.plain else ("messages", "chat.completions")
    said = "reply.choices[0].text" if how.plain else "(reply.choices[0].message.content or '')"
    more = ", extra_body=EXTRA" if extra else ""
    return f'''
def {kind}({parameters}):
    """What is sent for one input."""
    return {built}


def answer({parameters}):
    """The model's answer to one input."""
    client = OpenAI(base_url=BASE_URL, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    asked = {kind}({parameters})
    reply = client.{call}.create(model=MODEL, {kind}=asked, **SETTINGS{more})
    return {said.replace("'", '"')}.strip()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not MODEL:
        sys.exit("usage: OPENAI_MODEL=... python " + sys.argv[0] + " INPUT")
    print(answer({"**json.loads(sys.argv[1])" if how.template else "sys.argv[1]"}))
'''


def _literal(value: Json) -> str:
    """A value as Python. JSON's texts and numbers are Python's too; its three words are not."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(key))}: {_literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)


def _text(text: str, indent: str) -> str:
    """A text as one literal per line, so that it can be read and changed."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return _literal(text)
    inner = f"\n{indent}    "
    return "(" + "".join(inner + _literal(line) for line in lines) + f"\n{indent})"
