"""The checks of `sharpen doctor` as pure functions: from what was seen or measured to a finding.

A finding says what was seen, in how far that matters (`ok`, `warn`: look at it, `stop`: do not train like this), and what
would mend it. What follows from costs is in `doctor_estimate.py`; nothing here measures anything.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import fmean

from sharpen.bench.doctor_overlap import Overlap
from sharpen.core.digest import Json, canonical
from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.skill.leaks import Leak
from sharpen.stats.detectable import Noise, items_needed, smallest_effect
from sharpen.stats.summary import summarise

CEILING = 0.95
_SHOWN = 3
_WITHOUT_PROOF = ("strict", "force")
_BETTER_JUDGE = "give the judge clearer criteria, or take a better one"
_LONG = 70


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True)
class Finding:
    """What one check saw. `advice` is empty where there is nothing to do."""

    check: str
    level: Level
    what: str
    detail: tuple[str, ...] = ()
    advice: str = ""

    def record(self) -> dict[str, Json]:
        return {**dataclasses.asdict(self), "detail": list(self.detail)}


@dataclass(frozen=True)
class Marks:
    """What the scorer gave to answers that are known to be right or wrong, item by item; `wrong` is the empty answer."""

    right: Mapping[str, float]
    wrong: Mapping[str, float]
    cut: int = 0
    """Right answers that `max_tokens`, or the stop of the rendering, would cut short."""


@dataclass(frozen=True)
class Contest:
    """A comparison on `items` items at a one-sided `level`; `draws` attempts share out the noise of an item."""

    name: str
    items: int
    level: float
    draws: int = 1


def scorer(marks: Marks, tolerated: float = 0.1) -> Finding:
    """Whether right answers score 1 and empty ones 0. A share of up to `tolerated` that don't is worth a look, no more."""
    low = [name for name, score in marks.right.items() if score < 1.0]
    high = [name for name, score in marks.wrong.items() if score > 0.0]
    detail, advice = [], []
    if low:
        detail.append(f"right answers score {fmean(marks.right.values()):.2f} on average; below 1: {_some(low)}")
        advice.append(
            "right answers would arrive cut short: raise task.max_tokens, or take a rendering that lets them have lines"
            if marks.cut
            else "mend the metric or the answers in the data, so that a right answer scores 1"
        )
    if high:
        detail.append(f"the empty answer scores {fmean(marks.wrong.values()):.2f} on average; above 0: {_some(high)}")
        advice.append("mend the metric, so that saying nothing scores 0")
    if low or high:
        bad = max(len(low) / max(1, len(marks.right)), len(high) / max(1, len(marks.wrong)))
        wrong = [f"{len(low)} of {len(marks.right)} right answers score below 1"] if low else []
        wrong += [f"{len(high)} of {len(marks.wrong)} empty answers score above 0"] if high else []
        level = Level.STOP if bad > tolerated else Level.WARN
        return Finding("scorer", level, "; ".join(wrong), tuple(detail), "; ".join(advice))
    if not marks.right:
        what = f"empty answers score 0 ({len(marks.wrong)} items); the task names no right answers to try"
        return Finding("scorer", Level.OK, what)
    return Finding("scorer", Level.OK, f"right answers score 1, empty ones 0 ({len(marks.right)} items tried)")


def overlap(found: Overlap, splits: Splits) -> Finding:
    """Whether val and test hold what train, or each other, hold too."""
    detail = [
        f"{pair.alike:.0%} alike: {pair.one} ({pair.one_split}) and {pair.other} ({pair.other_split}): {_short(pair.text)}"
        for pair in found.pairs[:_SHOWN]
    ]
    detail += [f"different answers to the same input: {_short(text)}" for text in found.conflicts[:_SHOWN]]
    share = max(found.touched[name] / max(1, len(splits[name])) for name in ("val", "test"))
    parts, advice = [], []
    if found.pairs:
        touched = " and ".join(f"{found.touched[name]} of {len(splits[name])} {name} items" for name in found.touched)
        parts.append(f"near-duplicates in other splits: {touched}")
        advice.append("take near-duplicates out, or keep them in one split: what was trained on proves nothing")
    if found.conflicts:
        parts.append(f"{_count(len(found.conflicts), 'input')} with more than one answer")
        advice.append("settle which answer is right: nobody can score on both")
    if not parts:
        return Finding("overlap", Level.OK, "no near-duplicates between the splits")
    level = Level.STOP if share > 0.1 else Level.WARN
    return Finding("overlap", level, "; ".join(parts), tuple(detail), "; ".join(advice))


def leaks(found: Sequence[Leak], splits: Splits) -> Finding:
    """Whether the skill that training starts from gives val or test items away."""
    if not found:
        return Finding("start", Level.OK, "the skill to start from gives no val or test item away")
    level = Level.STOP if len(found) > 0.1 * (len(splits.val) + len(splits.test)) else Level.WARN
    detail = tuple(f"{leak.item_id} ({leak.split}), {leak.kind}: {leak.match}" for leak in found[:_SHOWN])
    what = f"the skill to start from gives {_count(len(found), 'item')} of val and test away"
    return Finding("start", level, what, detail, "take val and test items out of the skill to start from")


def balance(items: Sequence[Item], score: float | None) -> Finding:
    """How far always giving the commonest answer would get. `items` are those that judge; `score` is the start's."""
    answers = Counter(canonical(item.reference) for item in items if item.reference is not None)
    if not answers:
        return Finding("balance", Level.OK, "items have no reference answers to count")
    answer, count = answers.most_common(1)[0]
    share = count / sum(answers.values())
    if share < 0.05 or count == 1:
        return Finding("balance", Level.OK, f"{len(answers)} different answers; guessing one gets {share:.0%}")
    what = f"{len(answers)} different answers; always saying {_short(answer, 30)} would get {share:.0%}"
    if share >= 0.9:
        return Finding("balance", Level.WARN, what, (), "balance val and test: a constant answer is nearly right there")
    if score is not None and score <= share and len(answers) <= 20:
        detail = (f"the start scores {score:.2f}, no better than that: a gain up to {share:.2f} may be a guess",)
        return Finding("balance", Level.OK, what, detail)
    return Finding("balance", Level.OK, what)


def headroom(hard: Sequence[float], soft: Sequence[float], failed: int, groups: Sequence[str] | None = None) -> Finding:
    """How much there is to gain. The scores are those of items, each the mean of its attempts."""
    found = summarise(hard, groups=groups)
    if found.mean is None or found.low is None or found.high is None:
        return Finding("headroom", Level.STOP, "no attempt could be scored", (), "find out why rollouts fail")
    what = f"the start scores {found.mean:.3f} on {_count(found.n, 'val item')}: {1 - found.mean:.3f} to gain"
    detail = [f"95 % interval of the score [{found.low:.3f}, {found.high:.3f}], soft score {fmean(soft):.3f}"]
    detail += [f"{_count(failed, 'rollout')} failed and are left out"] if failed else []
    level, advice = (Level.WARN if failed else Level.OK), ("see why rollouts fail" if failed else "")
    if found.mean > CEILING:
        level, advice = Level.STOP, "nothing is left to gain: take harder items or a stricter metric"
    elif max(soft) == 0.0:
        level = Level.WARN
        advice = "nothing scores at all, not even in part: training can only learn from the answers in train"
    return Finding("headroom", level, what, tuple(detail), advice)


def without_ceiling(scores: Sequence[float], failed: int, groups: Sequence[str] | None = None) -> Finding:
    """What the start scores, where no upper end of the scores says how much there is to gain."""
    found = summarise(scores, low=-inf, high=inf, groups=groups)
    if found.mean is None:
        return Finding("headroom", Level.STOP, "no attempt could be scored", (), "find out why rollouts fail")
    what = f"the start scores {found.mean:.3f} on {_count(found.n, 'val item')}; how much there is to gain is not known"
    detail = ["one value tells nothing of the spread"]
    if found.low is not None and found.high is not None:
        detail = [f"95 % interval of the score [{found.low:.3f}, {found.high:.3f}]"]
    if failed:
        detail.append(f"{_count(failed, 'rollout')} failed and are left out")
        return Finding("headroom", Level.WARN, what, tuple(detail), "see why rollouts fail")
    return Finding("headroom", Level.OK, what, tuple(detail))


def chance(noise: Noise | None, hard: Sequence[float], val: int) -> Finding:
    """What chance alone does to scores, where the model may answer differently."""
    if noise is None:
        what = "unknown: every item was attempted once; the worst that this score allows is assumed"
        return Finding("noise", Level.WARN, what, (), "attempt items several times: --repeats 3")
    mean = fmean(hard)
    what = f"{noise.flipping:.0%} of the items change their score from attempt to attempt"
    error = noise.standard_error(val)
    detail = [f"chance alone moves the mean of {val} val items by {error:.3f} (standard error, one attempt each)"]
    if not 0.1 <= mean <= 0.9:
        detail.append(f"at a score of {mean:.2f} little can vary: there may be more noise once training has changed it")
    if noise.within > 0.5 * mean * (1.0 - mean) and noise.within > 0.02:
        advice = "more than half of the spread in scores is chance: lower the temperature, or give more val items"
        return Finding("noise", Level.WARN, what, tuple(detail), advice)
    return Finding("noise", Level.OK, what, tuple(detail))


def same_again(differing: int, tried: int) -> Finding:
    """Whether a model that claims to answer the same every time does."""
    if tried == 0:
        return Finding("noise", Level.OK, "the model answers the same every time, by its own account (not checked)")
    if differing:
        what = f"the model counts as deterministic, but {differing} of {tried} attempts ended differently when repeated"
        advice = "ask it with models.temperature above 0, so that its draws are counted as draws"
        return Finding("noise", Level.WARN, what, (), advice)
    what = f"none: the model answers the same every time, so repeats tell nothing ({tried} checked)"
    return Finding("noise", Level.OK, what)


def detectable(contest: Contest, within: float, room: float) -> Finding:
    """The smallest gain this comparison can tell from luck, against all there is to gain."""
    name = f"gain on {contest.name}"
    found = smallest_effect(contest.items, within / contest.draws, contest.level)
    wish = min(0.1, room / 2)
    wanted = items_needed(wish, within / contest.draws, contest.level) if wish > 0 else None
    enough = "" if wanted is None or wanted <= contest.items else f"{wanted} would show a gain of {wish:.2f}"
    if found is None or found > room:
        what = f"{_count(contest.items, 'item')} can't tell even a perfect skill from luck"
        return Finding(
            name, Level.STOP, what, (), f"give {contest.name} more items" + (f"; {enough}" if enough else "")
        )
    what = f"{_count(contest.items, 'item')} show a true gain of {found:.3f} 8 times in 10, if nothing gets worse"
    if found > room / 2:
        advice = f"give {contest.name} more items" + (f"; {enough}" if enough else "")
        return Finding(name, Level.WARN, what, ("that is more than half of all there is to gain",), advice)
    return Finding(name, Level.OK, what, (enough,) if enough else ())


def proof(gate: str) -> list[Finding]:
    """A gate that asks for no proof is worth a look; one from another package is taken to ask for it."""
    if gate not in _WITHOUT_PROOF:
        return []
    what = f"{gate} lets changes in without proof: what is said about val holds for a gate that asks for it"
    return [Finding("gate", Level.WARN, what, (), "leave the gate at sequential, unless you compare gates")]


def agreement(first: Sequence[float], second: Sequence[float]) -> Finding:
    """Whether a judge says the same of the same attempt when asked again."""
    if not first:
        what = "the judge's verdicts could not be asked for again"
        return Finding("judge", Level.WARN, what, (), "score some attempts by hand and compare")
    same = fmean(float((a >= 0.5) == (b >= 0.5)) for a, b in zip(first, second, strict=True))
    apart = fmean(abs(a - b) for a, b in zip(first, second, strict=True))
    value = kappa(first, second)
    what = f"agrees with itself on {same:.0%} of {_count(len(first), 'attempt')}"
    detail = (f"Cohen's kappa {'–' if value is None else f'{value:.2f}'}, scores {apart:.3f} apart on average",)
    if same < 0.9:
        level = Level.STOP if same < 0.7 else Level.WARN
        return Finding("judge", level, what, detail, _BETTER_JUDGE)
    return Finding("judge", Level.OK, what, detail)


def judge_marks(marks: Marks) -> Finding:
    """The same of a judge, with few items, since every verdict is paid for: one slip is no proof that it can't judge."""
    found = dataclasses.replace(scorer(marks, tolerated=0.3), check="judge's marks")
    return dataclasses.replace(found, advice=_BETTER_JUDGE) if found.advice else found


def kappa(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cohen's kappa of two ratings, read as passed or not; None where one verdict is all there is."""
    passed = [(a >= 0.5, b >= 0.5) for a, b in zip(first, second, strict=True)]
    one, other = (fmean(float(pair[side]) for pair in passed) for side in (0, 1))
    by_chance = one * other + (1 - one) * (1 - other)
    if by_chance == 1.0:
        return None
    return (fmean(float(a == b) for a, b in passed) - by_chance) / (1 - by_chance)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(text: str, most: int = _LONG) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
