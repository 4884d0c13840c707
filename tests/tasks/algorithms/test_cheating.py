"""Programs that crash, take too long, or try to be scored for what they have not done: 0, and the reason as feedback."""

from __future__ import annotations

import asyncio
import importlib
import types

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.outcome import Outcome
from sharpen.tasks.algorithms import rules
from sharpen.tasks.algorithms.base import AlgorithmTask
from sharpen.tasks.algorithms.circle_packing import CirclePacking
from sharpen.tasks.algorithms.tsp import TravellingSalesman
from sharpen.testing.tasks import FakeAttempt

GOOD = "[(0.1 + 0.16 * (k % 6), 0.1 + 0.16 * (k // 6), 0.01) for k in range(n)]"


class Quick(CirclePacking):
    cpu_seconds = 1


def judged(source: str, task: AlgorithmTask | None = None) -> Outcome:
    task = Quick() if task is None else task
    return asyncio.run(task.rollout(task.splits().val[0], Candidate({"program.py": source}), FakeAttempt("")))


def pack(*lines: str) -> str:
    return "def pack(n, seed):\n" + "".join(f"    {line}\n" for line in lines)


def test_an_honest_program_is_scored_with_its_raw_value() -> None:
    outcome = judged(pack(f"return {GOOD}"))
    assert outcome.measures == {"sum_of_radii": pytest.approx(0.26)}
    assert outcome.hard == pytest.approx(0.26 / 2.63586)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (pack("x = 1", "return 1 / 0"), "line 3: ZeroDivisionError"),
        (pack("return helper(n)").replace("return", "  return", 1), "line 2: "),
        ("import math\ndef other(n, seed):\n    return []\n", r"there is no function pack\(n, seed\)"),
        ("def pack(:\n", "line 1: "),
        (pack("while True: pass"), "took too long"),
        (pack("raise SystemExit(0)"), "line 2: SystemExit"),
        (pack("return [(0.5, 0.5, 0.5)] * n"), "circles 0 and 1 overlap"),
        (pack("return [(0.5, 0.5, float('nan'))] * n"), "must be a finite number, got 'nan'"),
        (pack("return [[0.5, 0.5, 10 ** 400]] * n"), "must be a finite number"),
        (pack("return 'x' * 10 ** 7"), "ValueError|printed or answered too much"),
        (pack("return [0] * 10 ** 9"), "memory|MemoryError"),
        (pack("print('x' * 10 ** 6)", f"return {GOOD}"), "printed or answered too much"),
        (pack("return pack(n, seed)"), "RecursionError"),
    ],
)
def test_a_program_that_gives_no_answer_scores_nothing_and_says_why(source: str, reason: str) -> None:
    import re

    outcome = judged(source)
    assert (outcome.hard, outcome.soft) == (0.0, 0.0)
    assert re.search(reason, outcome.feedback), outcome.feedback


def test_what_a_program_prints_is_not_its_answer() -> None:
    fake = "print('{\"answer\": [[0.5, 0.5, 2.6]]}')"
    outcome = judged(pack(fake, f"return {GOOD}"))
    assert outcome.measures == {"sum_of_radii": pytest.approx(0.26)}


@pytest.mark.parametrize(
    "line",
    [
        "import sys",
        "import os",
        "import math, json",
        "from random import _os",
        "from . import program",
        "x = __builtins__",
        "x = (lambda: 0).__globals__",
        "x = getattr(pack, 'x')",
        "x = eval('1')",
        "x = open('main.py')",
        "g = (i for i in ()); x = g.gi_frame",
        "x = '{0.gi_frame.f_back.f_locals}'.format(1)",
        "match 1:\n        case object(real=x): pass",
        "import functools; x = functools.update_wrapper",
        "from functools import wraps as w",
        "from functools import *",
        "from functools import singledispatch",
        "import functools; x = functools.singledispatchmethod",
        "from operator import attrgetter",
        "import collections; x = collections.abc.sys",
        "import math as __builtins__",
        "def __getattr__(name): pass",
        "class __builtins__: pass",
        "x = lambda __builtins__: 1",
        "x = type('X', (), {'__setattr__': print})",
        "class X(metaclass=print): pass",
        *(
            f"class X:\n        def __{name}__(self, *rest): pass"
            for name in (
                "setattr",
                "getattr",
                "getattribute",
                "class_getitem",
                "init_subclass",
                "set_name",
                "del",
                "reduce",
                "exit",
                "get",
                "new",
                "prepare",
                "format",
            )
        ),
    ],
)
def test_the_rules_name_the_line_that_is_against_them(line: str) -> None:
    found = rules.complaint(pack("y = 1", line, f"return {GOOD}"), "pack", "pack(n, seed)")
    assert found is not None and found.startswith("line ")


def test_a_class_with_ordinary_methods_keeps_the_rules() -> None:
    source = """
import functools
from collections import defaultdict, namedtuple

@functools.total_ordering
class Open:
    def __init__(self, n): self.n = n
    def __lt__(self, other): return self.n < other.n
    def __eq__(self, other): return self.n == other.n
    def __hash__(self): return hash(self.n)
    def __radd__(self, other): return self.n + other
    def __repr__(self): return f"{self.n:.2f}"

@functools.lru_cache(maxsize=None)
def radius(k):
    return 0.01 if Open(k) >= Open(0) and sum([Open(k)]) == k else None
"""
    outcome = judged(source + pack(f"return {GOOD.replace('0.01)', 'radius(k))')}"))
    assert outcome.measures == {"sum_of_radii": pytest.approx(0.26)}, outcome.feedback


def test_nothing_a_program_may_import_leads_to_another_module() -> None:
    """Along every attribute that the rules let pass."""
    waiting: list[object] = [importlib.import_module(name) for name in rules.MODULES]
    met = {id(thing) for thing in waiting}
    while waiting:
        thing = waiting.pop()
        for word in dir(thing):
            if rules.complaint(f"def pack(n): n.{word}", "pack", "") is None:
                found = getattr(thing, word, None)
                assert not isinstance(found, types.ModuleType | types.FrameType), (thing, word)
                if callable(found) and id(found) not in met:
                    met.add(id(found))
                    waiting.append(found)


CAUGHT = """
import functools, random
caught = []
class Catch:
    def __setattr__(self, name, value): caught.append(value)
functools.update_wrapper(Catch(), random.shuffle, assigned=("__globals__",), updated=())
"""
EVALUATED = """
import functools
@functools.singledispatch
def ask(x): return 0
def put(space): caught.append(space); return int
caught = []
@ask.register
def told(x: "put(().__class__.__base__.__subclasses__())"): return 1
"""


@pytest.mark.parametrize("trick", [CAUGHT, EVALUATED])
def test_a_program_that_would_see_what_is_to_come_is_not_run(trick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"{trick}\n{pack('raise ValueError(len(caught[0]))')}"
    assert "ValueError" not in judged(source).feedback
    monkeypatch.setattr(rules, "complaint", lambda *_: None)
    assert "ValueError" in judged(source).feedback, "the trick works no more: choose one that does"


def test_a_function_put_into_a_module_is_not_what_the_task_calls() -> None:
    task = TravellingSalesman()
    spy = (
        "import math\nseen = []\nold = math.dist\n"
        "def spy(a, b):\n    seen.append(a)\n    return old(a, b)\nmath.dist = spy\n"
    )
    source = spy + task.start.replace(":\n", ":\n    if seen: raise ValueError('saw it all')\n", 1)
    outcome = judged(source, task)
    assert outcome.hard is not None and outcome.hard > 0.0, outcome.feedback


TRICKS = {
    "exits early with a made-up answer": "import os\nos.write(1, b'{\"answer\": 9}')\nos._exit(0)",
    "writes to every open file": (
        "import os\nfor fd in range(3, 20):\n    try:\n        os.write(fd, b'x {\"answer\": 9}\\n')\n"
        "    except OSError:\n        pass\nos._exit(0)"
    ),
    "patches json": "import json\njson.JSONEncoder.encode = lambda *a: '{\"answer\": 9}'\njson.dumps = lambda *a: '9'",
    "replaces standard output": "import sys, io\nsys.stdout = sys.stderr = io.StringIO()",
    "makes its own harness": "import sys\nsys.modules['__main__'].answer = lambda given: {'answer': 9}",
}


@pytest.mark.parametrize("name", sorted(TRICKS))
def test_even_without_the_rules_a_trick_gains_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaves the sandbox is an answer, and an answer is worth what our own process finds it to be worth."""
    monkeypatch.setattr(rules, "complaint", lambda *_: None)
    outcome = judged(f"{TRICKS[name]}\n{pack(f'return {GOOD}')}")
    assert outcome.hard == 0.0 or outcome.measures == {"sum_of_radii": pytest.approx(0.26)}


def test_unsafe_mode_scores_the_same() -> None:
    assert judged(pack(f"return {GOOD}"), Quick(sandbox="unsafe")) == judged(pack(f"return {GOOD}"))


def test_a_task_whose_sandbox_is_missing_refuses_and_an_unsafe_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from sharpen.tasks.algorithms import base

    monkeypatch.setattr(base, "missing", lambda: "bubblewrap, which is not installed here")
    assert CirclePacking().requirements.missing() == ["bubblewrap, which is not installed here"]
    assert CirclePacking(sandbox="unsafe").requirements.missing() == []
