"""The policies of searches, which are pure: whom to explore, who stays, what is novel, what can be merged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.rng import Stream
from sharpen.trainers.search.merging import cross
from sharpen.trainers.search.novelty import novel
from sharpen.trainers.search.pareto_search import FrontMember, LowestRank, ranks
from sharpen.trainers.search.pool import Member, Pool, fronts, leader, undominated
from sharpen.trainers.search.priority import ByPriority, Memory, Priority
from sharpen.trainers.search.retention import BestOnStep, HighestBound, MostWins
from sharpen.trainers.search.selection import ParetoBeam, ParetoSample, ParetoUCB, View

ITEMS = ("a", "b", "c", "d")


def pool(*rows: str, **changes: list[Any]) -> Pool:
    """A member per row of scores on `ITEMS`: `1`, `0`, or `-` for a rollout that failed, ` ` for none."""
    found = Pool()
    for number, row in enumerate(rows):
        found = found.added(Candidate(f"member {number}"), (), number)
        scores = {item: None if s == "-" else float(s) for item, s in zip(ITEMS, row, strict=False) if s != " "}
        found = found.scored(number, scores)
        for name, values in changes.items():
            found = found._with(number, **{name: values[number]})
    return found


def view(members: Pool, iteration: int = 1) -> View:
    ahead = leader(members, ITEMS)
    return View(members, iteration, ITEMS, 0 if ahead is None else ahead.number)


def test_equals_share_an_item_and_who_wins_less_of_the_same_is_dominated() -> None:
    won = fronts(pool("1100", "1000", "0010", "----").members, ITEMS)
    assert {number: sorted(own) for number, own in won.items()} == {
        0: ["a", "b", "d"],
        1: ["a", "d"],
        2: ["c", "d"],
        3: [],
    }
    assert undominated(won) == [0, 2]


def test_a_failed_rollout_is_no_zero() -> None:
    members = pool("-", "0---", "1---")
    assert [member.mean(ITEMS) for member in members] == [None, 0.0, 1.0]
    assert leader(pool("----", "0000"), ITEMS) == pool("----", "0000")[1]
    again = members.scored(2, {"a": None})
    assert again[2].mean(ITEMS) == 1.0


def test_pareto_sampling_draws_by_items_won_and_never_who_is_dominated() -> None:
    members = pool("1110", "0001", "1000")
    drawn = Counter(ParetoSample().choose(view(members), Stream(0, n))[0] for n in range(400))
    assert set(drawn) == {0, 1} and 2.2 < drawn[0] / drawn[1] < 4.2


def test_the_exploration_factor_of_gepa_ucb_decides_between_proven_and_new() -> None:
    members = pool("1110", "0001", explored=[9, 0])
    assert ParetoUCB(0.0).choose(view(members, 10), Stream(0)) == [0]
    assert ParetoUCB(0.8).choose(view(members, 10), Stream(0)) == [1]


def test_a_beam_takes_the_front_first_and_then_the_next_best() -> None:
    members = pool("1100", "1000", "0001", "0000")
    assert ParetoBeam(2).choose(view(members), Stream(0)) == [0, 2]
    assert ParetoBeam(3).choose(view(members), Stream(0)) == [0, 2, 1]


@pytest.mark.parametrize(
    ("score_function", "exploration", "order"),
    [("mean", 1.0, [2, 0, 1, 3]), ("ucb", 0.1, [3, 2, 0, 1]), ("ucb", 2.0, [3, 1, 2, 0]), ("time", 1.0, [3, 2, 1, 0])],
)
def test_priorities(score_function: Any, exploration: float, order: list[int]) -> None:
    members = list(pool("1010", "0", "1110", "-"))
    ranked = Priority(score_function, exploration).order(members, 5)
    assert [member.number for member in ranked] == order


def test_the_leader_is_explored_only_where_that_is_wanted() -> None:
    members = pool("1111", "0000", "0000")
    newest = Memory(Priority("time"))
    assert ByPriority(2, newest).choose(view(members), Stream(0)) == [0, 2]
    assert ByPriority(2, newest, use_best_candidate_to_explore=False).choose(view(members), Stream(0)) == [2, 1]


def test_a_full_memory_drops_the_worst() -> None:
    members = pool("1000", "1100", "0000", "1110")
    assert Memory(Priority(), long_term_memory_size=2).keep(view(members)) == {1, 3}
    assert Memory(Priority(), short_term_memory_size=3, memory_update_frequency=None).keep(view(members)) == {0, 1, 3}


def test_the_short_shelf_is_looked_at_alone_until_both_become_one() -> None:
    members = pool("1111", "1110", "1100", "1000", touched=[0, 1, 4, 5])
    memory = Memory(Priority(), long_term_memory_size=1, short_term_memory_size=1, memory_update_frequency=3)
    looked_at = {n: [m.number for m in memory.looked_at(view(members, n))] for n in (4, 5, 6, 7)}
    assert looked_at == {4: [0, 1, 2, 3], 5: [2, 3], 6: [2, 3], 7: [0, 1, 2, 3]}
    assert memory.keep(view(members, 5)) == {0, 2}
    assert memory.keep(view(members, 6)) == {0}


def test_who_leaves() -> None:
    members = pool("1100", "1000", "0011", "0000", explored=[1, 1, 1, 0])
    assert MostWins(2).keep(view(members), ITEMS) == {0, 2}
    assert BestOnStep(2).keep(view(members), ("c", "d")) == {2, 0}
    assert HighestBound(3, ParetoUCB(0.0)).keep(view(members), ITEMS) == {0, 1, 2}
    assert HighestBound(3, ParetoUCB(5.0)).keep(view(members, 9), ITEMS) == {0, 3, 2}


def test_novel_are_those_far_from_memory_and_from_each_other() -> None:
    text = "Answer with one word. " * 5
    memory = [Candidate(text)]
    new = [Candidate(text), Candidate(text + "!"), Candidate("Nothing alike"), Candidate("Nothing alike.")]
    assert novel(new, memory, 0.0) == [1, 2, 3]
    assert novel(new, memory, 0.5) == [3]
    assert novel(new, [], 1.5) == [0], "the first of an empty memory is novel, whatever epsilon says"


def parts(**texts: str) -> Candidate:
    return Candidate({"SKILL.md": "same", **texts})


def family() -> Pool:
    """The start, two children that differ in two parts, and a grandchild."""
    start = Pool().added(parts(a="0", b="0"), (), 0)
    return (
        start.added(parts(a="1", b="0"), [0], 1).added(parts(a="0", b="2"), [0], 1).added(parts(a="3", b="3"), [1], 2)
    )


def test_a_merging_takes_something_of_both_and_never_of_kin() -> None:
    pairs = {frozenset((1, 2)), frozenset((2, 3))}
    seen = {member.candidate.digest for member in family()}
    for draw in range(20):
        found = cross(family(), (), seen, Stream(0, draw))
        assert found is not None and frozenset((found.one.number, found.other.number)) in pairs
        assert found.candidate.digest not in seen
        mixed = [(found.candidate[name], found.one.candidate[name], found.other.candidate[name]) for name in "ab"]
        assert sorted(text == one for text, one, _ in mixed) == [False, True]
    assert cross(family(), pairs, seen, Stream(0)) is None


def test_a_single_part_can_not_be_merged() -> None:
    members = Pool().added(Candidate("0"), (), 0).added(Candidate("1"), [0], 1).added(Candidate("2"), [0], 1)
    assert cross(members, (), set(), Stream(0)) is None


def test_a_pool_keeps_count_of_all_that_were_ever_born() -> None:
    members = family().keeping({0, 3})
    assert [member.number for member in members] == [0, 3] and members[3].ancestors == {0, 1}
    grown = members.added(parts(a="4"), [3], 3)
    assert grown.newest == Member(4, parts(a="4"), (3,), 3, {}, frozenset({0, 1, 3}), 0, 3)
    assert members.visited([3], 7)[3].explored == 1 and members.visited([3], 7)[3].touched == 7


def test_the_leader_has_a_place_among_those_who_stay() -> None:
    old_and_good = Memory(Priority("time"), long_term_memory_size=2)
    assert old_and_good.keep(view(pool("1111", "0000", "0000", "0000"))) == {0, 3}
    assert BestOnStep(1).keep(view(pool("1110", "0001")), ("d",)) == {0}


def test_whoever_nobody_beats_in_all_aims_may_be_built_on_and_is_kept_first() -> None:
    aims = [[(3.0, 0.0), (0.0, 3.0), (2.0, -1.0), (0.0, -2.0), ()]]
    members = pool("0000", "0001", "1111", "1110", "0011", aims=aims[0])
    seen = view(members)
    assert ranks(seen) == [[0, 1], [2], [3]]
    drawn = Counter(FrontMember().choose(seen, Stream(0, n))[0] for n in range(100))
    assert set(drawn) == {0, 1} and min(drawn.values()) > 25
    assert FrontMember().choose(view(members.visited([0], 1)), Stream(0)) == [1], (
        "who was explored least often goes first"
    )
    assert LowestRank(3).keep(seen, ITEMS) == {0, 1, 2}
    assert LowestRank(2).keep(seen, ITEMS) == {1, 2}, "the leader stays, then the front by its mean"
    assert FrontMember().choose(view(pool("0000", "1111")), Stream(0)) == [1], "without aims, the leader"
