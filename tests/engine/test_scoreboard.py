"""A packed table must be a table: the same number for the same key however many there are, and nothing mixed up."""

from __future__ import annotations

import math
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.engine.evaluation import Group, Scores
from sharpen.engine.scoreboard import NOBODY, Scoreboard, Wishes
from sharpen.ledger.keys import RolloutKeys

A, B = Candidate("skill A"), Candidate("skill B")
ITEMS = [Item(f"i{n}", {"input": str(n)}) for n in range(5)]


def digest(n: int) -> bytes:
    return sha256(str(n).encode()).digest()[:16]


crowded = st.binary(min_size=16, max_size=16).map(lambda key: bytes(7) + key[7:])
"""Keys whose first bytes are all alike, so that they want the same place in the table."""


@given(st.lists(crowded | st.sampled_from([bytes(16), bytes(8) + b"\xff" * 8, b"\xff" * 16]), max_size=200))
def test_numbers_are_given_in_order_of_first_mention_and_stay(keys: list[bytes]) -> None:
    board, numbers = Scoreboard(), dict[bytes, int]()
    for key in keys:
        assert board.find(key) == numbers.get(key)
        assert board.number(key) == numbers.setdefault(key, len(numbers))
    assert len(board) == len(numbers)
    assert all(board.key(number) == key and board.find(key) == number for key, number in numbers.items())


def test_many_rollouts_keep_their_scores_apart() -> None:
    board = Scoreboard()
    for n in range(5000):
        number = board.number(digest(n))
        assert not board.is_known(number) and board.carrier[number] == NOBODY
        if n % 3:
            board.hard[number], board.soft[number] = 0.0, n / 5000
    for n in range(5000):
        number = board.number(digest(n))
        assert board.is_known(number) == bool(n % 3)
        assert board.soft[number] == n / 5000 or not n % 3
    assert len(board) == 5000 and board.find(digest(5000)) is None


def test_wishes_find_their_group_and_item_and_name_each_rollout_once() -> None:
    board = Scoreboard()
    one, none, two = Group(A, ITEMS[:3]), Group(B, []), Group(B, [ITEMS[4], ITEMS[1], ITEMS[4]], 1)
    again = Group(A, [ITEMS[2], ITEMS[3]])
    wishes = Wishes([one, none, two, again], RolloutKeys("t", "1", {}, "chat", 0), board)
    assert list(wishes.firsts) == [0, 1, 2, 3, 4, 7], "an item wished for twice is one rollout"
    assert [wishes.at(place) for place in (0, 2, 3, 5, 7)] == [
        (one, ITEMS[0]), (one, ITEMS[2]), (two, ITEMS[4]), (two, ITEMS[4]), (again, ITEMS[3]),
    ]  # fmt: skip
    assert [(group, list(numbers)) for group, numbers in wishes.by_group()] == [
        (one, [0, 1, 2]), (none, []), (two, [3, 4, 3]), (again, [2, 5]),
    ]  # fmt: skip


@given(st.lists(st.none() | st.floats(0, 1)))
def test_packed_scores_read_like_the_list_they_were(scores: list[float | None]) -> None:
    packed = Scores(math.nan if score is None else score for score in scores)
    assert packed == scores and list(packed) == scores and len(packed) == len(scores)
    assert [packed[n] for n in range(-len(scores), len(scores))] == scores + scores
    assert packed[1:3] == scores[1:3] and packed != [*scores, 0.5]
