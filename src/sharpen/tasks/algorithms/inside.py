"""What runs inside the sandbox: load the candidate's program, and call its function as often as we are asked to.

This file is sent into the sandbox as `main.py`, beside `program.py` (the candidate). It needs the standard library alone.
A question is a list of calls, each a list of arguments, on a line of standard input; the answer is the list of what the
function returned, on a line of standard output. What the program prints goes to standard error. Nothing that a program does
to this file or this process can gain it anything: it can only answer, and how an instance is played and what that is worth
is decided outside, by `base.py`.
"""

from __future__ import annotations

import json
import os
import random

TYPE_CHECKING = False  # importing `typing` takes as long as half of starting Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def load(entry: str) -> Callable[..., Any]:
    """The function of the program."""
    with open("program.py", encoding="utf-8") as file:
        space: dict[str, Any] = {"__name__": "program"}
        code = compile(file.read(), "program.py", "exec", dont_inherit=True)
    random.seed(0)  # alike for every instance
    exec(code, space)
    function: Callable[..., Any] = space[entry]
    return function


def plain(value: Any) -> Any:
    """What a value of the program becomes that JSON has no word for."""
    if hasattr(value, "__float__"):
        return float(value)
    return list(value) if hasattr(value, "__iter__") else repr(value)


def failure(error: BaseException) -> dict[str, Any]:
    """What went wrong, and in which line of the program."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "program.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return {"error": f"{type(error).__name__}: {error}"[:300], "line": line}


def main() -> None:
    questions, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    write, leave = os.write, os._exit
    encode, decode = json.JSONEncoder(default=plain).encode, json.JSONDecoder().decode
    function: Callable[..., Any] | None = None
    for line in questions:
        number, question = decode(line.decode())
        try:
            if function is None:
                function = load(question)
                said = encode([number, [True]])
            else:
                said = encode([number, [function(*arguments) for arguments in question]])
        except BaseException as error:  # SystemExit too: a program that ends itself has not answered
            said = encode([number, failure(error)])
        data = f"{said}\n".encode()
        while data:
            data = data[write(answers, data) :]
    leave(0)


if __name__ == "__main__":
    main()
