"""From the `benchmark:` block of a configuration to what a job's scores are measured against; and back from a job's story.

A block gives two scores, or a table of `sharpen.stats.normalise` they are looked up in by the task's name, or neither and
only says what the best is chosen by. Whatever does not fit the task is said here, before anything is paid for. Normalising
is linear, so it applies to means, ends of intervals and points of a curve alike; differences are only stretched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sharpen.bench.config import BenchmarkConfig, CheckpointsConfig
from sharpen.core.benchmark import POLICY_METRIC, POLICY_SCORES, Benchmark
from sharpen.core.errors import UsageError, nearest
from sharpen.core.task import Task
from sharpen.engine.shelf import Retention
from sharpen.stats.errors import BadData
from sharpen.stats.normalise import Reference, look_up

POLICY = "policy"
POLICY_METRICS = (*POLICY_SCORES, "eval_return_std", "eval_length_mean", "eval_success_mean")


def resolved(block: BenchmarkConfig, task: Task, gate_metric: str) -> Benchmark | None:
    """What a block comes to for a task; None where it says nothing. Where a text is trained, `gate_metric` decides."""
    if block == BenchmarkConfig():
        return None
    metric, mode = _best_metric(block, task, gate_metric)
    found = _scores(block, task.name)
    if found is None:
        return Benchmark(protocol=block.protocol or "", scale=block.scale, best_metric=metric, best_metric_mode=mode)
    _right_way_up(found, task, metric, mode)
    return Benchmark(
        found.random, found.reference, block.reference or "", found.protocol, block.scale, metric, mode,
    )  # fmt: skip


def _scores(block: BenchmarkConfig, name: str) -> Reference | None:
    if block.random_score is not None and block.human_score is not None:
        return Reference(block.random_score, block.human_score, block.scale, block.protocol or "")
    if block.reference is None:
        return None
    try:
        return look_up(block.reference, name, protocol=block.protocol, scale=block.scale)
    except BadData as error:
        raise UsageError(f"benchmark.reference: {error}") from None


def _meant(metric: str) -> str:
    """The nearest name; of one without its last word, that of the mean."""
    return nearest(metric, [f"{metric}_mean"] if f"{metric}_mean" in POLICY_METRICS else POLICY_METRICS)


def _best_metric(block: BenchmarkConfig, task: Task, gate_metric: str) -> tuple[str, str]:
    mode = block.best_metric_mode or "max"
    if task.trainee == POLICY:
        metric = block.best_metric or POLICY_METRIC
        if metric not in POLICY_METRICS:
            raise UsageError(
                f"benchmark.best_metric: {metric!r} is not measured{_meant(metric)}; "
                f"the best policy can be chosen by {', '.join(POLICY_METRICS)}"
            )
        return metric, mode
    if block.best_metric not in (None, gate_metric):
        raise UsageError(
            f"benchmark.best_metric: on {task.name} a text is trained, and the gate's metric {gate_metric!r} says which is "
            f"the best; leave best_metric out, or set the trainer's gate_metric to {block.best_metric!r}"
        )
    if mode == "min":
        raise UsageError(f"benchmark.best_metric_mode: on {task.name} a text is trained, where more is always better")
    return gate_metric, mode


def _right_way_up(found: Reference, task: Task, metric: str, mode: str) -> None:
    """The other way round a better score would be a lower one on the normalised scale."""
    if metric in POLICY_METRICS and metric not in POLICY_SCORES:
        return
    below = found.reference < found.random
    if below != (mode == "min"):
        raise UsageError(
            f"benchmark: on {task.name} the human score {found.reference:g} is {'below' if below else 'above'} the random "
            f"score {found.random:g}, but best_metric_mode is {mode}; random_score is what a random player comes to"
        )


def retention(block: CheckpointsConfig, task: Task) -> Retention | None:
    """How many checkpoints of a policy stay; None where all do."""
    if task.trainee == POLICY:
        return None if block.top is None else Retention(block.top, block.last)
    if block != CheckpointsConfig():
        raise UsageError(
            f"checkpoints: on {task.name} a text is trained, and all checkpoints of a text are kept; leave the block out"
        )
    return None


def stated(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The benchmark a job's story begins with, as its files tell it; None where it has none."""
    for line in lines:
        if line["type"] == "benchmark_stated":
            return {name: value for name, value in line.items() if name not in ("n", "type", "clock")}
        if line["type"] in ("measured", "advanced"):
            return None
    return None


def scale_of(benchmark: Mapping[str, Any] | None) -> Reference | None:
    """The scale that a benchmark of results or of a checkpoint's metadata stands for; None where it has no two scores."""
    if benchmark is None or benchmark.get("random_score") is None or benchmark.get("human_score") is None:
        return None
    return Reference(
        benchmark["random_score"], benchmark["human_score"], benchmark.get("scale", 1.0), benchmark.get("protocol") or "",
        benchmark.get("reference") or "",
    )  # fmt: skip


def verdict(low: float, high: float, scale: Reference | None) -> int:
    """1 where the interval of a difference shows that the new one is better, -1 where worse, else 0. Less is better where
    the human score is the lower one."""
    shown = 1 if low > 0 else -1 if high < 0 else 0
    return -shown if scale is not None and scale.factor < 0 else shown


def meaning(scale: Reference) -> str:
    """What the normalised values of a scale mean, in a sentence."""
    said = f"Normalised: {scale.random:g} is 0 and {scale.reference:g} is {scale.scale:g}"
    source = ", ".join(filter(None, (scale.source, scale.protocol)))
    return f"{said} ({source})." if source else f"{said}."


def with_normalised(
    row: Mapping[str, Any], names: Sequence[str], scale: Reference | None, *, differences: bool = False
) -> dict[str, Any]:
    """A row with `normalised`, the named values of it on the scale, under the names they have; as it is without a scale."""
    if scale is None:
        return dict(row)
    away = scale.random if differences else 0.0
    found = {name: None if row[name] is None else scale.of(row[name] + away) for name in names}
    if found.get("low") is not None and found.get("high") is not None and scale.factor < 0:
        found["low"], found["high"] = found["high"], found["low"]
    return {**row, "normalised": found}
