"""Programs that forge what leaves the sandbox, or go on after their answer: worth their honest part, or nothing.

The honest part packs 26 circles of radius 0.01. A trick may write to the pipe itself, answer what was not asked, answer with
what is no answer, or turn on the processes around it. The rules on source text are off.
"""

from __future__ import annotations

import asyncio
import textwrap

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.outcome import Outcome
from sharpen.tasks.algorithms import rules
from sharpen.tasks.algorithms.base import AlgorithmTask
from sharpen.tasks.algorithms.bin_packing import BinPacking
from sharpen.tasks.algorithms.circle_packing import CirclePacking
from sharpen.testing.tasks import FakeAttempt

HONEST = pytest.approx(0.26 / 2.63586)
GOOD = "[(0.1 + 0.16 * (k % 6), 0.1 + 0.16 * (k // 6), 0.01) for k in range(n)]"
TOOLS = """
import json, os, stat

def pipe(writing):
    import fcntl
    for number in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode) and (fcntl.fcntl(number, fcntl.F_GETFL) & 3 == 1) == writing:
                return number
        except OSError:
            pass

def say(text):
    data = text if isinstance(text, bytes) else text.encode()
    while data:
        data = data[os.write(pipe(True), data):]

GRID = [[0.1 + 0.16 * (k % 6), 0.1 + 0.16 * (k // 6), 0.08] for k in range(26)]
"""


def packing(body: str, answer: str = GOOD) -> str:
    """A program that does something before it answers."""
    lines = textwrap.indent(textwrap.dedent(body).strip() or "pass", "    ")
    return f"{TOOLS}\ndef pack(n, seed):\n{lines}\n    return {answer}\n"


def loading(body: str) -> str:
    """A program that does something when it is loaded."""
    return f"{packing('')}\n{textwrap.dedent(body)}\n"


def replacing(line: str) -> str:
    """A program that takes the conversation over and answers every question with a line."""
    return loading(f"""
        say("[0, [true]]\\n")
        for question in os.fdopen(pipe(False), "rb"):
            number = json.loads(question)[0]
            say({line})
    """)


def moved(circle: str, rest: str = "GRID[1:]") -> str:
    return packing("", f"[{circle}] + {rest}")


PROTOCOL = {
    "answers twice, better the second time": packing(f"say(json.dumps([1, [{GOOD}]]) + '\\n')", "GRID"),
    "answers before it is asked": loading("say('[0, [true]]\\n' + json.dumps([1, [GRID[:1] * 26]]) + '\\n')"),
    "answers another question": replacing("json.dumps([number + 1, [GRID]]) + '\\n'"),
    "answers question 0 again": replacing("json.dumps([0, [GRID]]) + '\\n'"),
    "answers twenty megabytes": replacing("'[1, [' + '0.5, ' * 4000000 + '1]]\\n'"),
    "answers half a line and ends": packing("say('[1, [[')\nos._exit(0)"),
    "answers with brackets without end": replacing("'[' * 100000 + '\\n'"),
    "answers bytes that are no text": replacing("b'[1, [\\xff\\xfe]]\\n'"),
    "answers with its score": replacing("json.dumps([number, [{'score': 1.0, 'value': 2.63, 'valid': True}]]) + '\\n'"),
    "answers with its outcome": replacing(
        "json.dumps([number, {'hard': 1.0, 'measures': {'sum_of_radii': 2.63}}]) + '\\n'"
    ),
    "answers with a number of 9000 digits": replacing("'[%d, [' % number + '9' * 9000 + ']]\\n'"),
    "answers more calls than there were": replacing("json.dumps([number, [GRID, GRID]]) + '\\n'"),
    "answers with an error that is no text": replacing("json.dumps([number, {'error': [1.0], 'line': 1e308}]) + '\\n'"),
    "numbers its answer with true": replacing("json.dumps([True, [GRID]]) + '\\n'"),
    "closes every descriptor": packing("os.closerange(0, 64)"),
    "ends well without an answer": packing("os._exit(0)"),
    "prints verdicts": packing("print(json.dumps([1, [GRID]]), flush=True)\nos.write(2, b'[1, [2.63]]\\n')"),
    "writes to every descriptor": packing(
        """
        for number in range(64):
            try:
                os.write(number, b'{"answer": 9, "score": 1.0}\\n')
            except OSError:
                pass
        """
    ),
    "patches json's encoder": packing(
        "json.JSONEncoder.encode = json.JSONEncoder.iterencode = lambda *a: '[1, [2.6]]'"
    ),
    "replaces the harness's files": packing("for name in ('main.py', 'program.py'):\n    open(name, 'w').write('1/0')"),
}

VALUES = {
    "radius that is not a number": moved("(0.1, 0.1, float('nan'))"),
    "radius without end": moved("(0.1, 0.1, float('inf'))"),
    "radius below zero": moved("(0.1, 0.1, -5.0)"),
    "place that is not a number": moved("(float('nan'), float('nan'), 2.6)"),
    "place far outside": moved("(1e308, -1e308, 2.6)"),
    "radius as text": moved("(0.1, 0.1, '2.6')"),
    "radius that is true": moved("(0.5, 0.5, True)"),
    "radius of 400 digits": moved("(0.1, 0.1, 10 ** 400)"),
    "circle of four numbers": moved("(0.1, 0.1, 0.01, 2.6)"),
    "one circle too many": packing("", "GRID + [[0.9, 0.9, 0.05]]"),
    "the same circle 26 times": packing("", "[[0.5, 0.5, 0.5]] * 26"),
    "circles that overlap by a millionth": packing("", "[[x, y, r + 1e-6] for x, y, r in GRID]"),
    "a list that says it is longer": packing("", "type('L', (list,), {'__len__': lambda s: 26})([[0.5, 0.5, 0.5]])"),
    "a list that iterates over others": packing(
        "", "type('L', (list,), {'__iter__': lambda s: iter([[0.5, 0.5, 0.5]] * 26)})()"
    ),
    "numbers that compare as they like": packing(
        "F = type('F', (float,), {'__lt__': lambda *_: False, '__gt__': lambda *_: True, '__sub__': lambda *_: 9.0})",
        "[[0.5, 0.5, F(0.5)] for _ in range(n)]",
    ),
    "numbers that print as others": packing(
        "F = type('F', (float,), {'__repr__': lambda s: '0.0001', '__str__': lambda s: '0.0001'})",
        "[[F(0.5), F(0.5), F(0.5)] for _ in range(n)]",
    ),
}

PROCESSES = {
    "kills its parent": packing(
        "import signal\nfor n in (os.getppid(), 1):\n    os.kill(n, signal.SIGKILL)\n    os.kill(n, 19)"
    ),
    "kills everybody": packing("import signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(-1, 15)"),
    "limits its parent": packing(
        "import resource\ntry:\n    resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\nexcept OSError:\n    pass"
    ),
    "raises its limits": packing(
        """
        import resource
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (900, 900))
        except (OSError, ValueError):
            pass
        while True: pass
        """
    ),
    "leaves a child that answers later": packing(
        """
        try:
            if os.fork() == 0:
                os.setsid()
                while True:
                    say(json.dumps([1, [GRID]]) + "\\n")
        except OSError:
            pass
        """
    ),
    "leaves a thread that answers later": packing(
        """
        import threading
        try:
            threading.Thread(target=lambda: [say("[2, [9]]\\n") for _ in iter(int, 1)], daemon=True).start()
        except RuntimeError:
            pass
        """
    ),
    "rings a bell that answers later": packing(
        """
        import signal
        signal.signal(signal.SIGALRM, lambda *_: say("[2, [9]]\\n"))
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        """
    ),
    "answers when it is deleted": packing(
        "global late\nlate = type('L', (), {'__del__': lambda s: say('[1, [9]]\\n')})()"
    ),
    "does not end": packing("import atexit, time\natexit.register(time.sleep, 600)"),
}
ALL = {**PROTOCOL, **VALUES, **PROCESSES}
QUICK = (
    "answers twice, better the second time",
    "answers before it is asked",
    "answers with its score",
    "radius that is not a number",
    "numbers that compare as they like",
    "kills its parent",
)


class Quick(CirclePacking):
    cpu_seconds = 1


def judged(source: str, task: AlgorithmTask | None = None) -> Outcome:
    task = Quick() if task is None else task
    return asyncio.run(task.rollout(task.splits().val[0], Candidate({"program.py": source}), FakeAttempt("")))


@pytest.fixture(autouse=True)
def _no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "complaint", lambda *_: None)


def test_the_honest_part_and_a_better_packing_are_scored_as_they_are() -> None:
    assert judged(packing("")).hard == HONEST
    assert judged(packing("", "GRID")).hard == pytest.approx(8 * 0.26 / 2.63586)


def gains_nothing(name: str) -> None:
    outcome = judged(ALL[name])
    assert outcome.hard == 0.0 or outcome.hard == HONEST, outcome


@pytest.mark.parametrize("name", QUICK)
def test_a_forged_answer_gains_nothing(name: str) -> None:
    gains_nothing(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if name not in QUICK])
def test_no_forged_answer_gains_anything(name: str) -> None:
    gains_nothing(name)


PREFERENCES = {
    "nan": "float('nan')",
    "text": "'best'",
    "None": "None",
    "nothing that JSON has": "print",
    "lists of different kinds": "[size] if room % 2 else size",
    "lists in lists": "[[size]]",
}


@pytest.mark.parametrize("name", PREFERENCES)
def test_a_preference_that_can_not_be_compared_is_no_answer(name: str) -> None:
    outcome = judged(f"def priority(size, room, capacity):\n    return {PREFERENCES[name]}\n", BinPacking())
    assert outcome.hard == 0.0 and "number" in outcome.feedback


@pytest.mark.parametrize(
    "value", ["-float('inf') if room == capacity else -room", "(room < capacity, -room)", "-room * 10 ** 300"]
)
def test_infinite_large_and_paired_preferences_are_honest(value: str) -> None:
    best_fit = judged("def priority(size, room, capacity):\n    return -room\n", BinPacking())
    outcome = judged(f"def priority(size, room, capacity):\n    return {value}\n", BinPacking())
    assert outcome.hard == best_fit.hard and outcome.hard is not None and outcome.hard > 0.9


def test_the_same_program_gets_the_same_result_twice() -> None:
    source = "import random\ndef priority(size, room, capacity):\n    return random.random()\n"
    assert judged(source, BinPacking()) == judged(source, BinPacking())
