"""Tasks of Inspect AI: our candidate and our model inside, their solvers and scorers around. Needs the extra `inspect`."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai")

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.task import SPLITS, Task
from sharpen.tasks import registry
from sharpen.testing.tasks import FakeAttempt, TaskContract

# Inspect leaves streams of its own to the garbage collector, which pytest would report as ours.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

TASKS = '''
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, choice, includes, mean, model_graded_qa, scorer
from inspect_ai.solver import generate, multiple_choice, self_critique, solver, system_message, use_tools
from inspect_ai.tool import tool


@tool
def add():
    async def execute(x: int, y: int):
        """Add two numbers.

        Args:
            x: The first number.
            y: The second number.
        """
        return str(x + y)

    return execute


@scorer(metrics=[mean()])
def points():
    async def score(state, target):
        text = state.output.completion
        return Score(value=float("nan") if text == "?" else float(len(text)), explanation="counted")

    return score


@scorer(metrics={"a": [mean()], "b": [mean()]})
def both():
    async def score(state, target):
        return Score(value={"a": 1, "b": "P"})

    return score


@solver
def broken():
    async def solve(state, generate):
        raise RuntimeError("the solver broke")

    return solve


def samples(n):
    return [Sample(input=f"{i} plus one?", target=str(i + 1), id=f"s{i}") for i in range(n)]


@task
def sums(n: int = 20):
    return Task(dataset=samples(n), solver=[system_message("Be short."), generate(cache=True)], scorer=includes())


@task
def tools():
    return Task(dataset=samples(12), solver=[use_tools(add()), generate()], scorer=includes())


@task
def critique():
    return Task(dataset=samples(12), solver=[generate(), self_critique()], scorer=includes())


@task
def graded():
    return Task(dataset=samples(12), solver=generate(), scorer=model_graded_qa())


@task
def letters():
    data = [Sample(input=f"Which is {i}?", choices=[str(i), "x", "y"], target="A") for i in range(12)]
    return Task(dataset=data, solver=multiple_choice(), scorer=choice())


@task
def counted():
    return Task(dataset=samples(12), solver=generate(), scorer=points())


@task
def several():
    return Task(dataset=samples(12), solver=generate(), scorer=[both(), includes()])


@task
def breaks():
    return Task(dataset=samples(12), solver=broken(), scorer=includes())


def plain():
    return None
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inspect") / "tasks.py"
    path.write_text(TASKS)
    return path


def made(file: Path, name: str, **settings: object) -> Task:
    return registry.get(f"inspect/{file}@{name}", **settings)


def run(
    task: Task, answer: Callable[[Request], str] | str, *, count: int = 1, skill: str = "Add."
) -> tuple[list[Outcome], list[FakeAttempt]]:
    async def all_of_them() -> list[Outcome]:
        items = [item for name in SPLITS for item in task.splits()[name]][:count]
        return await asyncio.gather(
            *(task.rollout(item, Candidate(skill), one) for item, one in zip(items, fakes, strict=True))
        )

    fakes = [FakeAttempt(answer) for _ in range(count)]
    return asyncio.run(all_of_them()), fakes


def plus_one(request: Request) -> str:
    asked = next(message.content for message in request.messages if message.role == "user")
    return str(int(asked.split()[0]) + 1)


class TestSums(TaskContract):
    @pytest.fixture(autouse=True)
    def _file(self, file: Path) -> None:
        self.file = file

    def make(self) -> Task:
        return made(self.file, "sums")

    def few(self) -> list[Item]:
        return [self.make().splits()[name][0] for name in SPLITS]


def test_the_candidate_is_the_first_thing_the_system_says_and_every_call_is_ours(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes, fakes = run(made(file, "sums"), plus_one, count=20, skill="Add one.")
    assert [outcome.hard for outcome in outcomes] == [1.0] * 20
    for fake in fakes:
        (request,) = fake.requests
        assert request.messages[0].content == "Add one.\n\nBe short." and request.temperature == 0
    assert all("plus one?" in outcome.trajectory[0].content for outcome in outcomes)
    assert os.listdir(tmp_path) == [] and capfd.readouterr() == ("", "")
    assert asyncio.run.__module__ == "asyncio.runners", "asyncio was patched"


def test_the_same_sample_with_two_skills_at_once_is_kept_apart(file: Path) -> None:
    task = made(file, "sums")
    item = task.splits().train[0]

    async def two() -> list[Outcome]:
        fakes = [FakeAttempt(lambda request: request.messages[0].content) for _ in range(3)]
        skills = ("one", "two", "three")
        return await asyncio.gather(
            *(task.rollout(item, Candidate(skill), fake) for skill, fake in zip(skills, fakes, strict=True))
        )

    answers = [outcome.answer.split("\n")[0] for outcome in asyncio.run(two())]
    assert answers == ["one", "two", "three"]


def test_tools_are_offered_as_text_and_run_by_inspect(file: Path) -> None:
    def answer(request: Request) -> str:
        last = request.messages[-1].content
        if last.startswith("Result of add: "):
            return last.removeprefix("Result of add: ")
        n = re.match(r"\d+", last)
        assert n and "- add(x: integer, y: integer): Add two numbers." in request.messages[0].content
        return f'<tool>{{"name": "add", "arguments": {{"x": {n[0]}, "y": 1}}}}</tool>'

    outcomes, fakes = run(made(file, "tools", max_calls=3), answer, count=4)
    assert [outcome.hard for outcome in outcomes] == [1.0] * 4
    assert {len(fake.requests) for fake in fakes} == {2}


def test_more_calls_than_announced_are_refused_or_end_the_sample(file: Path) -> None:
    with pytest.raises(UsageError, match=r"task\.params\.max_calls=N"):
        run(made(file, "critique"), plus_one)
    outcomes, fakes = run(made(file, "critique", max_calls=2), "hm")
    assert len(fakes[0].requests) == 2 and outcomes[0].scored
    assert made(file, "critique", max_calls=5).calls_per_rollout == 5


def test_a_grader_is_our_model_too(file: Path) -> None:
    roles: list[str] = []

    class Roles(FakeAttempt):
        async def complete(self, request: Request, *, role: str = "target"):  # type: ignore[no-untyped-def]
            roles.append(role)
            return await super().complete(request, role=role)

    with pytest.raises(UsageError, match=r"task\.params\.grader_calls=N"):
        run(made(file, "graded"), "something")
    task = made(file, "graded", grader="judge", grader_calls=1)
    assert task.calls_per_rollout == 2
    fake = Roles(lambda request: "GRADE: C" if len(roles) == 2 else "something")
    outcome = asyncio.run(task.rollout(task.splits().test[0], task.seed(), fake))
    assert roles == ["target", "judge"] and outcome.hard == 1.0


def test_multiple_choice(file: Path) -> None:
    outcomes, _ = run(made(file, "letters"), "ANSWER: A", count=3)
    assert [outcome.hard for outcome in outcomes] == [1.0] * 3
    assert run(made(file, "letters"), "ANSWER: B")[0][0].hard == 0.0


def test_numbers_are_brought_to_their_range(file: Path) -> None:
    outcome = run(made(file, "counted", score_range="0:10"), "four")[0][0]
    assert (outcome.hard, outcome.soft) == (0.4, 0.4) and "counted" in outcome.feedback
    with pytest.raises(UsageError, match=r"the score 4 is outside 0\.\.1; say its range"):
        run(made(file, "counted"), "four")
    with pytest.raises(ModelError, match="gave no score"):
        run(made(file, "counted"), "?")


def test_one_of_several_scores_is_chosen(file: Path) -> None:
    with pytest.raises(UsageError, match=r"choose one with scorer=both\.a"):
        run(made(file, "several"), "1")
    part = run(made(file, "several", scorer="both.b"), "1")[0][0]
    assert (part.hard, part.soft) == (0.0, 0.5)
    assert run(made(file, "several", scorer="includes"), plus_one)[0][0].hard == 1.0
    with pytest.raises(UsageError, match=r"no scorer 'include' \(did you mean 'includes'"):
        run(made(file, "several", scorer="include"), "1")


@pytest.mark.parametrize("name", ["sums", "tools", "critique", "graded"])
def test_a_failing_model_stays_a_model_error_and_hits_its_own_sample_alone(file: Path, name: str) -> None:
    task = made(file, name, max_calls=9, grader_calls=1)
    items = task.splits().test[:3]

    def fail(request: Request) -> str:
        raise ModelError(ModelErrorKind.TIMEOUT, "not today")

    async def three() -> list[Outcome | BaseException]:
        fakes = [FakeAttempt(fail if n == 1 else "GRADE: I") for n in range(3)]
        return await asyncio.gather(
            *(task.rollout(item, task.seed(), fake) for item, fake in zip(items, fakes, strict=True)),
            return_exceptions=True,
        )

    found = asyncio.run(three())
    assert isinstance(found[1], ModelError) and found[1].kind == ModelErrorKind.TIMEOUT
    assert isinstance(found[0], Outcome) and isinstance(found[2], Outcome)


def test_a_broken_solver_is_a_failure_and_not_a_zero(file: Path) -> None:
    with pytest.raises(ModelError, match="the solver broke"):
        run(made(file, "breaks"), "1")


def test_a_rollout_that_is_given_up_ends_and_the_next_one_runs(file: Path) -> None:
    task = made(file, "sums")

    class Slow(FakeAttempt):
        async def complete(self, request: Request, *, role: str = "target"):  # type: ignore[no-untyped-def]
            await asyncio.sleep(60)

    async def both() -> Outcome:
        item = task.splits().test[0]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await task.rollout(item, task.seed(), Slow(""))
        return await task.rollout(item, task.seed(), FakeAttempt(plus_one))

    assert asyncio.run(both()).hard == 1.0


def test_a_run_that_fails_as_a_whole_leaves_nobody_waiting(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sharpen.tasks.inspect_ai import floor

    task = made(file, "sums")
    item = task.splits().test[0]
    real, runs = floor._evaluated, []

    async def once_broken(orders: list[object]) -> object:
        runs.append(len(orders))
        if len(runs) == 1:
            raise RuntimeError("no room on the disk")
        return await real(orders)  # type: ignore[arg-type]

    monkeypatch.setattr(floor, "_evaluated", once_broken)

    async def two() -> list[Outcome | BaseException]:
        rollouts = (task.rollout(item, Candidate(skill), FakeAttempt(plus_one)) for skill in ("one", "two"))
        return await asyncio.wait_for(asyncio.gather(*rollouts, return_exceptions=True), 60)

    first, second = asyncio.run(two())
    assert isinstance(first, RuntimeError) and isinstance(second, Outcome) and runs == [1, 1]


def test_the_source_and_the_arguments_are_part_of_the_version(file: Path, tmp_path: Path) -> None:
    edited = tmp_path / "tasks.py"
    edited.write_text(TASKS.replace("Be short.", "Be brief."))
    versions = [made(file, "sums"), made(edited, "sums"), made(file, "sums", args={"n": 30})]
    assert len({task.version for task in versions}) == 3
    assert sum(len(versions[2].splits()[name]) for name in SPLITS) == 30


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sums", "has no 'sms'"),
        ("plain", "no @task decorator"),
        ("", "name the task too"),
    ],
)
def test_names_that_lead_nowhere(file: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(file, "sms" if name == "sums" else name)


def test_other_user_errors(file: Path) -> None:
    with pytest.raises(UsageError, match="no Inspect task 'nobody/nothing' is installed"):
        registry.get("inspect/nobody/nothing")
    with pytest.raises(UsageError, match="does not take these args"):
        made(file, "sums", args={"m": 3})
    with pytest.raises(UsageError, match="score_range must be LO:HI"):
        made(file, "sums", score_range="ten")
    with pytest.raises(UsageError, match="grader must be target or judge"):
        made(file, "graded", grader="me")


def test_a_task_of_an_installed_package_is_found_by_name(tmp_path: Path) -> None:
    """In a process of its own, since Inspect looks through the installed packages once."""
    site = tmp_path / "site-packages"
    (site / "riverside").mkdir(parents=True)
    (site / "riverside" / "__init__.py").write_text("")
    (site / "riverside" / "_registry.py").write_text("from riverside.tasks import sums\n")
    (site / "riverside" / "tasks.py").write_text(TASKS)
    info = site / "riverside-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: riverside\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text("[inspect_ai]\nriverside = riverside._registry\n")
    code = (
        "from sharpen.tasks import registry\n"
        "task = registry.get('inspect/riverside/sums', args={'n': 10})\n"
        "print(task.name, len(task.splits().test), '1.5' in task.loaded.identity)"
    )
    path = os.pathsep.join([str(site), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["inspect-riverside-sums", "4", "True"], done.stderr


@pytest.mark.parametrize("call", ["{", "[]", '{"name": "add", "arguments": 3}', "[" * 90_000, "9" * 5000])
def test_a_tool_call_that_cannot_be_read_is_the_agents_mistake(call: str) -> None:
    from sharpen.tasks.inspect_ai.provider import calls_in

    (made,) = calls_in(f"<tool>{call}</tool>")
    assert "not a tool call" in made.parse_error
