"""The program's outside: which commands there are, and what becomes of an error that escapes one.

A command's module is imported when the command is run, so `sharpen --help` loads none of them. Exit codes: 0 all good, 1
something failed, 2 asked for something impossible, 3 the budget ended it, 130 stopped: by Ctrl-C, SIGTERM or SIGHUP. What
a person can fix is one message on standard error (with `--json`, one object on standard output); anything else is a bug and
keeps its traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from sharpen import __version__
from sharpen.bench.stop_signals import raise_on_stop_signals
from sharpen.cli.terminal import echo_json, say
from sharpen.core.errors import SharpenError, nearest
from sharpen.core.redact import redact, remember_environment

INTERRUPTED = 130

COMMANDS = {
    "demo": "Train a skill on a built-in task with the embedded model: no key, no network.",
    "train": "Train a skill on a task, a data file or a configuration.",
    "doctor": "Look at a task before training: scorer, splits, noise, headroom, cost.",
    "run": "Carry out a study: tasks x trainers x parameters x seeds.",
    "validate": "Check a study and show its jobs, before anything runs.",
    "report": "Show what a run came to; derive its files anew.",
    "compare": "Say which arm is better: runs, or what others logged.",
    "plan": "Fix how a comparison will be judged, before there are results.",
    "variance": "Say whether there are enough runs.",
    "power": "Say how many runs an effect takes.",
    "resume": "Carry on a run where it stopped, or verify a finished one.",
    "status": "Show all runs, or one in detail.",
    "explain": "Say of every line of a skill where it comes from and what it does.",
    "replay": "Take a job's decisions again with another gate.",
    "watch": "Follow the story of a job as it goes on.",
    "export": "Take what was learned along: a skill folder, a prompt or a Python file.",
    "eval": "Score a checkpoint or a skill on any split.",
    "play": "Have a policy play, and film it.",
    "new": "Make a task of your own that trains at once.",
    "list": "Show tasks, trainers, models, gates, proposers and metrics.",
    "serve": "Serve a model over HTTP, as OpenAI's API.",
}


class _Commands(click.Group):
    """A group that knows its commands by name and loads one when it is called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"sharpen.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            known = tuple(COMMANDS)
            raise click.UsageError(
                f"no command {args[0]!r}{nearest(args[0], known)}; there are {', '.join(known)}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="sharpen %(version)s")
def program() -> None:
    """Train what an agent knows, and prove that it got better."""


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line and return the program's exit code."""
    as_json = "--json" in arguments
    remember_environment()
    try:
        raise_on_stop_signals()
        code = program.main(list(arguments), prog_name="sharpen", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        usage = "" if error.ctx is None or as_json else f"{error.ctx.get_usage()}\n"
        return _complain(error.format_message(), 2, as_json, before=usage)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code, as_json)
    except SharpenError as error:
        return _complain(str(error), error.exit_code, as_json)
    except SystemExit as error:  # ours return their exit code: code of a task, metric or trainer has left
        return _complain(f"somebody's own code ended the program with sys.exit({error.code!r})", 1, as_json)
    except (KeyboardInterrupt, click.Abort):
        return _complain("stopped", INTERRUPTED, as_json)
    except BrokenPipeError:
        # Whoever read the output has gone: say nothing more, also not when the interpreter flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _complain(message: str, code: int, as_json: bool, *, before: str = "") -> int:
    clean = redact(message)
    if as_json:
        echo_json({"error": clean, "exit_code": code})
    else:
        say(f"{before}sharpen: {clean}")
    return code
