"""Training that is no rollout: a policy learns for a stretch, is saved, and is evaluated; then the next stretch.

What a stretch costs is time, and it is not paid twice: its result is a checkpoint with everything that going on needs. When
a job is told again, the stretches up to the newest such checkpoint are taken from the story, and the next one starts from
it. So a policy's trainer, too, contains no code for resuming: its work gets the policy of the stretch before, and goes on
from the model it still has in memory, or from the policy's files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING

from sharpen.core.benchmark import POLICY_METRIC
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest
from sharpen.core.outcome import FailureKind
from sharpen.engine.evaluation import Evaluation
from sharpen.engine.events import Event

if TYPE_CHECKING:
    from sharpen.engine.job import Job


@dataclass(frozen=True)
class Grown:
    """What a stretch of training came to: the policy with its files (given away: they are never written to again), the step
    it is at, and what was measured on the way. A file called `replay.pt` is kept with the newest checkpoint alone."""

    policy: Candidate
    step: int
    metrics: Mapping[str, Json]


@dataclass(frozen=True)
class Advanced(Event):
    """A policy was trained up to a step, and saved. `parts` are its texts; `metrics` what training measured on the way."""

    step: int
    candidate: str
    parts: dict[str, str]
    metrics: dict[str, Json]


@dataclass(frozen=True)
class PolicyEvaluated(Event):
    """What a policy came to on the episodes that select. `normalised` is that of the mean return, where there is a
    benchmark; `best` says whether it is the best so far by the benchmark's metric."""

    step: int
    candidate: str
    episodes: int
    metrics: dict[str, Json]
    normalised: float | None
    best: bool


async def advance(job: Job, work: Callable[[], Awaitable[Grown]]) -> tuple[Candidate, int]:
    """The policy after the next stretch, and its step: from the story where it was trained before, else by `work`."""
    story = job.runtime.story
    story.stop_at_recorded_end()
    told = story.upcoming()
    if told is not None and told.get("type") == Advanced.type and (job.shelf.newest() or -1) >= told["step"]:
        job.emit(Advanced(told["step"], told["candidate"], told["parts"], told["metrics"]))
        return job.shelf.found(Candidate(told["parts"]), told["step"]), told["step"]
    if told is not None and story.next_number >= story.certain:
        story.cut(story.next_number)  # a power failure left the event, and not the checkpoint
    grown = await work()
    policy = job.shelf.grown(grown.policy, grown.step, grown.metrics)
    job.emit(Advanced(grown.step, policy.digest, dict(policy.parts), dict(grown.metrics)))
    return policy, grown.step


def evaluated(job: Job, policy: Candidate, step: int, found: Evaluation) -> bool:
    """Take an evaluation down; the best, and what is kept, follow from it. Says whether this is the best so far."""
    metrics = metrics_of(found)
    benchmark = job.shelf.benchmark
    metric = POLICY_METRIC if benchmark is None else benchmark.best_metric
    if metric not in metrics and not found.failures:
        raise UsageError(
            f"benchmark.best_metric {metric!r} is not measured here{nearest(metric, list(metrics))}; "
            f"there are: {', '.join(metrics)}"
        )
    best = job.shelf.judged(policy, step, metrics, metric)
    mean = metrics[POLICY_METRIC]
    normalised = None if benchmark is None or not isinstance(mean, float) else benchmark.normalised(mean)
    job.emit(PolicyEvaluated(step, policy.digest, len(found.items), metrics, normalised, best))
    if not job.runtime.story.replaying:
        job.shelf.settle()
    return best


def metrics_of(found: Evaluation) -> dict[str, Json]:
    """An evaluation in numbers: the returns, and the mean of everything else that was measured. Where some return is no
    number there is nothing to compare by: the episodes that are left may be the easy ones."""
    undone = any(failure.kind is FailureKind.NOT_A_NUMBER for failure in found.failures.values())
    returns = [] if undone else found.scored
    metrics: dict[str, Json] = {
        POLICY_METRIC: fmean(returns) if returns else None,
        "eval_return_median": median(returns) if returns else None,
        "eval_return_min": min(returns, default=None),
        "eval_return_max": max(returns, default=None),
        "eval_return_std": pstdev(returns) if returns else None,
    }
    return metrics | {f"eval_{name}_mean": None if undone else found.measured(name) for name in found.measures}
