"""`sharpen validate`: what a study would do, and everything that is wrong with it, before anything runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(no_args_is_help=True)
@click.argument("study")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--manifest", type=click.Path(path_type=Path), metavar="PATH", help="Write the list of jobs to PATH.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(study: str, overrides: tuple[str, ...], manifest: Path | None, as_json: bool) -> int:
    """Check STUDY: print its jobs with their ids and what they may take, or every problem at once.

    Writes nothing, unless --manifest says where.
    """
    import json

    from sharpen.bench.matrix import lay_out
    from sharpen.bench.study import load
    from sharpen.cli.running import console, show
    from sharpen.files import write_json
    from sharpen.report.study import problems, shown_matrix

    config = load(Path(study), overrides)
    matrix = lay_out(config)
    records = {job.job_id: job.record() for job in matrix.jobs}
    if as_json:
        click.echo(json.dumps({"jobs": records, "problems": list(matrix.problems)}, ensure_ascii=False))
    elif matrix.problems:
        show(console(err=True), problems(matrix))
    else:
        show(console(), shown_matrix(config, matrix))
    if manifest is not None and not matrix.problems:
        write_json(manifest, {"jobs": records})
    return 2 if matrix.problems else 0
