"""The small tasks whose answer is known: not solved at the start, solved by what solves them, and honest about both."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.outcome import Outcome
from sharpen.core.task import Task
from sharpen.tasks import registry
from sharpen.tasks.internal.camel import LOWEST, camel
from sharpen.tasks.internal.code_param import START
from sharpen.tasks.internal.greeting import GREETINGS
from sharpen.tasks.internal.multi_param import WANTED
from sharpen.testing.tasks import FakeAttempt, TaskContract

MENDED = START.replace("age < 5", "age < 6").replace("2 - km", "2 + km")


@pytest.mark.parametrize(
    "name", ["numeric-param", "multi-param", "code-param", "non-trainable", "greeting", "camel", "short-codebook"]
)
class TestInternal(TaskContract):
    name = ""

    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name

    def make(self) -> Task:
        return registry.get(self.name)


def outcomes(name: str, candidate: Candidate | None = None, answer: str = "") -> list[Outcome]:
    """The outcomes of a candidate, or of the start, on the first val items."""
    task = registry.get(name)
    given = task.seed() if candidate is None else candidate
    return [asyncio.run(task.rollout(item, given, FakeAttempt(answer))) for item in task.splits().val[:6]]


def numbers(**values: float) -> Candidate:
    return Candidate({f"{name}.number": f"{value}\n" for name, value in values.items()})


@pytest.mark.parametrize(
    ("name", "solution"),
    [
        ("numeric-param", numbers(value=3.0)),
        ("multi-param", numbers(**WANTED)),
        ("code-param", Candidate({"fare.py": MENDED})),
    ],
)
def test_the_start_is_not_solved_and_the_solution_is(name: str, solution: Candidate) -> None:
    before, after = outcomes(name), outcomes(name, solution)
    assert all(outcome.hard is not None and outcome.hard < 1.0 and outcome.feedback for outcome in before)
    assert [outcome.hard for outcome in after] == [1.0] * 6
    assert not any(outcome.feedback for outcome in after)


def test_a_number_scores_the_worse_the_further_off_it_is() -> None:
    scores = [
        [outcome.hard or 0.0 for outcome in outcomes("numeric-param", numbers(value=v))] for v in (2.5, 1.0, -1.0)
    ]
    for near, far in itertools.pairwise(scores):
        assert all(a > b for a, b in zip(near, far, strict=True))


def test_the_numbers_of_a_curve_cannot_be_judged_one_by_one() -> None:
    """Where the bend is wrong, the right height is worse than a wrong one that makes up for it."""

    def mean(height: float) -> float:
        found = outcomes("multi-param", numbers(height=height, slope=WANTED["slope"], bend=-0.5))
        return sum(outcome.hard or 0.0 for outcome in found) / len(found)

    assert mean(WANTED["height"]) < mean(5.0)


def test_the_camel_is_lowest_where_it_is_known_to_be() -> None:
    assert camel(0.0898, -0.7126) == pytest.approx(LOWEST, abs=1e-4) == camel(-0.0898, 0.7126)
    assert camel(0.0, 0.0) == 0.0


def test_the_aims_of_the_camel_pull_apart() -> None:
    low, small = outcomes("camel", numbers(x=0.09, y=-0.71)), outcomes("camel", numbers(x=0.0, y=0.0))
    for one, other in zip(low, small, strict=True):
        assert one.measures["base_loss"] < other.measures["base_loss"]
        assert one.measures["reg_loss"] > other.measures["reg_loss"]


def test_a_longer_skill_costs_something_even_if_every_answer_is_right() -> None:
    task = registry.get("short-codebook")
    item = task.splits().val[0]
    brief, long = Candidate("Answer.\n"), Candidate("Answer. " * 60)
    found = [asyncio.run(task.rollout(item, c, FakeAttempt(str(item.reference)))) for c in (brief, long)]
    assert [outcome.hard for outcome in found] == [1.0, 1.0]
    assert found[0].soft is not None and found[1].soft is not None and found[0].soft > found[1].soft
    assert [outcome.measures["skill_words"] for outcome in found] == [1.0, 60.0]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("def fare(age, km):\n    return 1 / 0\n", "the program failed: ZeroDivisionError"),
        ("def fare(age, km):\n    while True: pass\n", "limit of cpu|limit of time"),
        ("def fare(age, km):\n    return 'free'\n", "not 'free'"),
        ("import os\nprint([0] * 4, flush=True)\nos._exit(0)\n", "is [0-9]+, not 0"),
        ("import os\nprint('all right', flush=True)\nos._exit(0)\n", "something else than its answers"),
        ("import os\nprint('[' * 5000 + ']' * 5000, flush=True)\nos._exit(0)\n", "something else than its answers"),
        ("def fair(age, km):\n    return 0\n", "cannot import name 'fare'"),
    ],
)
def test_a_program_that_fails_or_cheats_is_scored_for_what_it_answers(program: str, says: str) -> None:
    task = registry.get("code-param")
    item = next(item for item in task.splits().val if item.type == "adults")
    outcome = asyncio.run(task.rollout(item, Candidate({"fare.py": program}), FakeAttempt("")))
    assert outcome.hard == 0.0
    assert re.search(says, outcome.feedback), outcome.feedback


def test_a_candidate_without_the_part_is_named() -> None:
    with pytest.raises(UsageError, match=r"works from the part value\.number; the candidate has SKILL\.md"):
        outcomes("numeric-param", Candidate("Be good."))
    with pytest.raises(UsageError, match=r"part value\.number: a \.number part holds one number"):
        outcomes("numeric-param", Candidate({"value.number": "three"}))
    with pytest.raises(UsageError, match=r"works from the part fare\.py"):
        outcomes("code-param", Candidate("Be good."))


def test_the_sandbox_is_bubblewrap_or_unsafe() -> None:
    assert registry.get("code-param").requirements.checks
    assert not registry.get("code-param", sandbox="unsafe").requirements.checks
    with pytest.raises(UsageError, match="sandbox must be bubblewrap or unsafe, got 'none'"):
        registry.get("code-param", sandbox="none")


def test_the_greeting_seed_gives_no_greeting_away() -> None:
    task = registry.get("greeting")
    assert not any(hello in task.seed().text for hello in GREETINGS.values())
    assert {item.type for item in task.splits().train} == set(GREETINGS)
