"""Programs that try to pass their tests without doing what is asked. Not one of them passes a test that it should not.

The tests of a program are in another process than the program; what can be tried is to be compared as something else, to
change what tests mean, to end or report in their place, and to find out what they expect. The honest part of each program is
wrong for every test but the first, so that passing more is forged.
"""

from __future__ import annotations

import asyncio
import textwrap

import pytest

from sharpen.sandbox import Limits, Mode
from sharpen.tasks.metrics import Score
from sharpen.tasks.qa.testing_programs import Checks, check_program

SOLUTION = "def twice(x):\n    return 2 * x\n"
TESTS = (
    "assert twice(0) == 0",
    "assert twice(21) == 42",
    "assert abs(twice(1.5) - 3.0) < 1e-6",
    "assert twice('ab') == 'abab' and sorted(twice([1])) == [1, 1] and len(twice((1,))) == 2",
    "x = [3, 1]\nassert twice(x) == x + x and isinstance(twice(x), list)",
    "check(twice)",
)
SETUP = """
def check(f):
    assert f(5) == 10
    try:
        f(None)
    except TypeError:
        return
    assert False
"""
CHECKS = Checks("", SETUP, TESTS, "", SOLUTION)


def judged(program: str, checks: Checks = CHECKS) -> Score:
    return asyncio.run(
        check_program(program, checks, Mode.BUBBLEWRAP, Limits(seconds=20.0, cpu_seconds=5, memory_mb=512))
    )


def returning(value: str, before: str = "") -> str:
    return f"{textwrap.dedent(before)}\ndef twice(x):\n    return 0 if x == 0 and type(x) is int else {value}\n"


def trying(before: str) -> str:
    """A program that does something when it is loaded, and is wrong then."""
    return returning("0", before)


EQUAL = """
class Equal{base}:
    def __init__(self, *_): pass
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __sub__(self, other): return self
    __add__ = __radd__ = __rsub__ = __mul__ = __sub__
    def __abs__(self): return self
    def __float__(self): return 0.0
    def __len__(self): return 2
    def __iter__(self): return iter((1, 1))
    def __hash__(self): return 1
    def __getattr__(self, name): return lambda *rest: True
"""
FORGING = {
    "an object that equals everything": returning("Equal()", EQUAL.format(base="")),
    "a whole number that equals everything": returning("Equal()", EQUAL.format(base="(int)")),
    "a float that is near everything": returning("Equal()", EQUAL.format(base="(float)")),
    "a text that equals everything": returning("Equal()", EQUAL.format(base="(str)")),
    "a list that equals everything": returning("Equal()", EQUAL.format(base="(list)")),
    "a tuple of things that equal everything": returning("[Equal()] * 2", EQUAL.format(base="")),
    "a dict that equals everything": returning("Equal()", EQUAL.format(base="(dict)")),
    "a class that pretends to be a list": returning("Equal()", EQUAL.format(base="") + "    __class__ = list\n"),
    "builtins of its own": trying("abs = len = sorted = isinstance = lambda *_: 0"),
    "a check of its own": trying("def check(f): pass"),
    "patched builtins": trying(
        """
        import builtins
        for name in ("abs", "len", "sorted", "isinstance"):
            setattr(builtins, name, lambda *_: 0)
        builtins.AssertionError = ValueError
        builtins.exec = builtins.compile = lambda *_: None
        """
    ),
    "ending well when it is loaded": trying("raise SystemExit(0)"),
    "ending well at once when it is loaded": trying("import os\nos._exit(0)"),
    "ending well when it is called": returning("__import__('os')._exit(0)"),
    "ending well at its end": trying("import atexit, os\natexit.register(os._exit, 0)"),
    "printing verdicts": trying("print('\\n'.join(f'{n} passed' for n in range(9)), flush=True)"),
    "reporting for the tests": trying(
        """
        import json, os
        for number in range(64):
            try:
                os.write(number, json.dumps([0, {"verdicts": [None] * 6, "value": True}]).encode() + b"\\n")
            except OSError:
                pass
        """
    ),
    "answering the tests' questions with verdicts": trying(
        """
        import json, os
        old = json.JSONEncoder.encode
        json.JSONEncoder.encode = lambda self, value: old(self, [value[0], {"verdicts": [None] * 6, "passed": True}])
        """
    ),
    "forged values": trying(
        """
        import json
        old = json.JSONEncoder.encode
        json.JSONEncoder.encode = lambda self, value: old(self, [value[0], {"value": {"kept": [{"x": 1}, None]}}])
        """
    ),
    "a value that can't be decoded": trying(
        """
        import json
        old = json.JSONEncoder.encode
        json.JSONEncoder.encode = lambda self, value: old(self, [value[0], {"value": {"set": [[1]], "tuple": 3}}])
        """
    ),
    "exceptions of every kind": returning("raised()", "def raised(): raise StopIteration(True)"),
    "an exception that is a warning": returning("raised()", "def raised(): raise DeprecationWarning"),
    "an exception that pretends": returning(
        "raised()", "class AssertionError(TypeError): pass\ndef raised(): raise AssertionError()"
    ),
    "emptying what it is given": returning("x.clear() or [] if isinstance(x, list) else 0"),
    "looking for what is expected": returning(
        "found() or 0",
        """
        import gc, sys
        def found():
            for thing in gc.get_objects():
                if isinstance(thing, str) and "assert " + "twice" in thing:
                    return 42
            frame = sys._getframe()
            while frame:
                if any("assert " + "twice" in str(value) for value in list(frame.f_locals.values())):
                    return 42
                frame = frame.f_back
        """,
    ),
    "reading its input again": returning(
        "found() or 0",
        """
        import os
        def found():
            for number in range(64):
                try:
                    if b"assert" in os.pread(number, 1 << 20, 0):
                        return 42
                except OSError:
                    pass
        """,
    ),
    "searching for the tests' files": returning(
        "found() or 0",
        """
        import glob
        def found():
            for path in glob.glob("/work/**", recursive=True) + glob.glob("/tmp/**") + glob.glob("/proc/*/cmdline"):
                try:
                    if "assert " + "twice(21)" in open(path).read():
                        return 42
                except OSError:
                    pass
        """,
    ),
    "an answer without end": returning("[x] * 10 ** 6"),
    "an object that iterates as it is wanted": returning("iter([1, 1])"),
    "killing the tests": trying(
        "import os\nfor number in range(1, 99):\n    try:\n        os.kill(number, 9)\n    except OSError:\n        pass"
    ),
}
QUICK = ("an object that equals everything", "a whole number that equals everything", "builtins of its own",
         "ending well when it is called", "reporting for the tests", "emptying what it is given")  # fmt: skip


def test_the_solution_passes_and_the_honest_part_passes_one_test() -> None:
    assert judged(SOLUTION) == Score(1.0, 1.0)
    wrong = judged(returning("0"))
    assert (wrong.hard, wrong.soft) == (0.0, pytest.approx(1 / 6))


def passes_no_more(name: str) -> None:
    score = judged(FORGING[name])
    assert score.hard == 0.0 and score.soft <= 1 / 6 + 1e-9, score


@pytest.mark.parametrize("name", QUICK)
def test_a_forged_program_passes_no_more_than_it_should(name: str) -> None:
    passes_no_more(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORGING if name not in QUICK])
def test_no_forged_program_passes_more_than_it_should(name: str) -> None:
    passes_no_more(name)


NODE = """
class Node:
    def __init__(self, value): self.value, self.left, self.right = value, None, None
def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
"""
HELPED = '''import math

def poly(xs, x):
    """Evaluate."""
    return sum(c * math.pow(x, i) for i, c in enumerate(xs))


def find_zero(xs):
    """Find a zero of poly."""
'''
HELPED_CHECKS = Checks(
    HELPED,
    "def check(f):\n    assert abs(poly([-1, 1], f([-1, 1]))) < 1e-4\n",
    ("check(find_zero)",),
    "find_zero",
    HELPED + "    return 1.0\n",
)
RETURNED = """
from collections import Counter, namedtuple
from decimal import Decimal
from fractions import Fraction
Pair = namedtuple("Pair", "a b")
VALUES = dict(
    counter=Counter("aab"), pair=Pair(1, 2), set={1, 2}, bytes=b"x", complex=1j, range=range(3), keys={1: (2,)},
    big=10**6000, none=None, lazy=(n for n in range(3)), fraction=Fraction(1, 3), decimal=Decimal("0.10"),
)
def give(name): return VALUES[name]
"""
EXPECTED = """
from fractions import Fraction
from decimal import Decimal
EXPECTED = dict(
    counter={"a": 2, "b": 1}, pair=(1, 2), set={2, 1}, bytes=b"x", complex=1j, range=range(3), keys={1: (2,)},
    big=10**6000, fraction=Fraction(1, 3), decimal=Decimal("0.1"),
)
"""
FAILING = """
try:
    fail(1)
except ValueError as error:
    assert "no" in str(error)
else:
    assert False
"""


def checks(*tests: str, setup: str = "", solution: str = "") -> Checks:
    return Checks("", setup, tests, "", solution)


PUBLISHED = {
    "a class that tests make objects of": (
        NODE,
        checks(
            "assert depth(root) == 2",
            "assert root.left.value == 2",
            setup="root = Node(1) \r\nroot.left = Node(2) \r\n",
            solution=NODE,
        ),
    ),
    "a function with the name of a builtin": (
        "def sum(a, b): return a * b",
        checks("assert sum(2, 3) == 6", solution="def sum(a, b): ..."),
    ),
    "a helper in the question": (HELPED + "    return 1.0\n", HELPED_CHECKS),
    "an import only the tests have": (
        "def low(x): return math.floor(x)",
        checks("assert low(1.5) == 1", setup="import math", solution="def low(x): ..."),
    ),
    "an import only the solution has": (
        "def half(x): return x / 2",
        checks("assert math.isclose(half(3), 1.5)", solution="import math\ndef half(x): ..."),
    ),
    "a solution that was not published": ("def low(x): return x - 1", checks("assert low(1.5) == 0.5")),
    "an exception that is expected": (
        "class Odd(ValueError): pass\ndef fail(x): raise Odd('no')",
        checks(FAILING, solution="def fail(x): ..."),
    ),
    "values of many kinds": (
        RETURNED,
        checks(
            "for name, value in EXPECTED.items(): assert give(name) == value, name",
            "assert give('none') is None",
            "assert list(give('lazy')) == [0, 1, 2]",
            setup=EXPECTED,
            solution="def give(name): ...",
        ),
    ),
    "state between tests": (
        "n = 0\ndef count():\n    global n\n    n += 1\n    return n",
        checks("assert count() == 1", "assert count() == 2", solution="def count(): ..."),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_published_tests_do_works_across_two_processes(name: str) -> None:
    assert judged(*PUBLISHED[name]) == Score(1.0, 1.0)


def test_a_helper_of_the_question_is_not_the_programs_to_redefine() -> None:
    forged = "def poly(xs, x): return 0\ndef abs(x): return 0\ndef find_zero(xs): return 77\n"
    assert judged(forged, HELPED_CHECKS).hard == 0.0


def test_a_test_that_takes_any_exception_does_not_take_a_program_that_ended() -> None:
    any_exception = checks("try:\n    f(1)\nexcept BaseException:\n    pass", solution="def f(x): ...")
    assert judged("def f(x): raise KeyError(x)", any_exception).hard == 1.0
    score = judged("import os\ndef f(x): os._exit(0)", any_exception)
    assert score.hard == 0.0 and "ended too early" in score.feedback


def test_a_call_that_does_not_return_ends_the_program_and_not_the_tests() -> None:
    limits = Limits(seconds=20.0, cpu_seconds=5, memory_mb=512, call_seconds=0.5)
    sleeping = checks("assert f(0) == 0", "assert f(1) == 1", "assert f(0) == 0", solution="def f(x): ...")
    program = "import time\ndef f(x):\n    time.sleep(60 * x)\n    return x\n"
    score = asyncio.run(check_program(program, sleeping, Mode.BUBBLEWRAP, limits))
    assert score.soft == pytest.approx(1 / 3) and "too long" in score.feedback
