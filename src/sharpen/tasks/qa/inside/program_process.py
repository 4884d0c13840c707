"""The program's side: load it, and do with its functions and objects what its tests ask for. No test is in this process.

This file is sent into the program's sandbox as `main.py`, beside `plain_values.py` and `program.py` (the program). A
question is an operation with its operands, on a line of standard input; the answer is a plain value, the name of an
exception, or the number of an object that stays here. Whatever a program does to this process, it can only answer.
"""

from __future__ import annotations

import builtins
import json
import operator
import os
from contextlib import suppress

from plain_values import decode, encode  # type: ignore[import-not-found]

TYPE_CHECKING = False  # importing `typing` takes as long as half of starting Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, places, names: function(*places, **names),
    "get": getattr,
    "set": setattr,
    "item": operator.getitem,
    "put": operator.setitem,
    "length": len,
    "truth": bool,
    "iterate": iter,
    "next": next,
    "text": str,
}


class Program:
    """A loaded program: its names, and those of its objects that tests hold on to."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {"__name__": "program"}
        self.objects: list[Any] = []

    def load(self, imports: str) -> bool:
        """Run the program, and then the imports of its tests, which published programs may rest on."""
        with open("program.py", encoding="utf-8", errors="surrogatepass") as file:
            exec(compile(file.read(), "program.py", "exec", dont_inherit=True), self.space)
        with suppress(Exception):
            exec(compile(imports, "imports.py", "exec", dont_inherit=True), self.space)
        return True

    def keep(self, value: Any) -> Any:
        self.objects.append(value)
        return {"kept": [len(self.objects) - 1, type(value).__name__]}

    def lookup(self, key: Any) -> Any:
        if isinstance(key, int):
            return self.objects[key]
        if key not in self.space:
            raise NameError(f"name {key!r} is not defined")
        return self.space[key]

    def do(self, operation: str, operands: list[Any]) -> Any:
        return encode(_OPERATIONS[operation](*(decode(operand, self.lookup) for operand in operands)), self.keep)


def failure(error: BaseException, *, with_line: bool) -> list[str]:
    """An exception by the name of the nearest one that Python has itself, and what it says."""
    name = next(kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)
    try:
        text = str(error)
    except BaseException:
        text = ""
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "program.py":
            line = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    return [name, type(error).__name__, f"{text}{line if with_line else ''}"[:300]]


def main() -> None:
    questions, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    write, leave, dump, parse = os.write, os._exit, json.JSONEncoder().encode, json.JSONDecoder().decode
    program = Program()
    for line in questions:
        number, (operation, operands) = parse(line.decode())
        loading = operation == "load"
        try:
            said = dump([number, {"value": program.load(*operands) if loading else program.do(operation, operands)}])
        except BaseException as error:  # SystemExit too: a program that ends itself has not answered
            said = dump([number, {"raised": failure(error, with_line=loading)}])
        data = f"{said}\n".encode()
        while data:
            data = data[write(answers, data) :]
    leave(0)


if __name__ == "__main__":
    main()
