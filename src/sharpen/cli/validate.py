"""`sharpen validate`: what a study would do, and everything that is wrong with it, before anything runs."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import options


@click.command(no_args_is_help=True)
@click.argument("study")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--manifest", type=click.Path(path_type=Path), metavar="PATH", help="Write the list of jobs to PATH.")
@options.runs_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(study: str, overrides: tuple[str, ...], manifest: Path | None, runs: Path, as_json: bool) -> int:
    """Check STUDY: print its jobs with their ids and what they would take, or every problem at once.

    Pays for nothing, and writes nothing unless --manifest says where.
    """
    import json

    from sharpen.bench import outlook
    from sharpen.bench.matrix import Matrix, lay_out
    from sharpen.bench.study import look_at
    from sharpen.cli.running import console, show
    from sharpen.core.redact import redact, redact_json
    from sharpen.files import write_json
    from sharpen.report import text
    from sharpen.report.study import shown_matrix

    config, said = look_at(Path(study), overrides)
    matrix = Matrix((), ()) if config is None else lay_out(config)
    found = [*said, *matrix.problems]
    records = {job.job_id: job.record() for job in matrix.jobs}
    if found or config is None:
        if as_json:
            click.echo(json.dumps(redact_json({"jobs": records, "problems": found}), ensure_ascii=False))
        else:
            click.secho(f"{text.plural(len(found), 'problem')}:", fg="red", err=True)
            click.echo("\n".join(f"  {redact(problem)}" for problem in found), err=True)
        return 2
    outlooks = [outlook.of_job(job, runs / "doctor") for job in matrix.jobs]
    whole = outlook.of_all(outlooks, config.total, config.parallel)
    for record, one in zip(records.values(), outlooks, strict=True):
        record["estimate"] = one.record()
    if as_json:
        made = {"jobs": records, "problems": [], "estimate": whole.record()}
        click.echo(json.dumps(redact_json(made), ensure_ascii=False))
    else:
        show(console(), shown_matrix(config, matrix, outlooks, whole))
    if manifest is not None:
        write_json(manifest, {"jobs": records, "estimate": whole.record()})
    return 0
