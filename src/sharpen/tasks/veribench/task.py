"""Write Lean 4 that Lean accepts. The score is Lean's word: 1 for a file that it checks without a complaint and that is what
was asked for, else 0, with its first error as feedback. Nothing is scored by how a file looks.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.digest import digest
from sharpen.core.errors import SandboxFailed, UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Brief, Requirements, Splits, Task
from sharpen.sandbox import Mode
from sharpen.tasks.render import VERSION, render
from sharpen.tasks.splitting import Deal, by_ratio, limited, parse_ratio
from sharpen.tasks.veribench import checking, items, rows, toolchain

_VERSION = "1"


class VeriBench(Task):
    """`data` is a file of rows (see `rows.py`); without it the statements that come with the task are used."""

    name = "veribench"

    def __init__(
        self,
        deal: Deal | None = None,
        data: str | None = None,
        ratio: str = "3:3:4",
        seconds: float = 60.0,
        max_tokens: int = 1024,
        sandbox: str = Mode.BUBBLEWRAP,
    ) -> None:
        self.deal = Deal() if deal is None else deal
        if sandbox not in tuple(Mode):
            raise UsageError(f"task 'veribench': sandbox must be {' or '.join(Mode)}, got {sandbox!r}")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 3600:
            raise UsageError(f"task 'veribench': seconds must be a number above 0, at most 3600, got {seconds!r}")
        parse_ratio(ratio)
        self.ratio = ratio
        self.seconds = float(seconds)
        self.max_tokens = max_tokens
        self.mode = Mode(sandbox)
        self.requirements = Requirements(checks=(partial(toolchain.lacking, self.mode),))
        self._items, left_out = (items.shipped(), 0) if data is None else rows.read(Path(data))
        note = f" {left_out} rows of the data have nothing to be checked against and are left out." if left_out else ""
        self.brief = Brief(
            f"Write Lean 4 that Lean accepts.{note}",
            (
                "Answer with one Lean file in a ```lean block.",
                "Repeat the statement word for word and put the proof behind it.",
                "Never use sorry, axioms or native_decide.",
                "Do not import anything.",
                "Do not use commands that begin with #.",
                "Close goals on natural numbers with omega.",
                "Close goals on lists with simp, or by induction on the list.",
                "Close logical goals with intro, exact, cases and constructor.",
            ),
            "a Lean 4 file in a fenced block",
        )
        self._splits: Splits | None = None

    @property
    def version(self) -> str:  # type: ignore[override]  # another Lean may judge differently, and finding it takes a moment
        lean = toolchain.find()
        return digest([_VERSION, VERSION, "" if lean is None else lean.version, self.seconds, self.max_tokens])[:12]

    def splits(self) -> Splits:
        if self._splits is None:
            self._splits = limited(by_ratio(self._items, self.ratio, self.deal.seed), self.deal.limit, self.deal.seed)
        return self._splits

    def seed(self) -> Candidate:
        return Candidate("Write Lean 4.\n")

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        question = item.text
        request = render(attempt.render, candidate, question, max_tokens=self.max_tokens, stop=())
        reply = (await attempt.complete(request)).text.strip()
        verdict = await self._judge(checking.extract(reply), item)
        return scored(
            item.id,
            verdict.right,
            answer=reply,
            feedback=verdict.feedback,
            trajectory=(Message("user", question), Message("assistant", reply)),
        )

    async def _judge(self, code: str, item: Item) -> checking.Verdict:
        objection = checking.objection(code, item.inputs)
        if objection:
            return checking.Verdict(False, objection)
        lean = toolchain.find()
        if lean is None:
            raise SandboxFailed("Lean is no longer there")
        text, line = checking.assembled(code, item.inputs)
        ran = await toolchain.run(lean, checking.FILE, text, self.seconds, self.mode)
        if ran.reason:
            return checking.Verdict(False, f"Lean was stopped: too much {ran.reason}")
        return checking.verdict(ran.stdout, ran.code, item.inputs, line)

    def answers(self, item: Item) -> tuple[str, ...]:
        return ()

    def example(self, item: Item) -> None:
        return None
