"""Counter-based randomness: decided by seed and scope alone, and fair."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.rng import Stream

FIRST_WORDS = [12090365302583749817, 14184863735134183478, 7416672821869379049]
FIRST_SHUFFLE = [4, 6, 9, 5, 3, 2, 0, 1, 8, 7]

scopes = st.lists(st.one_of(st.text(max_size=8), st.integers(-5, 5)), max_size=4)


@given(st.integers(), scopes)
def test_the_same_seed_and_scope_give_the_same_numbers(seed: int, scope: list[str | int]) -> None:
    first, second = Stream(seed, *scope), Stream(seed, *scope)
    assert [first.word() for _ in range(20)] == [second.word() for _ in range(20)]


@given(st.integers(), scopes, st.integers(), scopes)
def test_another_seed_or_scope_gives_other_numbers(
    seed: int, scope: list[str | int], other_seed: int, other_scope: list[str | int]
) -> None:
    same = seed == other_seed and [*map(repr, scope)] == [*map(repr, other_scope)]
    assert (Stream(seed, *scope).word() == Stream(other_seed, *other_scope).word()) == same


def test_scopes_do_not_run_together() -> None:
    words = [Stream(1, *scope).word() for scope in (("ab",), ("a", "b"), ("a,b",), ("a", 1), ("a", "1"), ("a", 11))]
    assert len(set(words)) == len(words)


def test_the_numbers_never_change_between_versions() -> None:
    """Results of old runs rest on these: a change of algorithm is a change of every result."""
    stream = Stream(42, "batch", 3)
    assert [stream.word() for _ in range(3)] == FIRST_WORDS
    assert Stream(42, "batch", 3).shuffled(range(10)) == FIRST_SHUFFLE


@given(st.integers(), st.lists(st.integers()))
def test_shuffling_permutes_and_leaves_the_original_alone(seed: int, values: list[int]) -> None:
    before = list(values)
    assert sorted(Stream(seed).shuffled(values)) == sorted(before)
    assert values == before


@given(st.integers(), st.integers(1, 2**70))
def test_below_stays_below(seed: int, bound: int) -> None:
    assert 0 <= Stream(seed).below(min(bound, 2**64)) < bound


@given(st.integers(), st.lists(st.integers(), unique=True), st.integers(0, 12))
def test_a_sample_has_no_repeats(seed: int, values: list[int], k: int) -> None:
    drawn = Stream(seed).sample(values, k)
    assert len(drawn) == len(set(drawn)) == min(k, len(values))
    assert set(drawn) <= set(values)


def test_below_is_fair_where_the_bound_does_not_divide_the_range() -> None:
    """Of bounds near 2^64 * 2/3 a plain remainder would favour the lower half two to one."""
    bound = (1 << 64) // 3 * 2
    stream = Stream(7, "bias")
    low = sum(stream.below(bound) < bound // 2 for _ in range(4000))
    assert abs(low - 2000) < 5 * 1000**0.5


def test_floats_fill_the_unit_interval_evenly() -> None:
    stream = Stream(3, "uniform")
    draws = [stream.random() for _ in range(20_000)]
    assert all(0 <= x < 1 for x in draws)
    counts = Counter(int(x * 20) for x in draws)
    chi = sum((counts[cell] - 1000) ** 2 / 1000 for cell in range(20))
    assert chi < 50, "19 degrees of freedom: 44 is the 99.9 % point"


def test_every_order_of_three_is_equally_likely() -> None:
    stream = Stream(5)
    orders = Counter(tuple(stream.shuffled("abc")) for _ in range(6000))
    assert len(orders) == 6
    assert all(abs(count - 1000) < 150 for count in orders.values())


@pytest.mark.parametrize("bound", [0, -1])
def test_an_empty_range_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        Stream(0).below(bound)
    with pytest.raises(ValueError, match="positive"):
        Stream(0).choice([])
