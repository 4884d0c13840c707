"""`sharpen plan`: a comparison fixed before there are results."""

from __future__ import annotations

from pathlib import Path

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo_json


@click.command(no_args_is_help=True)
@click.argument("file", type=click.Path(path_type=Path))
@options.json_option
def command(file: Path, as_json: bool) -> int:
    """Check the plan in FILE and lock it: its digest, the time and the git commit go into FILE's .lock.json.

    `sharpen compare --plan FILE` then says whether what was done is what was planned.
    """
    import dataclasses

    from sharpen.bench.plan import fix, lock_of
    from sharpen.cli.console import console, show
    from sharpen.report import protocol

    plan, lock, fresh = fix(file)
    if as_json:
        looks = [dataclasses.asdict(look) for look in plan.bars(plan.alpha / plan.tests)]
        made = {**dataclasses.asdict(lock), "fresh": fresh, "looks": looks, "warnings": protocol.warnings(plan)}
        echo_json({**made, "file": str(lock_of(file))})
    else:
        show(console(), protocol.fixed(plan, lock, fresh))
    return 0
