"""A job's story: told once, compared when retold, in the order in which things began."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core import redact
from sharpen.core.errors import NotDeterministic, StorageError, UsageError
from sharpen.engine.events import BudgetEnded, Checkpointed, Event, JobEnded, decode
from sharpen.engine.replay import Story, read_events, reopen


@dataclass(frozen=True)
class Noted(Event):
    what: str
    number: float = 0


def story(path: Path) -> Story:
    ticks = iter(range(1000))
    return Story(path, lambda: {"at": next(ticks)})


def tell(path: Path, *events: Event) -> None:
    one = story(path)
    for event in events:
        one.emit(event)
    one.close()


def kinds(path: Path) -> list[str]:
    return [record["type"] for record in read_events(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job" / "events.jsonl"


def test_every_line_has_its_number_its_type_and_its_clock(path: Path) -> None:
    tell(path, Noted("ß\n"), Noted("b", 0.5))
    assert read_events(path) == [
        {"n": 0, "type": "noted", "what": "ß\n", "number": 0, "clock": {"at": 0, "log": 2}},
        {"n": 1, "type": "noted", "what": "b", "number": 0.5, "clock": {"at": 1}},
    ]
    assert [decode(record) for record in read_events(path)] == [Noted("ß\n"), Noted("b", 0.5)]


def test_an_equal_story_is_skipped_and_then_continued(path: Path) -> None:
    tell(path, Noted("a"), Noted("b"))
    before = path.read_bytes()
    again = story(path)
    assert again.replaying
    again.emit(Noted("a"))
    again.emit(Noted("b"))
    assert not again.replaying and path.read_bytes() == before
    again.emit(Noted("c"))
    again.close()
    assert path.read_bytes().startswith(before) and len(read_events(path)) == 3


@pytest.mark.parametrize(
    "second,words",
    [
        (Noted("c"), r'event 1 of .*events\.jsonl: noted differs in what: "b" -> "c"'),
        (Noted("b", 2), r"event 1 of .*: noted differs in number: 0 -> 2"),
        (BudgetEnded("b"), r"event 1 of .*: it was 'noted', now it is 'budget_ended'"),
    ],
)
def test_another_story_is_reported_with_the_event_and_the_field(path: Path, second: Event, words: str) -> None:
    tell(path, Noted("a"), Noted("b"))
    before = path.read_bytes()
    again = story(path)
    again.emit(Noted("a"))
    with pytest.raises(NotDeterministic, match=words):
        again.emit(second)
    again.close()
    assert path.read_bytes() == before


def test_what_reads_back_equal_is_equal(path: Path) -> None:
    """Tuples become lists, and 1.0 equals 1: neither is another story."""
    tell(path, Checkpointed(1, "c", "p", {"scores": (1.0, 2), "x": 1.0}))
    tell(path, Checkpointed(1, "c", "p", {"scores": [1, 2.0], "x": 1}))


def test_a_torn_last_line_is_cut_off(path: Path) -> None:
    tell(path, Noted("a"), Noted("b"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    tell(path, Noted("a"), Noted("b"), Noted("c"))
    assert [record["what"] for record in read_events(path)] == ["a", "b", "c"]
    assert path.read_bytes().count(b"\n") == 3


@given(st.data())
def test_cut_anywhere_and_told_again_it_is_the_same_story(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("story") / "events.jsonl"
    events = [Noted(word) for word in ("a", "ß", "c\n", "🎈")]
    tell(path, *events)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    tell(path, *events)
    assert [decode(record) for record in read_events(path)] == events


def test_a_broken_line_in_the_middle_is_named(path: Path) -> None:
    tell(path, Noted("a"))
    with path.open("ab") as file:
        file.write(b"\0\0\0\n")
    tell_more = Noted("b")
    with pytest.raises(StorageError, match=r"events\.jsonl.*line 2"):
        tell(path, Noted("a"), tell_more)


def test_secrets_do_not_reach_the_file_and_do_not_upset_the_comparison(path: Path) -> None:
    event = Checkpointed(1, "c", "p", {"api_key": "anything", "note": "Bearer abcdefgh12345"})
    tell(path, event)
    assert b"anything" not in path.read_bytes() and b"abcdefgh12345" not in path.read_bytes()
    tell(path, event)


@pytest.mark.parametrize("then_known", [True, False])
def test_a_secret_that_came_or_went_since_does_not_upset_the_comparison(path: Path, then_known: bool) -> None:
    event = Noted("say Kilo-4711 (metres)")
    try:
        if then_known:
            redact.remember("Kilo-4711")
        tell(path, event)
        redact._known.clear()
        if not then_known:
            redact.remember("Kilo-4711")
        tell(path, event)
        with pytest.raises(NotDeterministic):
            tell(path, Noted("say Kilo-4711 (feet)"))
    finally:
        redact._known.clear()


def test_half_a_surrogate_pair_can_be_told(path: Path) -> None:
    tell(path, Noted("half \ud83d"))
    tell(path, Noted("half \ud83d"))
    assert read_events(path)[0]["what"] == "half \ud83d"
    path.read_bytes().decode()


def test_what_json_cannot_say_is_refused_and_nothing_is_written(path: Path) -> None:
    one = story(path)
    with pytest.raises(ValueError):
        one.emit(Noted("a", float("nan")))
    one.close()
    assert path.read_bytes() == b""


def test_an_unknown_event_is_named() -> None:
    with pytest.raises(UsageError, match="unknown event type 'nonsense' in line 4"):
        decode({"n": 4, "type": "nonsense"})


class TestReopening:
    def told(self, path: Path, *events: Event, more_budget: bool = False) -> list[str]:
        tell(path, *events)
        reopen(path, more_budget=more_budget)
        return kinds(path)

    def test_a_failed_ending_is_dropped(self, path: Path) -> None:
        assert self.told(path, Noted("a"), JobEnded("failed", "disk")) == ["noted"]

    def test_a_job_that_ended_well_is_left_alone(self, path: Path) -> None:
        events = (Noted("a"), JobEnded("done"))
        assert self.told(path, *events, more_budget=True) == ["noted", "job_ended"]

    def test_an_ending_by_budget_is_dropped_and_what_led_to_it_stays(self, path: Path) -> None:
        events = (Noted("a"), BudgetEnded("calls"), Noted("closing"), JobEnded("budget"))
        assert self.told(path, *events) == ["noted", "budget_ended", "noted"]

    def test_with_more_budget_all_since_the_cap_is_dropped(self, path: Path) -> None:
        events = (Noted("a"), BudgetEnded("calls"), Noted("closing"), JobEnded("budget"))
        assert self.told(path, *events, more_budget=True) == ["noted"]

    def test_an_unfinished_or_missing_story_is_left_alone(self, path: Path) -> None:
        assert self.told(path, Noted("a"), more_budget=True) == ["noted"]
        reopen(path.with_name("nothing"), more_budget=True)


def test_events_are_plain_json_lines(path: Path) -> None:
    tell(path, Noted("a"))
    record: dict[str, Any] = json.loads(path.read_text().splitlines()[0])
    assert list(record) == ["n", "type", "what", "number", "clock"]
