"""Questions whose answer is a program: it is taken out of the answer, run against the tests in the sandbox, and scored.

The harness reads a sign from standard input before it runs the program, and reports each passed test with that sign, so a
program that prints, exits early or redirects its output passes nothing. It shares a process with the tests, as the
published checkers do; a program that was written to cheat them by looking into that process would not be noticed.
`hard` is all tests passed, `soft` the share that did.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Requirements
from sharpen.sandbox import Limits, Mode, Ran, missing, run_program
from sharpen.tasks.metrics import Metric, Score
from sharpen.tasks.qa import loading
from sharpen.tasks.qa.family import Family
from sharpen.tasks.qa.task import QATask
from sharpen.tasks.render import render

VERSION = "1"
_FENCE = re.compile(r"```(?:python|py)?[^\S\n]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_LIMITS = Limits(seconds=15.0, cpu_seconds=10, memory_mb=1024)
_HARNESS = """\
import json, os, sys
order = json.loads(sys.stdin.buffer.read())
say, out = os.write, os.dup(1)
space = {"__name__": "program"}
try:
    exec(compile(order["program"], "program.py", "exec"), space)
    exec(compile(order["setup"], "setup.py", "exec"), space)
except BaseException as error:
    where = error.__traceback__
    while where.tb_next: where = where.tb_next
    line = "" if isinstance(error, SyntaxError) else f" (line {where.tb_lineno})"
    say(out, f"\\n{order['sign']} broken {type(error).__name__}: {error}{line}\\n".encode())
    os._exit(0)
for number, test in enumerate(order["tests"]):
    try:
        exec(compile(test, "test.py", "exec"), space)
        verdict = "passed"
    except BaseException as error:
        verdict = f"failed {type(error).__name__}: {error}".replace("\\n", " ")[:300]
    say(out, f"\\n{order['sign']} {number} {verdict}\\n".encode())
os._exit(0)
"""


class CodeTask(QATask):
    """A family of programs. `sandbox` is `bubblewrap`, or `unsafe` for those who accept what that means."""

    def __init__(
        self, family: Family, data: Path, choice: loading.Choice, max_tokens: int | None, sandbox: str
    ) -> None:
        modes = [mode.value for mode in Mode]
        if sandbox not in modes:
            raise UsageError(f"sandbox must be {' or '.join(modes)}, got {sandbox!r}{nearest(str(sandbox), modes)}")
        self.mode = Mode(sandbox)
        super().__init__(family, data, choice, max_tokens)
        self.stop = ("\nUser:",)
        self.requirements = Requirements(checks=(missing,) if self.mode is Mode.BUBBLEWRAP else ())

    def _score_with_family(self) -> None:
        self.scorer = Metric("qa-code", f"qa-code/{VERSION}", _only_in_the_sandbox, own=True)
        self.version = digest([self.version, self.scorer.identity, _HARNESS, loading.VERSION])[:12]

    def gold(self, item: Item) -> str | None:
        solution = str(item.reference["solution"]).strip()
        return f"```python\n{solution}\n```" if solution else None

    def example(self, item: Item) -> tuple[str, str] | None:
        gold = self.gold(item)
        return None if gold is None else (self.ask(item), gold)

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        question = self.ask(item)
        request = render(attempt.render, candidate, question, max_tokens=self.max_tokens, stop=self.stop)
        answer = (await attempt.complete(request)).text.strip("\n")
        score = await self.tested(answer, item)
        return scored(
            item.id,
            score.hard,
            soft=score.soft,
            answer=answer,
            feedback=score.feedback,
            trajectory=(Message("user", question), Message("assistant", answer)),
        )

    async def tested(self, answer: str, item: Item) -> Score:
        """The score of an answer's program."""
        checks: Mapping[str, Json] = item.reference
        program = program_in(answer, str(checks["before"]), str(checks["entry"]))
        if not program.strip():
            return Score(0.0, 0.0, "no program was found in the answer")
        sign = digest([program, item.digest, "sign"])
        order = {"sign": sign, "program": program, "setup": checks["setup"], "tests": checks["tests"]}
        ran = await run_program(
            {"harness.py": _HARNESS},
            ("python", "harness.py"),
            stdin=json.dumps(order).encode(),
            limits=_LIMITS,
            mode=self.mode,
        )
        return verdict(ran, sign, len(checks["tests"]))


def program_in(answer: str, before: str, entry: str) -> str:
    """The program of an answer: its last block that is a program, or all of it, up to a fence that only closes. What only
    continues `before`, the beginning that was asked to be completed, is put behind it."""
    begun, *fenced = answer.split("```")
    if len(fenced) == 1 and begun.strip() and not fenced[0].startswith("py"):
        answer = begun
    blocks = [block for block in _FENCE.findall(answer) if block.strip()]
    whole = [block for block in blocks if not entry or re.search(rf"\bdef\s+{re.escape(entry)}\b", block)]
    code = whole[-1] if whole else blocks[-1] if blocks else answer
    if not before:
        return code
    if re.search(rf"\bdef\s+{re.escape(entry)}\b", code):
        return f"{before.partition(f'def {entry}')[0]}\n{code}" if _parses(code) else code
    return before + code if code[:1] in " \t" else before + "".join(f"    {line}\n" for line in code.split("\n"))


def verdict(ran: Ran, sign: str, tests: int) -> Score:
    """What a run of the harness says about the program."""
    told = [line.removeprefix(f"{sign} ") for line in ran.stdout.splitlines() if line.startswith(f"{sign} ")]
    passed = {line.partition(" ")[0] for line in told if line.endswith(" passed")}
    if len(passed) == tests:
        return Score(1.0, 1.0)
    soft = len(passed) / tests
    broken = next((line.removeprefix("broken ") for line in told if line.startswith("broken ")), None)
    failed = next((line.partition(" failed ")[2] for line in told if " failed " in line), None)
    if broken is not None:
        return Score(0.0, 0.0, f"the program does not run: {broken}")
    if failed is not None:
        return Score(0.0, soft, f"{len(passed)} of {tests} tests pass; the first that fails: {failed}")
    why = {"time": "it takes too long", "cpu": "it takes too long", "memory": "it takes too much memory"}
    return Score(0.0, soft, f"the program did not get through its tests: {why.get(ran.reason, 'it ended too early')}")


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _only_in_the_sandbox(answer: str, item: Item) -> Score:
    raise UsageError(f"item {item.id!r}: a program is scored by running it, not by its text")
