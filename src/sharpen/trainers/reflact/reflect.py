"""Stage 2, reflect: from attempts to proposed changes, by analysts and by proposers.

Analysts are questions to the optimizer model, one per minibatch of failures or of successes, asked side by side. Proposers
need no model: they make edits from the train split, the task's description and the scorer's remarks. Both bring patches,
which the later stages treat alike. An answer that is not usable is counted and shown; it never stops a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.engine.executor import together
from sharpen.engine.job import Job
from sharpen.skill.edits import Limits
from sharpen.skill.protected import masked
from sharpen.trainers.reflact import proposers
from sharpen.trainers.reflact.answers import Reflection
from sharpen.trainers.reflact.desk import Desk
from sharpen.trainers.reflact.memory import FailurePattern, belonging
from sharpen.trainers.reflact.modes import MODES, Mode
from sharpen.trainers.reflact.params import ProposalParams
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.proposers import base
from sharpen.trainers.reflact.rollout import Attempted, Attempts

UNLIMITED = 999
"""The edit budget of a proposer where there is none: it needs some number to stop at."""


@dataclass(frozen=True)
class Occasion:
    """What a step reflects on. `history` is what was put before the gate in earlier steps, `memory` what analysts are told
    of them; `budget` is None where edits are not limited; `notes` says whose readers tell lapses from defects."""

    step: int
    current: Candidate
    attempts: Attempts
    budget: int | None
    history: tuple[base.Tried, ...]
    memory: dict[str, Json]
    limits: Limits
    notes: Literal["none", "both", "failure_only"] = "none"


@dataclass(frozen=True)
class Reading:
    """What one analyst made of one minibatch; `error` says why the answer was of no use, where it was not."""

    kind: str
    batch: int
    items: tuple[str, ...]
    patch: Patch | None = None
    patterns: tuple[FailurePattern, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None

    def record(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "batch": self.batch,
            "items": list(self.items),
            "summary": "" if self.patch is None else self.patch.reason,
            "changes": 0 if self.patch is None else len(self.patch.edits),
            "patterns": [pattern.record() for pattern in self.patterns],
            "notes": list(self.notes),
            "error": self.error,
        }


@dataclass(frozen=True)
class Reflections:
    """What the analysts read out of the attempts, and the rival ideas of the proposers."""

    readings: tuple[Reading, ...] = ()
    rivals: tuple[Patch, ...] = ()

    def patches(self, kind: str) -> tuple[Patch, ...]:
        return tuple(r.patch for r in self.readings if r.kind == kind and r.patch is not None)

    @property
    def patterns(self) -> tuple[FailurePattern, ...]:
        return tuple(pattern for r in self.readings if r.kind == "failures" for pattern in r.patterns)

    @property
    def lost(self) -> int:
        """Answers that were of no use."""
        return sum(reading.error is not None for reading in self.readings)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for reading in self.readings for note in reading.notes)


async def reflect(job: Job, desk: Desk, occasion: Occasion, params: ProposalParams) -> Reflections:
    """Everything that is proposed in a step."""
    rivals = _propose(job, occasion, params)
    if not desk.open:
        return Reflections(rivals=rivals)
    groups = _minibatches(job, occasion, params)
    readings = await together(
        *(_read(job, desk, occasion, params, number, *group) for number, group in enumerate(groups))
    )
    return Reflections(tuple(readings), rivals)


def _minibatches(job: Job, occasion: Occasion, params: ProposalParams) -> list[tuple[str, int, list[Attempted]]]:
    """(kind, batch, attempts) for every analyst: failures of all batches first, then successes."""
    groups: list[tuple[str, int, list[Attempted]]] = []
    for kind in ("failures",) if params.failure_only else ("failures", "successes"):
        for number, batch in enumerate(occasion.attempts.batches):
            attempts = batch.failures if kind == "failures" else batch.successes
            order = job.rng("minibatch", kind, occasion.step, number).shuffled(attempts)
            size = params.minibatch_size
            groups += [(kind, number, order[start : start + size]) for start in range(0, len(order), size)]
    return groups


async def _read(
    job: Job,
    desk: Desk,
    occasion: Occasion,
    params: ProposalParams,
    number: int,
    kind: str,
    batch: int,
    attempts: Sequence[Attempted],
) -> Reading:
    mode = MODES[params.update_mode]
    told = occasion.notes == "both" or (occasion.notes == "failure_only" and kind == "failures")
    data = {
        "stage": "reflect",
        "mode": mode.name,
        "skill_aware": told,
        "task": job.task.brief.description,
        **shown_candidate(occasion.current, mode),
        "budget": occasion.budget if mode.clipped else None,
        "memory": occasion.memory,
        "attempts": [shown_attempt(attempt) for attempt in attempts],
    }
    prompts = [f"reflect_{kind}", mode.how_to_answer, *(["skill_aware"] if told else [])]
    answer = await desk.ask(prompts, data, mode.reflection, ("reflect", occasion.step, number))
    items = tuple(attempt.item.id for attempt in attempts)
    if answer.error is not None:
        return Reading(kind, batch, items, error=answer.error)
    reflection: Reflection = answer.value
    changes = reflection.changes("analysts", len(attempts))
    if mode.clipped and occasion.budget is not None:
        changes = changes[: occasion.budget]
    patch = Patch(changes, "analysts", reflection.summary, len(attempts))
    notes = tuple(" ".join(note.split()) for note in reflection.notes if note.strip()) if told else ()
    return Reading(kind, batch, items, patch, belonging(reflection.patterns, items), notes)


def shown_candidate(candidate: Candidate, mode: Mode) -> dict[str, Json]:
    """The candidate as the optimizer sees it: for rewriting, signs stand for the protected regions."""
    texts = {name: text if mode.name == "patch" else masked(text) for name, text in candidate.parts.items()}
    main = texts.pop(candidate.main)
    return {"skill": main, "other_parts": texts}


def shown_attempt(attempt: Attempted) -> dict[str, Json]:
    item, outcome = attempt.item, attempt.outcome
    return {
        "item": item.id,
        "type": item.type,
        "input": item.text,
        "answer": outcome.answer,
        "expected": item.reference,
        "score": outcome.hard,
        "soft": outcome.soft,
        "feedback": outcome.feedback,
        "trajectory": [[m.role, m.content] for m in outcome.trajectory] if len(outcome.trajectory) > 2 else [],
    }


def _propose(job: Job, occasion: Occasion, params: ProposalParams) -> tuple[Patch, ...]:
    """Each proposer's ideas, dealt out in turn so that none crowds out the others."""
    pool = tuple(
        base.Shot(item.id, *example, item.type) for item in job.splits.train if (example := job.task.example(item))
    )
    hands: list[list[Patch]] = []
    for name in params.proposers:
        view = base.View(
            candidate=occasion.current,
            rng=job.rng("propose", name, occasion.step),
            brief=job.task.brief,
            failures=tuple(_seen(job, attempt) for attempt in occasion.attempts.failures),
            successes=tuple(_seen(job, attempt) for attempt in occasion.attempts.successes),
            pool=pool,
            history=occasion.history,
            budget=UNLIMITED if occasion.budget is None else occasion.budget,
            step=occasion.step,
            limits=occasion.limits,
        )
        hands.append([Patch(p.edits, p.source, p.reason, p.support) for p in proposers.get(name).propose(view)])
    turns = max((len(hand) for hand in hands), default=0)
    return tuple(hand[turn] for turn in range(turns) for hand in hands if turn < len(hand))


def _seen(job: Job, attempt: Attempted) -> base.Attempted:
    outcome = attempt.outcome
    assert outcome.hard is not None and outcome.soft is not None, "only scored attempts are reflected on"
    example = job.task.example(attempt.item)
    return base.Attempted(attempt.item, example, outcome.answer, outcome.hard, outcome.soft, outcome.feedback)
