"""Merging: a candidate made of the parts of two members, neither of which descends from the other.

For every part in which the two differ a coin decides whose text it takes, and it takes something of both. So it needs a
skill of several parts in which the two differ twice; for a skill of one part there is nothing to merge.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.rng import Stream
from sharpen.trainers.search.pool import Member, Pool

_TRIES = 8


@dataclass(frozen=True)
class Cross:
    one: Member
    other: Member
    candidate: Candidate


def cross(pool: Pool, tried: Collection[frozenset[int]], seen: Collection[str], rng: Stream) -> Cross | None:
    """A merging of two members that were not merged before, into a candidate not `seen` (by digest) before; None where
    none was found among a few pairs."""
    pairs = [
        (one, other)
        for number, one in enumerate(pool.members)
        for other in pool.members[number + 1 :]
        if one.number not in other.ancestors and other.number not in one.ancestors
        if frozenset((one.number, other.number)) not in tried
    ]
    for one, other in rng.sample(pairs, _TRIES):
        candidate = _mixed(one.candidate, other.candidate, rng)
        if candidate is not None and candidate.digest not in seen:
            return Cross(one, other, candidate)
    return None


def _mixed(one: Candidate, other: Candidate, rng: Stream) -> Candidate | None:
    names = [name for name in one if name in other.parts and one[name] != other[name]]
    if len(names) < 2:
        return None
    order = rng.shuffled(names)
    # The first part is from the one and the second from the other; the rest as the coin falls.
    from_other = {order[1], *(name for name in order[2:] if rng.below(2))}
    return Candidate({name: other[name] if name in from_other else text for name, text in one.parts.items()})
