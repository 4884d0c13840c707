"""The text game: a house that can be won, rules that decide how often, and a world that obeys its own laws."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.tasks import house as world
from sharpen.tasks.game import RULES, TURNS, KeysAndDoors, scripted_player
from sharpen.testing.tasks import FakeAttempt

GOOD = [rule.line for rule in RULES if "Look around" not in rule.line and "Wait" not in rule.line]


def play(lines: list[str], items: tuple[Item, ...]) -> dict[str, list[float]]:
    task = KeysAndDoors()
    skill = Candidate(task.seed().text + "".join(f"- {line}\n" for line in lines))
    won: dict[str, list[float]] = {}
    for item in items:
        outcome = asyncio.run(task.rollout(item, skill, FakeAttempt(scripted_player)))
        assert outcome.hard is not None
        won.setdefault(item.type, []).append(outcome.hard)
    return won


def rate(lines: list[str]) -> float:
    won = [score for scores in play(lines, KeysAndDoors().splits().val).values() for score in scores]
    return sum(won) / len(won)


def test_all_good_rules_together_win_every_house() -> None:
    splits = KeysAndDoors().splits()
    assert all(all(won) for won in play(GOOD, splits.val + splits.test).values())


def test_without_rules_the_player_wanders_and_mostly_loses() -> None:
    assert rate([]) < 0.2


@pytest.mark.parametrize("missing", GOOD)
def test_every_good_rule_is_needed(missing: str) -> None:
    assert rate([line for line in GOOD if line != missing]) < 0.95


@pytest.mark.parametrize(("word", "kind"), [("drawer", "drawer"), ("chest", "chest"), ("lamp", "dark")])
def test_a_rule_is_needed_where_its_obstacle_stands(word: str, kind: str) -> None:
    won = play([line for line in GOOD if word not in line], KeysAndDoors().splits().val)
    assert sum(won[kind]) / len(won[kind]) < 0.7
    assert all(all(others) for name, others in won.items() if name != kind)


@pytest.mark.parametrize("bad", [rule.line for rule in RULES if rule.line not in GOOD])
def test_bad_advice_costs_games(bad: str) -> None:
    some = GOOD[:-1]
    assert rate([*some, bad]) < rate(some)


def test_rules_can_be_put_in_other_words() -> None:
    assert (
        rate(
            [
                "Always TAKE everything.",
                "open each drawer",
                "open any chest",
                "Unlock doors.",
                "Prefer unvisited rooms.",
            ]
        )
        == 1.0
    )


def test_a_game_is_a_conversation_of_at_most_twelve_turns_without_the_skill_in_its_record() -> None:
    task = KeysAndDoors()
    item = task.splits().val[0]
    fake = FakeAttempt("wait")
    outcome = asyncio.run(task.rollout(item, task.seed(), fake))
    assert len(fake.requests) == TURNS == task.calls_per_rollout
    assert (outcome.hard, outcome.soft, outcome.feedback) == (0.0, 0.0, "never held the key")
    assert all(message.role != "system" for message in outcome.trajectory)
    assert all(request.messages[0].role == "system" and request.shared == 1 for request in fake.requests)


houses = st.builds(
    lambda kind, seed: world.build(kind, Stream(seed, kind)), st.sampled_from(world.KINDS), st.integers(0, 999)
)


@given(houses, st.lists(st.integers(0, 9), max_size=20))
def test_listed_commands_work_and_progress_is_never_lost(house: world.House, choices: list[int]) -> None:
    state = world.State()
    for choice in choices:
        listed = world.commands(house, state)
        command = listed[choice % len(listed)]
        after = world.step(house, state, command)
        assert (after != state) == (command not in ("look", "wait"))
        assert after.reached >= state.reached and after.held >= state.held
        state = after
    reached = [milestone in state.reached for milestone in world.MILESTONES]
    assert reached == sorted(reached, reverse=True), "a later milestone without an earlier one"
    assert bool(world.shortfall(house, state)) != state.won


@given(houses, st.text(max_size=20))
def test_other_commands_change_nothing(house: world.House, command: str) -> None:
    state = world.State()
    if " ".join(command.casefold().strip(" .`\"'").split()) not in world.commands(house, state):
        assert world.step(house, state, command) == state


@given(houses)
def test_a_house_survives_being_written_as_inputs(house: world.House) -> None:
    assert world.House.from_inputs(house.inputs()) == house
