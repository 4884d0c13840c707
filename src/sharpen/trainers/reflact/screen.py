"""The second half of select: the alternatives of a step compete on train items for the place before the gate.

They compete by halving: all are tried on a few items, the better half on more, and whoever is clearly behind the leader is
out at once. The items are train items that none of the alternatives shows as an example. Once one is left and clearly better
than the current candidate, nothing more is to be learnt here.

Where the model always answers the same, how the current candidate does is known, and the competition is a race against it
too: items it fails and items it masters are tried, each kind weighed by how many there are, and whoever falls behind it is
out. After the first step most alternatives are worse than what they would replace, and a few items tell so for many of
them; what is saved pays for more steps. Where answers vary, a few items tell little, and only halving thins the field.

Whoever wins has only been chosen to be put before the gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.engine.evaluation import Group
from sharpen.engine.job import Job
from sharpen.engine.metric import HARD, Metric
from sharpen.gates.bounded_mean import p_value
from sharpen.skill import examples
from sharpen.trainers.reflact.rollout import FULL_MARKS
from sharpen.trainers.reflact.update import Update

_FIRST_ROUNDS = ((8, 4), (8, 8))
"""Items per round that the current candidate fails, and others, at the first step: all that comes later is built on its
winner. Where one kind runs short, the other fills up. After these the rest in one round."""
_ROUNDS = ((2, 2), (4, 4), (8, 8))
"""The same at later steps, where most alternatives are worse than what they would replace and a few items tell."""
_ROUNDS_WITH_NOISE = ((0, 12), (0, 16))
"""The same where answers vary and items are not told apart."""
_CLEAR = 0.1
"""One is clearly ahead of another where chance alone puts it so far ahead with at most this probability."""


@dataclass(frozen=True)
class Trial:
    """How far an alternative came: its mean over the items it was tried on, and that of the current candidate there."""

    number: int
    score: float | None
    items: int
    current: float | None = None

    @property
    def promising(self) -> bool:
        """Whether it did better than the current candidate on the items both were tried on, or was not tried."""
        return self.score is None or self.current is None or self.score > self.current

    @property
    def behind(self) -> bool:
        return self.score is not None and self.current is not None and self.score < self.current


@dataclass(frozen=True)
class _Ground:
    """The train items alternatives are tried on: those the current candidate fails, and the others. `noisy`: answers vary,
    and all are others. `wishes` are the sizes of the rounds."""

    failing: tuple[Item, ...]
    others: tuple[Item, ...]
    noisy: bool
    wishes: tuple[tuple[int, int], ...]

    def rounds(self, most: int) -> Iterator[tuple[tuple[Item, ...], tuple[Item, ...]]]:
        """The items of each round, `most` in all."""
        used_failing = used_others = 0
        for wish in (*self.wishes, (most, most)):
            left = most - used_failing - used_others
            fail_count = min(wish[0], len(self.failing) - used_failing, left)
            other_count = min(sum(wish) - fail_count, len(self.others) - used_others, left - fail_count)
            fail_count = min(sum(wish) - other_count, len(self.failing) - used_failing, left - other_count)
            if fail_count + other_count <= 0:
                return
            yield (
                self.failing[used_failing : used_failing + fail_count],
                self.others[used_others : used_others + other_count],
            )
            used_failing, used_others = used_failing + fail_count, used_others + other_count

    def score(self, failing: Sequence[float | None], others: Sequence[float | None]) -> float | None:
        """The mean over the whole ground, from some scores on either kind of items."""
        kinds = [
            (len(self.failing), [score for score in failing if score is not None]),
            (len(self.others), [score for score in others if score is not None]),
        ]
        weights = sum(count for count, scores in kinds if scores)
        return (
            sum(count * sum(scores) / len(scores) for count, scores in kinds if scores) / weights if weights else None
        )


@dataclass
class _Entrant:
    """An alternative in the competition, or the current candidate, with its scores so far."""

    number: int
    candidate: Candidate
    failing: list[float | None] = field(default_factory=list)
    others: list[float | None] = field(default_factory=list)
    current: float | None = None

    @property
    def items(self) -> int:
        return sum(score is not None for score in (*self.failing, *self.others))

    def trial(self, ground: _Ground) -> Trial:
        return Trial(self.number, ground.score(self.failing, self.others), self.items, self.current)

    def clearly_ahead(self, of: _Entrant) -> bool:
        """Whether it did so much better than the other on the same items that chance hardly does it."""
        pairs = zip((*self.failing, *self.others), (*of.failing, *of.others), strict=True)
        return p_value([a - b for a, b in pairs if a is not None and b is not None]) <= _CLEAR


async def compete(
    job: Job,
    step: int,
    current: Candidate,
    updates: Mapping[int, Update],
    batch: Sequence[Item],
    most: int,
    metric: Metric = HARD,
) -> list[Trial]:
    """Try the updates that may go on, by their numbers, against each other and the current candidate, halving the field
    from round to round. The winner's trial comes first; what would be refused is not tried."""
    field = [_Entrant(number, made.candidate) for number, made in updates.items() if made.refusal is None]
    if not field:
        return []
    ground = _ground(job, step, current, [updates[entrant.number] for entrant in field], batch)
    everyone, incumbent = list(field), _Entrant(-1, current)
    for failing, others in ground.rounds(most):
        entrants = [incumbent, *field]
        measured = await job.measure([Group(e.candidate, (*failing, *others)) for e in entrants], purpose="screen")
        for entrant, evaluation in zip(entrants, measured, strict=True):
            scores = metric.values(evaluation)
            entrant.failing.extend(scores[: len(failing)])
            entrant.others.extend(scores[len(failing) :])
            entrant.current = ground.score(incumbent.failing, incumbent.others)
        field.sort(key=lambda e: (-(ground.score(e.failing, e.others) or 0.0), e.number))
        places = max(2, (len(field) + 1) // 2)
        field = [entrant for entrant in field if not field[0].clearly_ahead(entrant)][:places]
        if not ground.noisy:
            abreast = [entrant for entrant in field if not entrant.trial(ground).behind]
            if not abreast:
                break
            field = abreast
        if len(field) == 1 and field[0].clearly_ahead(incumbent):
            break
    # Of equals the shorter text wins, but only here: before, too little is known to drop the longer ones. Where nothing
    # was tried at all, the first one goes on: what the analysts came to.
    winner = field[0].number
    if field[0].items:
        winner = min(field, key=lambda e: (-(ground.score(e.failing, e.others) or 0.0), e.candidate.length)).number
    trials = [entrant.trial(ground) for entrant in everyone]
    return sorted(trials, key=lambda trial: (trial.number != winner, -trial.items, -(trial.score or 0.0)))


def _ground(job: Job, step: int, current: Candidate, updates: Sequence[Update], batch: Sequence[Item]) -> _Ground:
    """Train items to try updates on; none that an update shows as an example. The batch's come first: how the current
    candidate did on them is known. Where answers vary, one failure says little, and items are not told apart."""
    shown = {
        (example.input, example.output)
        for made in updates
        for text in made.candidate.parts.values()
        for example in examples.parse(text).examples
    }
    rng = job.rng("screen", step)
    order = {item.id: item for item in (*rng.shuffled(batch), *rng.shuffled(job.splits.train))}
    usable = [item for item in order.values() if job.task.example(item) not in shown]
    if job.repeatable:
        return _Ground((), tuple(usable), True, _ROUNDS_WITH_NOISE)
    known = {item.id: job.known(current, item, 0) for item in usable}
    failing = tuple(item for item in usable if (scores := known[item.id]) is not None and scores[0] < FULL_MARKS)
    mastered = tuple(item for item in usable if (scores := known[item.id]) is not None and scores[0] >= FULL_MARKS)
    return _Ground(failing, mastered, False, _FIRST_ROUNDS if step == 1 else _ROUNDS)
