"""`sharpen validate`: what a study would do, and everything that is wrong with it, before anything runs."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo_json, say


@click.command(no_args_is_help=True)
@click.argument("study")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--manifest", type=click.Path(path_type=Path), metavar="PATH", help="Write the list of jobs to PATH.")
@options.reuse_option
@options.runs_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    study: str, overrides: tuple[str, ...], manifest: Path | None, reuse: tuple[str, ...], runs: Path, as_json: bool
) -> int:
    """Check STUDY: print its jobs with their ids and what they would take, or every problem at once.

    Pays for nothing, and writes nothing unless --manifest says where.
    """

    from rich.text import Text

    from sharpen.bench import outlook
    from sharpen.bench.matrix import Matrix, Planned, lay_out, watched
    from sharpen.bench.reuse import find, sources
    from sharpen.bench.study import look_at
    from sharpen.cli.console import console, show
    from sharpen.cli.run import SKIPPED, warnings_of
    from sharpen.core.errors import UsageError
    from sharpen.core.redact import redact, redact_json
    from sharpen.files import write_json
    from sharpen.report import text
    from sharpen.report.study import shown_matrix, shown_skipped

    config, said = look_at(Path(study), overrides)
    matrix = Matrix((), ()) if config is None else lay_out(config)
    found = [*said, *matrix.problems]

    def look_ahead(job: Planned) -> outlook.Outlook | None:
        try:
            with watched(job.cell.config.trainer.name, f"trainer {job.cell.arm}"):
                return outlook.of_job(job, runs / "doctor")
        except UsageError as error:
            found.append(str(error))
            return None

    outlooks = [one for job in matrix.jobs if (one := look_ahead(job)) is not None]
    found = list(dict.fromkeys(found))  # each seed of an arm has the same to say
    records = {job.job_id: job.record() for job in matrix.jobs}
    left_out = {one.row_id: one.record() for one in matrix.skipped}
    if found or config is None:
        if as_json:
            said_all = {"jobs": records, "skipped": left_out, "problems": found}
            echo_json(redact_json(said_all))
        else:
            console(err=True).print(Text(f"{text.plural(len(found), 'problem')}:", style="red"))
            say("\n".join(f"  {redact(problem)}" for problem in found))
            for line in shown_skipped(matrix.skipped):
                say(line)
        return 2
    elsewhere = find(matrix.jobs, others) if (others := sources([*config.reuse, *reuse], runs)) else {}
    taken = {job_id for job_id, one in elsewhere.items() if one.run is not None}
    to_run = [one for job, one in zip(matrix.jobs, outlooks, strict=True) if job.job_id not in taken]
    whole = outlook.of_all(to_run, config.total, config.parallel)
    for (job_id, record), one in zip(records.items(), outlooks, strict=True):
        record["estimate"] = one.record()
        record |= elsewhere[job_id].record() if job_id in elsewhere else {}
    warned = warnings_of(matrix.jobs)
    if as_json:
        made = {
            "jobs": records, "skipped": left_out, "problems": [], "warnings": warned, "estimate": whole.record(),
        }  # fmt: skip
        echo_json(redact_json(made))
    else:
        show(console(), shown_matrix(config, matrix, outlooks, whole, elsewhere))
        for warning in warned:
            say(f"warning: {warning}")
    if manifest is not None:
        write_json(manifest, {"jobs": {**records, **left_out}, "estimate": whole.record()})
    return SKIPPED if left_out else 0
