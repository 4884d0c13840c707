"""Questions whose answer is a program: it is taken out of the answer, run against its tests and scored.

Running and scoring is in `testing_programs.py`. `hard` is all tests passed, `soft` the share that did.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Requirements
from sharpen.sandbox import Limits, Mode, missing
from sharpen.tasks.metrics import Metric, Score
from sharpen.tasks.qa import loading, testing_programs
from sharpen.tasks.qa.family import Family
from sharpen.tasks.qa.task import QATask
from sharpen.tasks.render import render

VERSION = "2"
LIMITS = Limits(seconds=15.0, cpu_seconds=10, memory_mb=1024, output_kb=4096)
_FENCE = re.compile(r"```(?:python|py)?[^\S\n]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


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
        self.version = digest([self.version, self.scorer.identity, testing_programs.harness_source(), loading.VERSION])[
            :12
        ]

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
        checks = testing_programs.Checks.load(item.reference)
        program = program_in(answer, checks.before, checks.entry)
        if not program.strip():
            return Score(0.0, 0.0, "no program was found in the answer")
        return await testing_programs.check_program(program, checks, self.mode, LIMITS)


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


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _only_in_the_sandbox(answer: str, item: Item) -> Score:
    raise UsageError(f"item {item.id!r}: a program is scored by running it, not by its text")
