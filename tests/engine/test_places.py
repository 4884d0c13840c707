"""Questions side by side: their places in the log, and the barrier that one leaves which ends with an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.errors import BudgetExhausted, Interrupted, NotDeterministic, StorageError
from sharpen.engine import replay
from sharpen.engine.events import BudgetEnded, Event, JobEnded
from sharpen.engine.replay import Story, read_events
from sharpen.testing.clock import run_simulated


@dataclass(frozen=True)
class Answered(Event):
    what: str
    reply: str = ""


def question(what: str) -> Callable[[], dict[str, Any]]:
    return lambda: {"type": Answered.type, "what": what}


async def ask(story: Story, what: str, *, after: float = 0.0, error: BaseException | None = None) -> str:
    """One question, answered or not after so many seconds."""
    async with story.place(question(what)) as place:
        await asyncio.sleep(after)
        if error is not None:
            raise error
        await story.fill(place, Answered(what, what.upper()))
    return what.upper()


def session(path: Path, work: Callable[[Story], Awaitable[Any]], notices: list[str] | None = None) -> Any:
    async def main() -> Any:
        story = Story(path, lambda: {"at": 0}, [].append if notices is None else notices.append)
        try:
            return await work(story)
        finally:
            story.close()

    return run_simulated(main())


def lines(path: Path) -> list[str]:
    return [record.get("what") or record["type"] for record in read_events(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@given(
    st.lists(st.floats(0, 9), min_size=2, max_size=6),
    st.sets(st.integers(0, 5)),
    st.booleans(),
)
def test_what_is_written_is_what_came_before_the_first_that_failed(
    tmp_path_factory: pytest.TempPathFactory, pauses: Sequence[float], failing: set[int], budget: bool
) -> None:
    """In any order of finishing; and resumed without the faults, all of it is there once, in order."""
    path = tmp_path_factory.mktemp("places") / "events.jsonl"
    names = [f"q{number}" for number in range(len(pauses))]
    error = BudgetExhausted("enough") if budget else OSError("gone")

    async def work(story: Story, *, well: bool) -> list[object]:
        return await asyncio.gather(
            *(
                ask(story, name, after=pauses[n], error=None if well or n not in failing else error)
                for n, name in enumerate(names)
            ),
            return_exceptions=True,
        )

    ends = session(path, lambda story: work(story, well=False))
    first = min((n for n in failing if n < len(names)), default=len(names))
    assert lines(path) == names[:first]
    assert ends[:first] == [name.upper() for name in names[:first]]
    assert all(isinstance(end, type(error)) for end in ends[first:])
    assert session(path, lambda story: work(story, well=True)) == [name.upper() for name in names]
    assert lines(path) == names


def test_an_answer_is_given_when_it_is_written_and_not_before(path: Path) -> None:
    seen: list[str] = []

    async def noting(story: Story, what: str, after: float) -> None:
        await ask(story, what, after=after)
        seen.append(what)
        assert what in lines(path)

    session(path, lambda s: asyncio.gather(noting(s, "a", 3), noting(s, "b", 1), noting(s, "c", 2)))
    assert seen == lines(path) == ["a", "b", "c"]


@given(st.permutations(range(6)))
def test_chains_of_questions_side_by_side_have_the_same_log_in_any_order_of_finishing(
    tmp_path_factory: pytest.TempPathFactory, order: Sequence[int]
) -> None:
    """And the same when they are replayed, where nothing takes any time."""
    path = tmp_path_factory.mktemp("places") / "events.jsonl"

    async def chain(story: Story, name: str, pauses: Sequence[int]) -> None:
        for number, pause in enumerate(pauses):
            await ask(story, f"{name}{number}", after=pause)

    def both(one: Sequence[int], other: Sequence[int]) -> Callable[[Story], Awaitable[Any]]:
        return lambda story: asyncio.gather(chain(story, "a", one), chain(story, "b", other))

    session(path, both(order[:3], order[3:]))
    assert lines(path) == ["a0", "b0", "a1", "b1", "a2", "b2"]
    session(path, both([0] * 3, [0] * 3))


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_the_end_of_the_budget_stands_at_the_barrier_and_what_follows_after_it(path: Path, failing: int) -> None:
    async def work(story: Story) -> None:
        errors = [BudgetExhausted("enough") if n == failing else None for n in range(3)]
        jobs = (ask(story, f"q{n}", after=3 - n, error=error) for n, error in enumerate(errors))
        await asyncio.gather(*jobs, return_exceptions=True)
        assert story.budget_barrier == "enough"
        with pytest.raises(BudgetExhausted):
            await ask(story, "more")
        with pytest.raises(BudgetExhausted):
            story.emit(Answered("more"))
        story.emit(BudgetEnded("enough"))
        await ask(story, "closing")
        story.emit(JobEnded("budget"))

    session(path, work)
    before = path.read_bytes()
    assert lines(path) == [*(f"q{n}" for n in range(failing)), "budget_ended", "closing", "job_ended"]
    session(path, work)
    assert path.read_bytes() == before


def test_an_end_of_the_budget_on_record_is_not_worked_out_again(path: Path) -> None:
    """In the first session the second question was refused, say by the clock; on replay nobody refuses it."""

    async def work(story: Story, error: BaseException | None) -> None:
        ends = await asyncio.gather(
            ask(story, "a"), ask(story, "b", error=error), ask(story, "c", after=1), return_exceptions=True
        )
        refused = [str(end) for end in ends if isinstance(end, BudgetExhausted)]
        assert refused == ["enough", "enough"]
        story.emit(BudgetEnded(refused[0]))
        await ask(story, "closing")

    session(path, lambda story: work(story, BudgetExhausted("enough")))
    session(path, lambda story: work(story, None))
    assert lines(path) == ["a", "budget_ended", "closing"]


def test_a_budget_that_ends_while_an_earlier_question_is_open_gives_that_one_up(path: Path) -> None:
    """A trainer that does not wait for its other questions: the same log when it is replayed."""

    async def work(story: Story, error: BaseException | None) -> None:
        slow = asyncio.ensure_future(ask(story, "slow", after=9))
        with pytest.raises(BudgetExhausted):
            await ask(story, "b", error=error)
        story.emit(BudgetEnded("enough"))
        await ask(story, "closing")
        with pytest.raises(BudgetExhausted):
            await slow

    session(path, lambda story: work(story, BudgetExhausted("enough")))
    assert lines(path) == ["budget_ended", "closing"]
    session(path, lambda story: work(story, None))
    assert lines(path) == ["budget_ended", "closing"]


def test_a_failed_job_ends_at_the_barrier(path: Path) -> None:
    async def work(story: Story) -> None:
        await asyncio.gather(ask(story, "a", error=OSError()), ask(story, "b"), return_exceptions=True)
        story.emit(JobEnded("failed", "gone"))
        with pytest.raises(Interrupted):
            await ask(story, "c")

    session(path, work)
    assert lines(path) == ["job_ended"]


def test_a_disk_that_is_full_leaves_a_barrier_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = replay.append_line

    def full(descriptor: int, line: bytes, path: Path) -> None:
        if b'"b"' in line:
            raise StorageError("the disk is full")
        write(descriptor, line, path)

    async def work(story: Story) -> list[object]:
        return await asyncio.gather(
            ask(story, "a", after=2), ask(story, "b", after=1), ask(story, "c"), return_exceptions=True
        )

    monkeypatch.setattr(replay, "append_line", full)
    ends = session(path, work)
    assert ends[0] == "A" and all(isinstance(end, StorageError) for end in ends[1:])
    assert lines(path) == ["a"]
    monkeypatch.undo()
    assert session(path, work) == ["A", "B", "C"] and lines(path) == ["a", "b", "c"]


@pytest.mark.parametrize("cancelled", [0, 1, 2])
def test_a_question_that_is_cancelled_leaves_a_barrier_too(path: Path, cancelled: int) -> None:
    async def work(story: Story) -> list[object]:
        tasks = [asyncio.ensure_future(ask(story, name, after=1)) for name in ("a", "b", "c")]
        await asyncio.sleep(0.5)
        tasks[cancelled].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ends = session(path, work)
    assert lines(path) == ["a", "b", "c"][:cancelled]
    assert isinstance(ends[cancelled], asyncio.CancelledError)
    assert all(isinstance(end, Interrupted) for end in ends[cancelled + 1 :])


def test_nothing_is_written_once_the_log_is_closed(path: Path) -> None:
    async def work(story: Story) -> None:
        late.append(asyncio.ensure_future(ask(story, "late", after=1)))
        await asyncio.sleep(0.5)

    async def main() -> None:
        story = Story(path, dict)
        await work(story)
        story.close()
        with pytest.raises(Interrupted):
            await late[0]

    late: list[asyncio.Future[str]] = []
    run_simulated(main())
    assert lines(path) == []


def test_another_question_is_found_out_before_it_is_asked(path: Path) -> None:
    asked: list[str] = []

    async def other(story: Story) -> None:
        async with story.place(question("other")):
            asked.append("other")

    session(path, lambda story: ask(story, "a"))
    with pytest.raises(NotDeterministic, match=r'event 0 of .*: answered differs in what: "a" -> "other"'):
        session(path, other)
    assert asked == []
