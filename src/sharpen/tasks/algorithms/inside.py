"""What runs inside the sandbox: load the candidate's program, let it play one instance, and give back its answer.

This file is sent into the sandbox as `main.py`, beside `play.py` (how the program is used, from the task's own file)
and `program.py` (the candidate). It needs the standard library alone. What the program prints goes to standard error;
the one line on standard output begins with a word that was drawn for this run. The answer is an answer and no more:
whether it is valid and what it is worth is decided outside, by `base.py`.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any


@cache
def own(name: str) -> ModuleType:
    """A module for the program alone, without what that module imported for itself. `play` uses the same modules, and
    would hand the whole instance to a function that a program had put in the place of another."""
    module = ModuleType(name)
    for word, value in vars(import_module(name)).items():
        if not word.startswith("_") and not isinstance(value, ModuleType):
            vars(module)[word] = value
    return module


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """The answer of the program, or what went wrong and in which line of it."""
    spaces = []
    for name in ("play.py", "program.py"):
        with open(name, encoding="utf-8") as file:
            space: dict[str, Any] = {"__name__": name.removesuffix(".py")}
            code = compile(file.read(), name, "exec", dont_inherit=True)
        spaces.append((code, space))
    (play, ours), (program, theirs) = spaces
    exec(play, ours)
    theirs["__builtins__"] = {**vars(builtins), "__import__": lambda name, *_: own(name)}
    random.seed(0)  # not by the instance: who knows its seed could make it again and see what is to come
    try:
        exec(program, theirs)
        return {"answer": ours["play"](theirs[given["entry"]], given["instance"])}
    except BaseException as error:  # SystemExit too: a program that ends itself has not answered
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "program.py":
                line = trace.tb_lineno
            trace = trace.tb_next
        return {"error": f"{type(error).__name__}: {error}"[:300], "line": line}


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)
    write, leave = os.write, os._exit
    encode = json.JSONEncoder(default=repr).encode
    given = json.loads(sys.stdin.buffer.read())
    word = given.pop("word")
    try:
        said = encode(answer(given))
    except (TypeError, ValueError, RecursionError) as error:
        said = encode({"error": f"an answer that can't be written down: {error}"[:300], "line": None})
    line = f"{word} {said}\n".encode()
    while line:
        line = line[write(out, line) :]
    leave(0)


if __name__ == "__main__":
    main()
