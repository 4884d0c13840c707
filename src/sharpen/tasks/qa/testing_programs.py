"""Running a program against its tests, each in a sandbox of its own; our process carries words between the two.

The tests' process holds the tests, the expected values and the verdict, the program's process holds the program. All that
crosses is which function is called with which plain arguments, and which plain value it returned or which exception it
raised. So a program can't read its tests, change how they are run or compared, or report for them: it can only answer calls.
What its tests may call is read off the data, never off the program, so that a program that defines `abs` or `sorted`
does not change what its tests mean by them.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sharpen.core.digest import Json
from sharpen.sandbox import Conversation, Limits, Mode, NoAnswer, Order, open_conversations
from sharpen.tasks.metrics import Score

_LONGER = 2.0
"""How much longer the tests' process may take than the program's, for which it waits."""
_ENDINGS = {
    "time": "it takes too long",
    "cpu": "it takes too long",
    "memory": "it takes too much memory",
    "output": "it answers too much",
}
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Checks:
    """What a program is tested with. `entry` is the function that is asked for, empty where only the tests name it."""

    before: str
    """Code that the program was asked to continue; what it defines beside `entry` is there for the tests."""
    setup: str
    tests: tuple[str, ...]
    entry: str = ""
    solution: str = ""

    @staticmethod
    def load(data: Mapping[str, Json]) -> Checks:
        return Checks(
            str(data["before"]), str(data["setup"]), tuple(map(str, data["tests"])), str(data["entry"]),
            str(data["solution"]),
        )  # fmt: skip


async def check_program(program: str, checks: Checks, mode: Mode, limits: Limits) -> Score:
    """The score of a program: `hard` is all tests passed, `soft` the share that did."""
    longer = Limits(
        seconds=_LONGER * limits.seconds, call_seconds=_LONGER * limits.seconds, cpu_seconds=limits.cpu_seconds,
        memory_mb=limits.memory_mb, output_kb=limits.output_kb,
    )  # fmt: skip
    shared = {"plain_values.py": _inside("plain_values")}
    command = ("python", "main.py")
    tested = Order(
        {**shared, "main.py": _inside("program_process"), "program.py": program}, command, b"", limits, mode, ()
    )
    testing = Order({**shared, "main.py": _inside("tests_process")}, command, b"", longer, mode, ())
    try:
        async with open_conversations(tested, testing) as (there, tests):
            loaded = await _ask(there, ["load", [imports_in(checks.setup)]])
            if "value" in loaded:
                return _score(await _verdicts(there, tests, order_for(checks)), len(checks.tests))
            broken = loaded["ended"] if "ended" in loaded else ": ".join(loaded["raised"][1:])
            return Score(0.0, 0.0, f"the program does not run: {broken}")
    except NoAnswer as error:
        return Score(0.0, 0.0, f"the tests did not come to an end: {error}")


async def _verdicts(there: Conversation, tests: Conversation, order: Json) -> Mapping[str, Any]:
    """Let the tests run, and do in the program's process what they ask for."""
    reply = await tests.ask(order)
    result: Mapping[str, Any] = {}
    while isinstance(reply, dict) and "do" in reply:
        if "ended" not in result:
            result = await _ask(there, reply["do"])
        reply = await tests.ask(result)
    return reply if isinstance(reply, dict) else {}


async def _ask(there: Conversation, question: Json) -> Mapping[str, Any]:
    """A result as tests take it: a value, an exception, or that there is no program any more."""
    try:
        reply = await there.ask(question)
    except NoAnswer as error:
        return {
            "ended": f"the program did not get through its tests: {_ENDINGS.get(error.reason, 'it ended too early')}"
        }
    if isinstance(reply, dict) and "value" in reply:
        return {"value": reply["value"]}
    raised = reply.get("raised") if isinstance(reply, dict) else None
    if isinstance(raised, list) and len(raised) == 3 and all(isinstance(word, str) for word in raised):
        return {"raised": raised}
    return {"ended": "the program did not get through its tests: what it answered can't be read"}


def _score(reply: Mapping[str, Any], count: int) -> Score:
    if "broken" in reply:
        return Score(0.0, 0.0, f"the tests can't be set up: {reply['broken']}")
    wrong: list[str | None] = reply.get("verdicts", [])
    if len(wrong) != count:
        return Score(0.0, 0.0, "the tests did not say what they came to")
    passed = wrong.count(None)
    if passed == count:
        return Score(1.0, 1.0)
    first = next(text for text in wrong if text is not None)
    told = first if first.startswith("the program ") else f"the first that fails: {first}"
    return Score(0.0, passed / count, f"{passed} of {count} tests pass; {told}")


@cache
def order_for(checks: Checks) -> Json:
    """What the tests' process is told: the tests, and which of the names in them are the program's."""
    used = set().union(*map(_names_used, (checks.setup, *checks.tests)))
    defined = _definitions(checks.solution)
    names = [checks.entry] if checks.entry else sorted(used & set(defined))
    guessed = used - _BUILTINS
    classes = [name for name in (*names, *guessed) if defined.get(name, name[:1].isupper())]
    return {
        "imports": _imports(checks.solution),
        "names": names, "guessed": sorted(guessed), "classes": sorted(classes), "before": _complete(checks.before),
        "setup": checks.setup, "tests": list(checks.tests),
    }  # fmt: skip


def imports_in(setup: str) -> str:
    """The imports of a setup, which the published checkers let a program use too."""
    return "\n".join(_imports(setup))


def _imports(source: str) -> list[str]:
    return [ast.unparse(node) for node in _body(source) if isinstance(node, ast.Import | ast.ImportFrom)]


def _definitions(source: str) -> dict[str, bool]:
    """What a source defines on its first level, and whether it is a class."""
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: isinstance(node, ast.ClassDef) for node in _body(source) if isinstance(node, named)}


def _names_used(source: str) -> set[str]:
    nodes: Iterable[ast.AST] = (part for node in _body(source) for part in ast.walk(node))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _complete(before: str) -> str:
    """The beginning of a program as one that stands by itself."""
    return next((text for text in (before, f"{before}\n    pass\n") if _body(text)), "")


def _body(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return []


@cache
def _inside(name: str) -> str:
    return (Path(__file__).with_name("inside") / f"{name}.py").read_text(encoding="utf-8")


def harness_source() -> str:
    """All that is sent into the sandboxes beside the program: part of what a score depends on."""
    return "\n".join(map(_inside, ("plain_values", "program_process", "tests_process")))
