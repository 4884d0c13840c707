"""What makes two rollouts or two replies the same, and what does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.item import Item
from sharpen.ledger.keys import KEY_BYTES, RolloutKeys, reply_key

CANDIDATE = Candidate("skill")
ITEM = Item("a", {"input": "x"}, "y")
SETTING: dict[str, Any] = {
    "task": "t", "version": "1", "models": {"target": {"name": "m", "temperature": 0}}, "render": "system", "seed": 3
}  # fmt: skip
REQUEST = Request(messages=(Message("user", "hello"),), temperature=0.5, stop=("\n",), schema={"type": "object"})


def test_a_key_is_short_and_always_the_same() -> None:
    key = RolloutKeys(**SETTING).key(CANDIDATE, ITEM, 0)
    assert len(key) == KEY_BYTES
    assert RolloutKeys(**SETTING).key(Candidate("skill"), Item("a", {"input": "x"}, "y"), 0) == key


@pytest.mark.parametrize(
    "name,value",
    [
        ("task", "u"),
        ("version", "2"),
        ("models", {"target": {"name": "n", "temperature": 0}}),
        ("models", {"target": {"name": "m", "temperature": 1}}),
        ("models", {"target": {"name": "m", "temperature": 0}, "judge": {"name": "j"}}),
        ("render", "turns"),
        ("repeat", 1),
        ("seed", 4),
    ],
)
def test_whatever_may_change_a_rollout_changes_its_key(name: str, value: object) -> None:
    other = RolloutKeys(**{**SETTING, name: value})
    assert other.key(CANDIDATE, ITEM, 0) != RolloutKeys(**SETTING).key(CANDIDATE, ITEM, 0)


def test_candidate_item_and_sample_tell_rollouts_apart() -> None:
    keys = RolloutKeys(**SETTING)
    found = {
        keys.key(CANDIDATE, ITEM, 0),
        keys.key(Candidate("other"), ITEM, 0),
        keys.key(CANDIDATE, Item("b", {"input": "x"}, "y"), 0),
        keys.key(CANDIDATE, Item("a", {"input": "x"}, "z"), 0),
        keys.key(CANDIDATE, ITEM, 1),
    }
    assert len(found) == 5


def test_where_nothing_is_random_all_samples_are_one() -> None:
    keys = RolloutKeys(**{**SETTING, "seed": None})
    assert keys.key(CANDIDATE, ITEM, 0) == keys.key(CANDIDATE, ITEM, 7)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "hello"),)},
        {"messages": (Message("user", "hello"), Message("user", "hello"))},
        {"messages": (), "prompt": "hello"},
        {"max_tokens": 7},
        {"temperature": 0.25},
        {"stop": ()},
        {"schema": None},
        {"tools": ({"name": "look"},)},
    ],
)
def test_whatever_may_change_a_reply_changes_its_key(change: dict[str, Any]) -> None:
    other = dataclasses.replace(REQUEST, **change)
    assert reply_key("m", other, [0]) != reply_key("m", REQUEST, [0])


def test_model_and_draw_tell_replies_apart() -> None:
    assert len({reply_key("m", REQUEST, [0]), reply_key("n", REQUEST, [0]), reply_key("m", REQUEST, [1])}) == 3


def test_a_repetition_has_keys_of_its_own_and_the_first_has_those_of_old() -> None:
    assert (
        reply_key("m", REQUEST, None, repeat=1)
        != reply_key("m", REQUEST, None)
        == reply_key("m", REQUEST, None, repeat=0)
    )
    alone = RolloutKeys(**{**SETTING, "seed": None})
    again, first = (RolloutKeys(**{**SETTING, "seed": None}, repeat=repeat) for repeat in (2, 0))
    assert again.key(CANDIDATE, ITEM, 0) != alone.key(CANDIDATE, ITEM, 0) == first.key(CANDIDATE, ITEM, 0)


def test_a_hint_about_the_shared_prefix_changes_nothing() -> None:
    assert reply_key("m", dataclasses.replace(REQUEST, shared=1), [0]) == reply_key("m", REQUEST, [0])


def test_a_rollout_and_a_reply_never_share_a_key() -> None:
    assert RolloutKeys(**SETTING).key(CANDIDATE, ITEM, 0) != reply_key("m", REQUEST, [0])
