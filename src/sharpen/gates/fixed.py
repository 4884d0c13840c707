"""What the gates that look only once share: one draw of each arm on every item, then a single look at all the pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sharpen.gates.base import Draw, Evidence, Need, Pair, Verdict

Judge = Callable[[Sequence[float], Sequence[float]], Verdict]


def one_look(evidence: Evidence, judge: Judge) -> Verdict | Need:
    """Ask for every first draw that is missing, then `judge` the new and the old scores of the items that have both."""
    missing = [draw for item, pair in enumerate(evidence.pairs) for draw in _first_draws(item, pair)]
    if missing:
        return Need(tuple(missing))
    pairs = [(p.new[0], p.old[0]) for p in evidence.pairs]
    both = [(new, old) for new, old in pairs if new is not None and old is not None]
    if not both:
        return Verdict(False, "no item could be compared: every one failed in an arm")
    return judge([new for new, _ in both], [old for _, old in both])


def _first_draws(item: int, pair: Pair) -> list[Draw]:
    return [Draw(item, arm, 0) for arm, draws in (("new", pair.new), ("old", pair.old)) if not draws]


def mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores)
