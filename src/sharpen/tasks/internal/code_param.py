"""A small program with two faults, and tests as items: `fare(age, km)` of a bus line.

Children under 6 ride free. Everybody else pays 2, and 1 more for every 10 km. The program at the start lets nobody of 5 ride
free, and subtracts where it should add: one constant and one operator, and mending either makes more tests pass. Programs
run in the sandbox: they get the cases, and what they answer is compared here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.rng import Stream
from sharpen.core.task import Attempt, Brief, Requirements, Splits, Task
from sharpen.sandbox import Limits, Mode, Ran, missing, run_program
from sharpen.tasks.jsonvalue import too_deep
from sharpen.tasks.splitting import Deal

PART = "fare.py"
START = """\
def fare(age, km):
    if age < 5:
        return 0
    return 2 - km // 10
"""
_MAIN = """\
import json, sys
from fare import fare
print("\\n" + json.dumps([fare(age, km) for age, km in json.load(sys.stdin)]))
"""
_LIMITS = Limits(seconds=5.0, cpu_seconds=1, memory_mb=256, processes=4, file_mb=1, output_kb=16)
_GROUPS = {"children": ((3, 5), (5, 9)), "adults": ((18, 90), (30, 40))}
"""The ages of each group, and a case that the program at the start gets wrong."""
_CASES = 4


class CodeParam(Task):
    name = "code-param"
    brief = Brief(
        description="Mend the program fare(age, km), so that it passes every test.",
        instructions=(
            "Children under 6 ride free.",
            "Everybody else pays 2, and 1 more for every 10 km.",
        ),
        answer_format="a Python function",
    )
    calls_per_rollout = 0
    sizes = (16, 16, 20)

    def __init__(self, deal: Deal | None = None, sandbox: str = Mode.BUBBLEWRAP) -> None:
        self.deal = Deal() if deal is None else deal
        if sandbox not in tuple(Mode):
            raise UsageError(f"task {self.name!r}: sandbox must be {' or '.join(Mode)}, got {sandbox!r}")
        self.mode = Mode(sandbox)
        if self.mode is Mode.BUBBLEWRAP:
            self.requirements = Requirements(checks=(missing,))

    def splits(self) -> Splits:
        return self.deal.splits(self.items(), self.sizes)

    def items(self) -> list[Item]:
        made = []
        each = sum(self.sizes) // len(_GROUPS)
        for group, ((youngest, eldest), wrong) in _GROUPS.items():
            stream = Stream(0, self.name, group)
            for number in range(each):
                drawn = [[youngest + stream.below(eldest + 1 - youngest), stream.below(80)] for _ in range(_CASES - 1)]
                made.append(Item(f"{group}-{number}", {"cases": [[*wrong], *drawn]}, None, group))
        return made

    def seed(self) -> Candidate:
        return Candidate({PART: START})

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        if PART not in candidate.parts:
            raise UsageError(f"task {self.name!r} works from the part {PART}; the candidate has {', '.join(candidate)}")
        cases: list[list[int]] = item.inputs["cases"]
        files = {PART: candidate[PART], "main.py": _MAIN}
        ran = await run_program(
            files, ("python", "main.py"), stdin=json.dumps(cases).encode(), limits=_LIMITS, mode=self.mode
        )
        given = _answers(ran)
        if given is None or len(given) != len(cases):
            return scored(item.id, 0, answer=ran.stdout, feedback=_went_wrong(ran))
        wrong = [
            f"fare({age}, {km}) is {fare(age, km)}, not {answer!r}"
            for (age, km), answer in zip(cases, given, strict=True)
            if answer != fare(age, km)
        ]
        right = 1.0 - len(wrong) / len(cases)
        return scored(item.id, right, answer=str(given), feedback="; ".join(wrong[:2]))


def fare(age: int, km: int) -> int:
    """What the program should do."""
    return 0 if age < 6 else 2 + km // 10


def _answers(ran: Ran) -> Sequence[Json] | None:
    """The last line the program wrote, where it is a list."""
    if not ran.ok:
        return None
    try:
        found = json.loads(ran.stdout.strip().rpartition("\n")[2])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and not too_deep(found) else None


def _went_wrong(ran: Ran) -> str:
    if ran.ok:
        return "the program wrote something else than its answers"
    last = ran.stderr.strip().splitlines()[-1:] or [f"it ended with code {ran.code}"]
    return f"the program broke its limit of {ran.reason}" if ran.reason else f"the program failed: {last[0]}"
