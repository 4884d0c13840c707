"""The tests' side: run test code against a program that is in another process, and say which tests pass.

This file is sent into the tests' sandbox as `main.py`, beside `plain_values.py`. Tests are code that comes with a data set,
so they are in a sandbox too, but not in the program's: what they compare are copies of plain values, and a name of the
program is a `Remote`, which asks our own process to have something done in the other one. A test passes when its code runs
to its end. What a function returns can be compared only where it is plain, and has no methods else: an object of the
program's own could say of itself that it is equal to anything. Objects of a class that is itself under test have methods.
"""

from __future__ import annotations

import builtins
import json
import os
from contextlib import suppress

from plain_values import decode, encode  # type: ignore[import-not-found]

TYPE_CHECKING = False  # importing `typing` takes as long as half of starting Python
if TYPE_CHECKING:
    from typing import Any, NoReturn

_KINDS = "None, numbers, texts, bytes, lists, tuples, sets and dicts"


class ProgramError(Exception):
    """An exception of the program that Python has no name for, or that would end this process."""


class Ended(BaseException):
    """There is no program any more."""


class Link:
    """The way to the program: what is asked goes out as an answer of ours, and the result comes as the next question."""

    def __init__(self) -> None:
        self._questions, self._answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        self._number = 0
        self.ended = ""

    def hear(self) -> Any:
        self._number, question = json.loads(self._questions.readline())
        return question

    def say(self, answer: Any) -> None:
        data = f"{json.dumps([self._number, answer])}\n".encode()
        while data:
            data = data[os.write(self._answers, data) :]

    def do(self, operation: str, *operands: Any, usable: bool = False) -> Any:
        """Have something done in the program's process. Objects that come back have methods where they are `usable`."""
        if not self.ended:
            self.say({"do": [operation, [encode(operand, _handed) for operand in operands]]})
            result = self.hear()
            if "value" in result:
                return decode(result["value"], lambda kept: Remote(kept[0], kept[1], usable))
            if "raised" in result:
                _raise(*result["raised"])
            self.ended = str(result["ended"])
        raise Ended(self.ended)


def _handed(value: Any) -> Any:
    """What stands for an operand that is not plain."""
    if isinstance(value, Remote):
        return {"kept": value._key}
    raise TypeError(f"tests can hand a program {_KINDS}, not a {type(value).__name__}")


def _raise(name: str, own_name: str, text: str) -> NoReturn:
    kind = getattr(builtins, str(name), None)
    if name == own_name and isinstance(kind, type) and issubclass(kind, Exception):
        try:
            raised = kind(text)
        except Exception:  # some take more than a text
            raised = ProgramError(f"{own_name}: {text}")
        raise raised
    if isinstance(kind, type) and issubclass(kind, Exception):
        raise type(str(own_name), (kind,), {"__init__": lambda self, *_: None, "__str__": lambda self: text})()
    raise ProgramError(f"{own_name}: {text}")


class Remote:
    """Something of the program: a function, a class, an object. It is never compared, and used as far as it is `usable`."""

    def __init__(self, key: str | int, kind: str, usable: bool) -> None:
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_usable", usable)

    def __call__(self, *places: Any, **names: Any) -> Any:
        return LINK.do("call", self, list(places), names, usable=self._usable)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._used("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._used("set", name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._used("item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._used("put", key, value)

    def _used(self, operation: str, *operands: Any) -> Any:
        if not self._usable:
            raise TypeError(f"a test can't use a {self._kind} of the program; what it returns must be {_KINDS}")
        return LINK.do(operation, self, *operands, usable=True)

    def __len__(self) -> int:
        return int(LINK.do("length", self))

    def __bool__(self) -> bool:
        return bool(LINK.do("truth", self))

    def __iter__(self) -> Any:
        return LINK.do("iterate", self)

    def __next__(self) -> Any:
        return LINK.do("next", self)

    def __str__(self) -> str:
        return str(LINK.do("text", self))

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"a test can't compare a {self._kind} of the program; what it returns must be {_KINDS}")

    __hash__ = None  # type: ignore[assignment]


LINK = Link()


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run every test of an order, and say of each what went wrong; None for one that passed."""
    names = {name: Remote(name, "function", name in order["classes"]) for name in (*order["guessed"], *order["names"])}
    space: dict[str, Any] = {**names, "__name__": "tests"}
    for line in order["imports"]:  # of the published solution, which tests may rest on
        with suppress(Exception):
            exec(line, space)
    try:
        exec(compile(order["before"], "before.py", "exec", dont_inherit=True), space)
        space.update({name: names[name] for name in order["names"]})
        exec(compile(order["setup"], "setup.py", "exec", dont_inherit=True), space)
    except BaseException as error:
        return {"broken": _told(error)}
    return {"verdicts": [_wrong(test, space) for test in order["tests"]]}


def _wrong(test: str, space: dict[str, Any]) -> str | None:
    try:
        exec(compile(test, "test.py", "exec", dont_inherit=True), space)
    except BaseException as error:
        return LINK.ended or _told(error)
    return LINK.ended or None  # a test that takes any exception for the right one has not seen one


def _told(error: BaseException) -> str:
    text = str(error) if isinstance(error, ProgramError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]


def main() -> None:
    LINK.say(run(LINK.hear()))
    os._exit(0)


if __name__ == "__main__":
    main()
