"""Stage 2, reflect: from attempts to proposed edits, by analysts and by proposers.

Analysts are questions to the optimizer model, one per minibatch of failures or of successes, asked side by side. Proposers
need no model: they make edits from the train split, the task's description and the scorer's remarks. Both bring patches,
which the later stages treat alike. An answer that is not usable is counted and shown; it never stops a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.engine.executor import together
from sharpen.engine.job import Job
from sharpen.skill.edits import Limits
from sharpen.trainers.reflact import proposers
from sharpen.trainers.reflact.answers import Reflection
from sharpen.trainers.reflact.params import ReflACTParams
from sharpen.trainers.reflact.patches import Patch
from sharpen.trainers.reflact.prompts import question
from sharpen.trainers.reflact.proposers import base
from sharpen.trainers.reflact.rollout import Attempted, Batch


@dataclass(frozen=True)
class Occasion:
    """What a step reflects on. `history` is what was put before the gate in earlier steps."""

    step: int
    current: Candidate
    batch: Batch
    budget: int
    history: tuple[base.Tried, ...]
    limits: Limits


@dataclass(frozen=True)
class Reflected:
    """Patches of the analysts, by what they read, and the rival ideas of the proposers."""

    from_failures: tuple[Patch, ...] = ()
    from_successes: tuple[Patch, ...] = ()
    rivals: tuple[Patch, ...] = ()
    lost_answers: int = 0


async def reflect(job: Job, occasion: Occasion, params: ReflACTParams) -> Reflected:
    """Everything that is proposed in a step."""
    rivals = _propose(job, occasion, params)
    if not (params.analysts and job.has_model("optimizer")):
        return Reflected(rivals=rivals)
    batch, size = occasion.batch, params.minibatch_size
    failures = [("failures", group) for group in _minibatches(job, occasion.step, "failures", batch.failures, size)]
    successes = [("successes", group) for group in _minibatches(job, occasion.step, "successes", batch.successes, size)]
    questions = failures + successes
    answers = await together(
        *(_analyse(job, occasion, number, kind, group) for number, (kind, group) in enumerate(questions))
    )
    return Reflected(
        tuple(patch for patch in answers[: len(failures)] if patch is not None),
        tuple(patch for patch in answers[len(failures) :] if patch is not None),
        rivals,
        sum(patch is None for patch in answers),
    )


def _minibatches(job: Job, step: int, kind: str, attempts: Sequence[Attempted], size: int) -> list[list[Attempted]]:
    order = job.rng("minibatch", kind, step).shuffled(attempts)
    return [order[start : start + size] for start in range(0, len(order), size)]


async def _analyse(job: Job, occasion: Occasion, number: int, kind: str, attempts: Sequence[Attempted]) -> Patch | None:
    current = occasion.current
    data = {
        "stage": "reflect",
        "task": job.task.brief.description,
        "skill": current.text,
        "other_parts": {name: text for name, text in current.parts.items() if name != current.main},
        "budget": occasion.budget,
        "attempts": [_shown(attempt) for attempt in attempts],
    }
    asked = question(f"reflect_{kind}", data)
    answer = await job.ask("optimizer", asked, schema=Reflection, scope=("reflect", occasion.step, number))
    if answer.error is not None:
        return None
    reflection: Reflection = answer.value
    edits = tuple(edit.edit("analysts", most=len(attempts)) for edit in reflection.edits[: occasion.budget])
    return Patch(edits, "analysts", reflection.summary, len(attempts))


def _shown(attempt: Attempted) -> dict[str, Json]:
    item, outcome = attempt.item, attempt.outcome
    return {
        "item": item.id,
        "type": item.type,
        "input": item.text,
        "answer": outcome.answer,
        "expected": item.reference,
        "score": outcome.hard,
        "feedback": outcome.feedback,
        "trajectory": [[m.role, m.content] for m in outcome.trajectory] if len(outcome.trajectory) > 2 else [],
    }


def _propose(job: Job, occasion: Occasion, params: ReflACTParams) -> tuple[Patch, ...]:
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
            failures=tuple(_seen(job, attempt) for attempt in occasion.batch.failures),
            successes=tuple(_seen(job, attempt) for attempt in occasion.batch.successes),
            pool=pool,
            history=occasion.history,
            budget=occasion.budget,
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
