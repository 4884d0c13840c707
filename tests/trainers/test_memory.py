"""What a training remembers: patterns with the items that show them, and rejected changes with what they cost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharpen.skill.edits import Edit, Op
from sharpen.trainers.reflact.answers import Pattern
from sharpen.trainers.reflact.memory import FailurePattern, Memory, Remembered, belonging
from sharpen.trainers.reflact.patches import Rewriting, Suggestion

ids = st.sampled_from(["a", "b", "c", "d", "../../escape", ""])
named = st.builds(Pattern, pattern=st.sampled_from(["units", " dates ", "", "  "]), items=st.lists(ids, max_size=6))


@given(st.lists(named, max_size=5), st.sets(ids, max_size=4))
def test_a_pattern_keeps_exactly_those_of_its_items_that_its_reader_was_shown(
    patterns: list[Pattern], shown: set[str]
) -> None:
    found = belonging(patterns, shown)
    wanted = [(p.pattern.strip(), set(p.items) & shown) for p in patterns if p.pattern.strip() and set(p.items) & shown]
    assert [(p.pattern, set(p.items)) for p in found] == wanted
    assert all(len(set(p.items)) == len(p.items) == p.record()["count"] for p in found)


def test_a_pattern_is_never_given_items_of_another_one() -> None:
    arithmetic, timeouts = Pattern(pattern="arithmetic", items=["x1"]), Pattern(pattern="timeout", items=["y1", "y2"])
    expected = (FailurePattern("arithmetic", ("x1",)), FailurePattern("timeout", ("y1", "y2")))
    assert belonging([arithmetic, timeouts], ["y2", "y1", "x1"]) == expected
    assert belonging([arithmetic, timeouts], ["y1", "y2"]) == (FailurePattern("timeout", ("y1", "y2")),)


def step(number: int, epoch: int, *contents: str, effect: float | None = None) -> Remembered:
    rejected = tuple(Edit(Op.APPEND, content, source="analysts", items=("i",)) for content in contents)
    pattern = FailurePattern(f"pattern {number}", ("i",))
    action = "reject" if rejected else "accept"
    return Remembered(number, epoch, action, 8, 3, (pattern,), 0.5, 0.25, effect, effect, effect, rejected)


def test_steps_are_told_until_their_epoch_ends_and_rejected_changes_for_longer() -> None:
    memory = Memory()
    for remembered in (step(1, 1, "bad idea", effect=-0.123456), step(2, 1), step(3, 2)):
        memory.add(remembered)
    first, second = memory.told(1), memory.told(2)
    assert [one["step"] for one in first["steps"]] == [1, 2] and [one["step"] for one in second["steps"]] == [3]
    assert second["steps"][0]["patterns"] == [{"pattern": "pattern 3", "count": 1, "items": ["i"]}]
    (rejected,) = second["rejected"]
    assert rejected["step"] == 1 and rejected["change"]["content"] == "bad idea"
    assert rejected["effect"] == -0.1235 and rejected["between"] == [-0.1235, -0.1235]


def test_of_many_rejected_changes_the_latest_are_told_first() -> None:
    memory = Memory()
    for number in range(1, 9):
        memory.add(step(number, 1, f"idea {number}", f"other {number}", effect=-0.1))
    told = [one["step"] for one in memory.told(1)["rejected"]]
    assert told == [8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3]


def test_every_kind_of_change_can_be_remembered() -> None:
    changes = (Suggestion("add_rule", "t", "do it", source="x"), Rewriting({"": "# New\n"}, "why", 2, "x"))
    memory = Memory([Remembered(1, 1, "reject", 8, 3, rejected=changes)])
    suggestion, rewriting = (one["change"] for one in memory.told(1)["rejected"])
    assert suggestion["instruction"] == "do it" and rewriting["texts"] == {"": "# New\n"}
    assert "source" not in suggestion and "source" not in rewriting
