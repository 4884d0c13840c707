"""Programs that look for what they may not know yet: the jobs of an online problem that have not arrived.

Each is the program that the task starts from, with a function `look` that searches its process and the sandbox for the
list of all jobs. Where it finds one, the program plays a schedule made with it, which scores 0.89; where it finds none, the
honest part answers. None of them minds the rules on source text, which no promise rests on.
"""

from __future__ import annotations

import asyncio

import pytest
from looking_programs import LOOKING, looking

from sharpen.core.candidate import Candidate
from sharpen.core.outcome import Outcome
from sharpen.tasks.algorithms import rules
from sharpen.tasks.algorithms.machine_scheduling import MachineScheduling
from sharpen.testing.tasks import FakeAttempt

REPORTED = {
    "reaches type through collections.UserList.copy, and with it every module": looking(
        """
        kind = collections.UserList.copy(int)
        inits = (getattr(each, "__init__", None) for each in kind.__subclasses__(object))
        spaces = (getattr(init, "__globals__", {}) for init in inits)
        modules = next(space["sys"].modules for space in spaces if "sys" in space)
        for module in list(modules.values()):
            dig(vars(module), 4)
        import gc
        dig(gc.get_objects(), 3)
        """,
        "import collections",
    ),
    "reads standard input again": looking(
        """
        import os, sys
        os.lseek(0, 0, 0)
        dig_text(os.read(0, 1 << 20))
        sys.stdin.seek(0)
        dig_text(sys.stdin.read())
        """
    ),
}
"""The two that were seen to work: 0.472 became 0.995 on this task."""
QUICK = (
    "asks the collector for every object",
    "seeks every open file to its beginning",
    "takes descriptors from process 1",
    "profiles every call",
)


def judged(source: str) -> Outcome:
    task = MachineScheduling()
    return asyncio.run(task.rollout(task.splits().val[0], Candidate({"program.py": source}), FakeAttempt("")))


@pytest.fixture(scope="module")
def honest() -> float:
    """The score of the honest part alone."""
    score = judged(MachineScheduling.start).hard
    assert score == pytest.approx(172 / 406)
    return score


@pytest.fixture
def _no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "complaint", lambda *_: None)


@pytest.mark.usefixtures("_no_rules")
def test_the_schedule_would_gain_a_lot_if_the_jobs_were_found(honest: float) -> None:
    """Otherwise the tests below could not fail."""
    task = MachineScheduling()
    seed = int(str(task.splits().val[0].inputs["seed"]))
    source = looking(f"dig({task.instance(seed)['times']})")
    assert judged(source).hard == pytest.approx(0.891, abs=0.001)


@pytest.mark.usefixtures("_no_rules")
@pytest.mark.parametrize("name", [*QUICK, *REPORTED])
def test_who_looks_for_the_future_finds_none(name: str, honest: float) -> None:
    assert judged({**LOOKING, **REPORTED}[name]).hard in (honest, 0.0)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_rules")
@pytest.mark.parametrize("name", [name for name in LOOKING if name not in QUICK])
def test_who_looks_for_the_future_finds_none_wherever_it_is_looked_for(name: str, honest: float) -> None:
    for _ in range(2):  # the second time, what the first has left is there
        assert judged(LOOKING[name]).hard in (honest, 0.0)


def test_the_reported_way_around_the_rules_is_still_around_them(honest: float) -> None:
    """So that what it finds matters, and not whether it is let in."""
    source = f"import collections\nkind = collections.UserList.copy(int)\n{MachineScheduling.start}"
    assert rules.complaint(source, "badness", "") is None
    assert judged(source).hard == honest
