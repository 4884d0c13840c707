"""`sharpen play`: a policy plays a few episodes that nothing was decided on, and one of them is filmed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharpen.cli import options, trusting
from sharpen.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from sharpen.core.benchmark import Benchmark
    from sharpen.core.candidate import Candidate
    from sharpen.tasks.gym.film import Film
    from sharpen.tasks.gym.playing import Played
    from sharpen.tasks.gym.task import Environment


@click.command(no_args_is_help=True)
@click.argument("checkpoint")
@click.option("--episodes", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="How many.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Which ones.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.gif", help="Film the first episode."
)
@trusting.trust_option
@options.runs_option
@options.json_option
def command(
    checkpoint: str, episodes: int, seed: int, output: Path | None, trust: bool, runs: Path, as_json: bool
) -> int:
    """Have the policy in CHECKPOINT play: a checkpoint's folder, a run or a job's folder (its best).

    The episodes are in no split: neither training nor any choice has seen them.
    """
    from sharpen.bench.trust import policy_uses
    from sharpen.core.benchmark import Benchmark
    from sharpen.tasks.gym import film

    if output is not None:
        film.check(output)
    found = _find(checkpoint, runs)
    trusting.allow(Path(checkpoint), policy_uses(found.policy), trust=trust, ask=not as_json)
    task = _task(found)
    filmed = None
    if output is not None:
        filmed = film.film(task.making, found.policy, task.episodes(1, seed)[0], output)
    played = asyncio.run(_play(task, found.policy, episodes, seed))
    benchmark = Benchmark.from_row(found.said.get("benchmark"))
    _show(_Report(task, played, benchmark, filmed, output, as_json))
    return 0


@dataclass(frozen=True)
class _Found:
    """A policy and what its checkpoint says of it."""

    policy: Candidate
    said: dict[str, Any]


@dataclass(frozen=True)
class _Report:
    task: Environment
    played: list[Played]
    benchmark: Benchmark | None
    filmed: Film | None
    output: Path | None
    as_json: bool


def _find(given: str, runs: Path) -> _Found:
    from sharpen.cli.finding import checkpoint_of, find
    from sharpen.core.errors import UsageError
    from sharpen.engine import checkpoints
    from sharpen.tasks.gym import about

    path = checkpoint_of(Path(given))
    if not (path / checkpoints.METADATA).exists():
        folder = find(given, runs).only()
        saved = sorted((folder / checkpoints.FOLDER).glob("step_*"))
        best = folder / checkpoints.FOLDER / "best"
        if not best.exists() and not saved:
            raise UsageError(f"{folder} has no checkpoint yet; resume its run first")
        path = best if best.exists() else saved[-1]
    policy = checkpoints.load(path)
    if about.DESCRIPTION not in policy.parts:
        raise UsageError(f"{path} holds a text, not a policy: `sharpen eval` scores it")
    return _Found(policy, checkpoints.about(path))


def _task(found: _Found) -> Environment:
    from sharpen.tasks import registry
    from sharpen.tasks.gym import about
    from sharpen.tasks.gym.task import Environment

    task = registry.get(about.environment_of(found.policy), **about.settings_of(found.policy))
    assert isinstance(task, Environment)
    return task


async def _play(task: Environment, policy: Candidate, episodes: int, seed: int) -> list[Played]:
    return await asyncio.gather(*(task.play(item, policy) for item in task.episodes(episodes, seed)))


def _show(report: _Report) -> None:
    from statistics import fmean

    mean = fmean(played.total for played in report.played)
    benchmark = report.benchmark
    normalised = None if benchmark is None else benchmark.normalised(mean)
    if report.as_json:
        rows = [
            {**played.measures(), "normalised": None if benchmark is None else benchmark.normalised(played.total)}
            for played in report.played
        ]
        made = {"environment": report.task.name, "protocol": report.task.protocol, "episodes": rows}
        film = None if report.filmed is None else str(report.output)
        echo_json({**made, "mean": mean, "mean_normalised": normalised, "film": film})
        return
    for number, played in enumerate(report.played):
        echo(f"episode {number}: {played.told()}{_beside(benchmark, played.total)}")
    echo(f"mean return {mean:g}{_beside(benchmark, mean)} · {report.task.name}, {report.task.protocol}")
    if report.filmed is not None:
        faster = (
            "" if abs(report.filmed.speed - 1) < 0.05 else f", {report.filmed.speed:.2g} times as fast as it was played"
        )
        echo(f"{report.output}: episode 0 in {report.filmed.pictures} pictures{faster}")


def _beside(benchmark: Benchmark | None, score: float) -> str:
    normalised = None if benchmark is None else benchmark.normalised(score)
    return "" if normalised is None else f" (normalised {normalised:.3f})"
