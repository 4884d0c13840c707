"""`sharpen compare`: which of two or more arms is better, from runs of sharpen or from what others logged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharpen.cli import measuring, options
from sharpen.cli.terminal import echo_json

if TYPE_CHECKING:
    from sharpen.bench.changes import Changes
    from sharpen.bench.comparison.aggregated import Aggregated
    from sharpen.bench.comparison.assembly import Compared, Wish
    from sharpen.bench.comparison.planned import Held
    from sharpen.bench.evidence.nouns import Arm
    from sharpen.bench.plan import Plan

_FIXED = ("metric", "summary", "window", "points", "reach", "lower", "baseline", "pairs", "over", "margin", "normalise",
          "alpha", "side", "method", "resamples", "adjust")  # fmt: skip


@click.command(no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, metavar="A [B]...")
@click.option("--by", type=click.Choice(["arm", "trainer"]), default="arm", help="What makes an arm inside one run.")
@click.option("--baseline", metavar="NAME", help="The arm the others are compared with; else the first.")
@measuring.measure_options
@click.option(
    "--pairs", default="auto", metavar="HOW", help="auto, seed, none, run1=run2,run3=run4, or a CSV file of pairs."
)
@click.option(
    "--over", type=click.Choice(["auto", "seeds", "items"]), default="auto", help="What is counted: seeds, or items."
)
@click.option(
    "--margin", type=float, metavar="X", help="A difference that would not matter; then equality can be shown."
)
@click.option(
    "--normalise",
    metavar="REFERENCE",
    help="Also on a scale from random to reference: atari57, d4rl, classic, or LOW:HIGH.",
)
@click.option("--alpha", type=click.FloatRange(0.0001, 0.4), default=0.05, help="The error rate of the verdict.")
@click.option("--side", type=click.Choice(["both", "better", "worse"]), default="both",
              help="Test both sides, or only whether the new arm is better, or worse.")  # fmt: skip
@click.option("--method", type=click.Choice(["auto", "t"]), default="auto",
              help="auto: a count of arrangements and t have to agree; t: Student's and Welch's t alone.")  # fmt: skip
@click.option("--resamples", type=click.IntRange(999), default=99_999,
              help="Permutations drawn where there are too many to count.")  # fmt: skip
@click.option("--adjust", type=click.Choice(["holm", "max-t"]), default="holm",
              help="For several arms: Holm's rule, or max-t, for arms on the same seeds.")  # fmt: skip
@click.option("--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows here.")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write one page here.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw to a .svg, or a .png (extra `plots`)."
)
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE",
    help="Judge by a plan (see `sharpen plan`), and say what differs from it.",
)  # fmt: skip
@click.option("--since", metavar="COMMIT", help="Also list what changed in the trainers' code since a git commit.")
@options.runs_option
@options.json_option
@click.pass_context
def command(
    context: click.Context, sources: tuple[str, ...], by: str, baseline: str | None, metric: str | None,
    summary: str | None, window: str, points: int, reach: float | None, lower: bool, pairs: str, over: str,
    margin: float | None, normalise: str | None, alpha: float, side: str, method: str, resamples: int,
    adjust: str, csv_file: Path | None, html_file: Path | None, plot: Path | None,
    plan_file: Path | None, since: str | None, runs: Path, as_json: bool,
) -> int:  # fmt: skip
    """Say whether B is better than A (and C than A, ...), and by how much.

    A and B are runs, jobs or checkpoints of sharpen, or CSV files, TensorBoard folders, W&B offline folders or JSON exports,
    or Inspect logs.
    SOURCE@ARM is one arm of several; one run alone is compared inside, its arms with the first.
    """
    from sharpen.bench.comparison import references
    from sharpen.bench.comparison.aggregated import aggregated
    from sharpen.bench.comparison.assembly import Wish, compare_all
    from sharpen.bench.comparison.matchups import able, matchups
    from sharpen.bench.comparison.measure import choose
    from sharpen.bench.comparison.pairing import parse
    from sharpen.bench.evidence.sources import arms_of
    from sharpen.core.errors import UsageError
    from sharpen.report.page import files
    from sharpen.stats.errors import BadData

    if plot is not None:
        files.check(plot)
    if margin is not None and side != "both":
        raise UsageError("--margin asks about both sides; leave --side out")
    plan = None if plan_file is None else _plan(context, plan_file)
    if plan is not None:
        baseline, metric, summary, window, points = plan.baseline, plan.metric, plan.summary, plan.window, plan.points
        reach, lower, pairs, over, margin = plan.reach, plan.lower, plan.pairs, plan.over, plan.margin
        normalise = plan.normalise
    scorer = metric if summary in (None, "test") else None
    found = [(source, arms_of(source, runs, by=by, scorer=scorer)) for source in sources]
    met = matchups(found, baseline)
    arms = list({arm.name: arm for pair in met for arm in pair}.values())
    try:
        measure = choose(
            arms, metric=metric, summary=summary, window=window, points=points, threshold=reach, lower=lower
        )
        scale = None if normalise is None else references.parse(normalise)
        wish = Wish(measure, parse(pairs), over, alpha, margin, scale, side, method, resamples, adjust)
        met, left_out = able(met, measure)
        held = None if plan is None or plan_file is None else _held(plan, plan_file, met, wish, left_out)
        compared = compare_all(met, wish, left_out) if held is None else list(held.compared)
        whole = aggregated(met, wish)
    except BadData as error:
        raise UsageError(str(error)) from error
    changes = None if since is None else _changes(since, arms, runs)
    shown = list({arm.name: arm for pair in met for arm in pair}.values())
    _write(compared, whole, shown, csv_file, html_file, plot)
    _show(compared, whole, held, changes, as_json)
    return 0


def _plan(context: click.Context, file: Path) -> Plan:
    """The plan, with nothing beside it on the command line that it has fixed."""
    from click.core import ParameterSource

    from sharpen.bench.plan import load
    from sharpen.core.errors import UsageError

    given = [name for name in _FIXED if context.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    if given:
        raise UsageError(f"--{given[0]} is fixed by the plan {file}; leave it out, or compare without --plan")
    return load(file)


def _held(plan: Plan, file: Path, met: list[tuple[Arm, Arm]], wish: Wish, left_out: list[str]) -> Held:
    """The comparison held against its plan, with the intervals of the look that this is. That somebody looked is noted."""
    from dataclasses import replace

    from sharpen.bench.comparison import planned
    from sharpen.bench.comparison.assembly import comparable, compare_all
    from sharpen.bench.plan import locked, looks_taken, note_look
    from sharpen.core.errors import UsageError

    if all(old.name != plan.baseline for old, _ in met):
        raise UsageError(f"the baseline of the plan can't be compared with. {'. '.join(left_out)}")
    lock, taken = locked(file), looks_taken(file)
    wish = replace(wish, alpha=plan.alpha)
    met = [pair for pair, _ in comparable(planned.apart(plan, met), wish)[0]]
    compared = compare_all(met, wish, left_out)
    seeds = planned.seeds_of(plan, compared, met)
    look = planned.look_of(plan, seeds)
    if look is not None and look.level != plan.alpha:
        wish = replace(wish, alpha=look.level)
        compared = compare_all(met, wish, left_out)
    if lock is not None and lock.digest == plan.digest and seeds:
        note_look(file, max(seeds.values()))
    return planned.hold(plan, lock, compared, met, wish, taken)


def _changes(commit: str, arms: list[Arm], runs: Path) -> list[Changes]:
    """What changed in the code of the trainers behind these arms."""
    from sharpen.bench.changes import since
    from sharpen.bench.config import load
    from sharpen.bench.reopening import home_of, job_around
    from sharpen.bench.trust import TRAINER, has_run, uses
    from sharpen.core.errors import UsageError

    found = [job_around(Path(run.source)) for arm in arms for run in arm.runs]
    trainers = []
    for home in (home_of(*around) for around in found if around is not None):
        config = load(home.config)
        if not all(has_run(use) for use in uses(config, home.run) if use.setting == TRAINER):
            raise UsageError(
                f"--since: the trainer {config.trainer.name} of {home.run.path} is code that was not run here, so it is not "
                "looked up; `sharpen resume --trust` allows it"
            )
        trainers.append(config.trainer.name)
    if not trainers:
        raise UsageError("--since looks at the code of trainers, and none of these is a run of sharpen")
    return since(commit, trainers)


def _write(
    compared: list[Compared],
    whole: Aggregated | None,
    arms: list[Arm],
    csv_file: Path | None,
    html_file: Path | None,
    plot: Path | None,
) -> None:
    from sharpen.files import write_atomic
    from sharpen.report import comparison_files, pictures
    from sharpen.report.page import files, svg

    if csv_file is not None:
        write_atomic(csv_file, comparison_files.as_csv(compared, whole))
    if html_file is not None:
        picture = svg.on_light(pictures.compared(compared, arms))
        write_atomic(html_file, comparison_files.as_page(compared, picture, whole))
    if plot is not None:
        files.save(pictures.compared(compared, arms), plot)


def _show(
    compared: list[Compared], whole: Aggregated | None, held: Held | None, changes: list[Changes] | None, as_json: bool
) -> None:

    from sharpen.cli.console import console, show
    from sharpen.report import comparison, comparison_arms, comparison_files, protocol

    if as_json:
        more = {
            **({} if held is None else {"plan": protocol.held_as_json(held)}),
            **({} if changes is None else {"changes": protocol.changes_as_json(changes)}),
        }
        echo_json({**comparison_files.as_json(compared, whole), **more}, allow_nan=False)
        return
    beside = () if held is None else protocol.held(held)
    show(console(), comparison.blocks(compared, beside, comparison_arms.blocks(compared, whole)))
    if changes is not None:
        show(console(), protocol.changes(changes))
