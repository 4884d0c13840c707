"""`sharpen watch`: the story of a job in the terminal, as it goes on in whatever process carries it out.

It reads `events.jsonl` as it grows and touches nothing. On a terminal a status stands below the story: where the job is,
what it has used, how long it may still take. Elsewhere there are plain lines. It ends when the job does.
"""

from __future__ import annotations

import json
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from sharpen.cli import options
from sharpen.cli.terminal import echo

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from sharpen.bench.layout import RunFolder
    from sharpen.cli.pace import Pace
    from sharpen.report.watching import Position, Telling

INTERRUPTED = 130
_PERIOD = 0.2
_ALIVE = 1.0
"""Seconds between two looks at whether the job's process lives. Each look takes the lock for a moment, so there are few."""
_PATIENCE = 15.0
"""Seconds to wait for the first event of a run that has only just been laid out."""


@click.command()
@click.argument("job", default="latest")
@click.option("--no-follow", is_flag=True, help="Tell the story so far, and do not wait for more.")
@options.runs_option
def command(job: str, no_follow: bool, runs: Path) -> int:
    """Follow JOB (a run, or the folder of one of its jobs; the newest run where none is given) until it ends.

    Ctrl-C ends the watching, not the job.
    """
    from sharpen.bench.config import load
    from sharpen.bench.reopening import home_of
    from sharpen.cli.console import console
    from sharpen.cli.running import shown
    from sharpen.cli.terminal import say

    run, folder = _begun(job, runs, 0.0 if no_follow else _PATIENCE)
    if folder is None:
        echo(f"{run.path.name}: nothing has happened yet")
        return 0
    display = _display(console(), live=not no_follow)
    watch = Watch(folder, display, load(home_of(run, folder).config).budget.calls)
    try:
        alive = watch.follow(wait=not no_follow)
    except KeyboardInterrupt:
        display.close()
        say("no longer watching; the job itself was not touched")
        return INTERRUPTED
    finally:
        display.close()
    _farewell(watch, alive, shown(run.path), folder)
    return 0


def _begun(given: str, root: Path, patience: float) -> tuple[RunFolder, Path | None]:
    """The run that is meant, and the job of it to follow: of several the one that runs, or the last to tell something."""
    from sharpen.bench.layout import is_running
    from sharpen.cli.finding import find
    from sharpen.cli.running import shown
    from sharpen.cli.terminal import say

    found, end = find(given, root), time.monotonic() + patience
    while not found.jobs and time.monotonic() < end:
        time.sleep(_PERIOD)
        found = find(str(found.run.path), root)
    if not found.jobs:
        return found.run, None
    chosen = max(found.jobs, key=lambda job: (is_running(job), (job / "events.jsonl").stat().st_mtime))
    if len(found.jobs) > 1:
        say(f"{shown(found.run.path)} has {len(found.jobs)} jobs; this is {chosen.name}")
    return found.run, chosen


def _farewell(watch: Watch, alive: bool, path: str, job: Path) -> None:
    """What is to be said below the story."""
    from sharpen.bench.layout import read_json
    from sharpen.bench.tables import PROCESS
    from sharpen.cli.running import called

    ended = watch.telling.position.ended
    if alive:
        echo(f"\nthe job is running: {' · '.join(watch.status())}")
    elif ended is None:
        reason = read_json(job / PROCESS)["reason"] if (job / PROCESS).exists() else ""
        why = f": {reason}" if reason else ""
        echo(f"\nthe job's process is not running, and the story is not at its end{why}")
    if not alive and ended in (None, "failed"):
        echo(f"carry on with: {called()} resume {path}")
    elif not alive and ended is not None:
        echo(f"more: {called()} status {path}")


class Tail:
    """The lines of a file that grows. A last line that is not whole yet is left for the next look. Where a resumed job cut
    off an ending that had been read, `read` says how many of the lines it gave before still stand."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: list[tuple[int, int]] = []
        """Of each line that was read, where it ends and a checksum."""

    def read(self) -> tuple[int, list[dict[str, Any]]]:
        """How many of the lines that were read before still stand, and the new ones."""
        from sharpen.core.errors import StorageError

        try:
            with self._path.open("rb") as file:
                self._go_back(file)
                offset = self._marks[-1][0] if self._marks else 0
                file.seek(offset)
                found = file.read()
        except OSError as error:
            raise StorageError(f"cannot read {self._path}: {error.strerror}") from error
        stand, lines = len(self._marks), []
        for line in found[: found.rfind(b"\n") + 1].splitlines(keepends=True):
            offset += len(line)
            self._marks.append((offset, zlib.crc32(line)))
            try:
                lines.append(json.loads(line))
            except ValueError as error:
                raise StorageError(f"{self._path} is damaged at line {len(self._marks)}: {error}") from error
        return stand, lines

    def _go_back(self, file: Any) -> None:
        """Forget the lines at the end that no longer stand in the file."""
        while self._marks:
            end, checksum = self._marks[-1]
            start = self._marks[-2][0] if len(self._marks) > 1 else 0
            file.seek(start)
            if zlib.crc32(file.read(end - start)) == checksum:
                return
            self._marks.pop()


@dataclass
class Watch:
    """One story being followed."""

    folder: Path
    display: Display
    cap: int | None
    telling: Telling = field(init=False)
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._story = self.folder / "events.jsonl"
        self._tail = Tail(self._story)
        self._heard = 0
        self._began_anew()

    def follow(self, *, wait: bool) -> bool:
        """Tell the story to its end, or as far as it goes; returns whether the job runs."""
        from sharpen.bench.layout import is_running

        looked, alive = -_ALIVE, False
        while True:
            # First whether it lives, then what it wrote: whoever is gone has written everything.
            if time.monotonic() - looked >= _ALIVE:
                looked, alive = time.monotonic(), is_running(self.folder)
            self._look()
            if not wait or not alive:
                return alive
            self.display.update(self.telling.position, self.status())
            time.sleep(_PERIOD)

    def status(self) -> list[str]:
        """Where the job stands, in phrases."""
        from sharpen.report import text
        from sharpen.report.watching import spent

        now = self.telling.position
        seconds = self._seconds(now)
        left = self._left(now, seconds)
        scores = [f"best on val {text.score(now.best)}"] if now.best is not None else []
        cap = "" if self.cap is None else f" (at most {text.plural(self.cap, 'call')})"
        if left is None:
            to_come = "time left not known yet"
        else:
            calls = round(left * now.used.calls / seconds) if seconds else 0
            to_come = f"about {text.clock(left)} and {text.plural(calls, 'call')} left"
        quiet = None if now.at is None else time.time() - now.at
        return [
            f"step {now.step}/{now.steps} {now.stage}" if now.steps else now.stage,
            *scores,
            f"{spent(now.used)}{cap}",
            f"{text.clock(seconds)} so far, {to_come}",
            f"last event {text.age(quiet)}",
        ]

    def _look(self) -> None:
        from rich.text import Text

        from sharpen.engine.replay import read_events

        stand, lines = self._tail.read()
        if stand < self._heard:
            self._began_anew()
            for line in read_events(self._story)[:stand]:
                self._hear(line)
            self.display.say(Text("\nresumed: the ending above no longer stands", style="yellow"))
        self._heard = stand + len(lines)
        for line in lines:
            said = self._hear(line)
            if said is not None:
                self.display.say(said)

    def _began_anew(self) -> None:
        from sharpen.cli.pace import Pace
        from sharpen.report.watching import Telling

        self.telling = Telling(self._load)
        self.pace = Pace(0, self.cap)

    def _hear(self, line: dict[str, Any]) -> Text | None:
        said = self.telling.tell(line)
        if line.get("type") == "step_done":
            now = self.telling.position
            self._left(now, now.seconds)
        return said

    def _left(self, now: Position, seconds: float) -> float | None:
        from sharpen.cli.pace import Reading

        self.pace.closing_calls = now.closing_calls
        calls = now.used.calls
        open_items = now.closing_calls if now.stage == "test" else 0
        return self.pace.left(Reading(now.step, now.steps, now.stage, calls, calls, seconds, open_items))

    def _seconds(self, now: Position) -> float:
        """How long the job has run: by its last event, and on from there while it runs."""
        try:
            # Written whenever a process takes the job up: the time it lay still before that is none of its own.
            taken_up = (self.folder / "job_meta.json").stat().st_mtime
        except OSError:
            taken_up = 0.0
        return now.seconds if now.at is None else now.seconds + max(0.0, time.time() - max(now.at, taken_up))

    def _load(self, path: str) -> Any:
        from sharpen.core.errors import UsageError
        from sharpen.engine import checkpoints

        try:
            return checkpoints.load(checkpoints.path_in(self.folder, path))
        except (UsageError, OSError, ValueError, KeyError):
            # A checkpoint that was moved or damaged: its changes are shown as edits then.
            return None


class Display(Protocol):
    """Where the story is shown."""

    def say(self, said: Text) -> None: ...
    def update(self, now: Position, status: list[str]) -> None: ...
    def close(self) -> None: ...


class Plain:
    """Lines, for files, pipes and stories that are not waited for. A terminal gets long ones wrapped and indented."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, said: Text) -> None:
        from rich.padding import Padding

        if not self._console.is_terminal:
            self._console.print(said, soft_wrap=True)
            return
        for line in said.split("\n", allow_blank=True):
            indent = len(line.plain) - len(line.plain.lstrip())
            # Nothing at all would be printed of an empty text in a padding.
            self._console.print(Padding(line[indent:], (0, 0, 0, indent), expand=False) if line.plain else line)

    def update(self, now: Position, status: list[str]) -> None: ...
    def close(self) -> None: ...


class OnTerminal(Plain):
    """The story scrolls above a status that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        from sharpen.cli.console import LiveArea

        super().__init__(console)
        self._live = LiveArea(console)

    def update(self, now: Position, status: list[str]) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 2))
        share = ProgressBar(total=max(1, now.steps), completed=max(0, now.step - 1), width=28)
        bar.add_row(Text(status[0], style="bold"), share, Text("  ".join(status[1:-3])))
        self._live.update(Group(Text(""), bar, Text(" · ".join(status[-3:]), style="cyan")))

    def close(self) -> None:
        self._live.close()


def _display(console: Console, *, live: bool) -> Display:
    return OnTerminal(console) if live and console.is_terminal else Plain(console)
