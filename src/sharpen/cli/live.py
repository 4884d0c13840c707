"""Progress for people while a job runs: looks at the job a few times a second, never takes part in it.

On a terminal, a status of three lines is kept up to date below one line per finished step. Elsewhere, plain lines: one per
finished step, and a sign of life now and then. What a step came to is read from the story on disk, where it stands anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sharpen.bench import artifacts
from sharpen.cli.console import LiveArea
from sharpen.cli.pace import Pace, Reading
from sharpen.cli.terminal import say
from sharpen.engine.job import Job
from sharpen.report import steps, text

_PERIOD = 0.125
_SIGN_OF_LIFE = 15.0
_ENOUGH_TO_TELL = 2.0


class Display(Protocol):
    """Where progress is shown."""

    def line(self, words: str) -> None: ...
    def warn(self, words: str) -> None: ...
    def update(self, job: Job, elapsed: float, left: float | None) -> None: ...
    def close(self) -> None: ...


class Silent:
    """Shows no progress, but says what has to be said."""

    def line(self, words: str) -> None: ...
    def warn(self, words: str) -> None:
        say(words)

    def update(self, job: Job, elapsed: float, left: float | None) -> None: ...
    def close(self) -> None: ...


class Plain:
    """Lines on a stream that is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = 0.0

    def line(self, words: str) -> None:
        self._console.print(Text(words), soft_wrap=True)

    def warn(self, words: str) -> None:
        self.line(words)

    def update(self, job: Job, elapsed: float, left: float | None) -> None:
        if elapsed - self._last >= _SIGN_OF_LIFE:
            self._last = elapsed
            self.line("  " + " · ".join([_position(job), *_scores(job), *_spent(job), _times(elapsed, left)]))

    def close(self) -> None: ...


class OnTerminal:
    """A status that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = LiveArea(console)

    def line(self, words: str) -> None:
        self._console.print(Text(words, style="dim"), soft_wrap=True)

    def warn(self, words: str) -> None:
        self._console.print(Text(words, style="yellow"), soft_wrap=True)

    def update(self, job: Job, elapsed: float, left: float | None) -> None:
        progress = job.progress
        bar = Table.grid(padding=(0, 2))
        share = ProgressBar(total=max(1, progress.total), completed=progress.done, width=28)
        bar.add_row(Text(_position(job), style="bold"), share, Text("  ".join(_scores(job))))
        rows: list[Any] = [bar, Text(" · ".join([*_spent(job), _times(elapsed, left)]), style="cyan")]
        if progress.retries:
            said = text.short(progress.last_retry, 70)
            rows.append(Text(f"{text.plural(progress.retries, 'call')} tried again; last: {said}", style="yellow"))
        self._live.update(Group(*rows))

    def close(self) -> None:
        self._live.close()


def choose(console: Console, *, silent: bool) -> Display:
    if silent:
        return Silent()
    return OnTerminal(console) if console.is_terminal else Plain(console)


class Watch:
    """Follows one job until it is told to stop. `closing_calls` is what the time left has to allow for at the end."""

    def __init__(self, display: Display, closing_calls: int) -> None:
        self._display = display
        self._closing_calls = closing_calls
        self._task: asyncio.Task[None] | None = None

    def start(self, job: Job) -> None:
        """Begin to look at a job; must be called on its event loop."""
        self._task = asyncio.get_running_loop().create_task(self._follow(job))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()

    async def _follow(self, job: Job) -> None:
        began = time.monotonic()
        plays = job.task.trainee == "policy"
        pace: Pace | StepPace = StepPace() if plays else Pace(self._closing_calls, job.budget.caps.calls)
        finished = Finished(job.runtime.story.path)
        before = sum(words.startswith("step ") for words in finished.new())
        if before:
            self._display.line(f"{text.plural(before, 'finished step')} known from before")
        try:
            while True:
                self._look(job, finished, pace, time.monotonic() - began)
                await asyncio.sleep(_PERIOD)
        finally:
            self._show_lines(job, finished)

    def _look(self, job: Job, finished: Finished, pace: Pace | StepPace, elapsed: float) -> None:
        self._show_lines(job, finished)
        self._display.update(job, elapsed, pace.left(_reading(job, elapsed)))

    def _show_lines(self, job: Job, finished: Finished) -> None:
        while job.progress.notices:
            self._display.warn(job.progress.notices.pop(0))
        for words in finished.new():
            self._display.line(words)


class StepPace:
    """How long a policy's training still takes: steps cost time, and evaluations on the way are part of what they cost."""

    def __init__(self) -> None:
        self._began: tuple[int, float] | None = None

    def left(self, now: Reading) -> float | None:
        """Seconds left; None where there is nothing to go by yet, and after the last step."""
        if now.stage != "train" or now.done == 0:
            return None
        if self._began is None:
            self._began = (now.done, now.elapsed)
        steps, elapsed = now.done - self._began[0], now.elapsed - self._began[1]
        return (now.steps - now.done) * elapsed / steps if steps > 0 and elapsed > _ENOUGH_TO_TELL else None


class Finished:
    """What came to an end since one last looked, in words, from the story on disk: steps, and what is said beside them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._lines: list[dict[str, Any]] = []

    def new(self) -> Iterator[str]:
        for line in self._read():
            self._lines.append(line)
            if line["type"] == "step_done":
                yield steps.line(artifacts.step(self._lines, line))
                self._lines.clear()
            else:
                yield from steps.asides(line)

    def _read(self) -> list[dict[str, Any]]:
        import json

        size = self._path.stat().st_size if self._path.exists() else 0
        if size <= self._offset:
            self._offset = size  # the log may have been cut back
            return []
        with self._path.open("rb") as file:
            file.seek(max(0, self._offset - 1))
            if self._offset and file.read(1) != b"\n":  # cut back, and grown past where we were
                self._offset += len(file.readline())
            found = file.read()
        whole = found[: found.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def _reading(job: Job, elapsed: float) -> Reading:
    progress = job.progress
    return Reading(
        step=progress.step,
        steps=progress.steps,
        stage=progress.stage,
        calls=job.budget.spent.calls,
        paid=job.runtime.gateway.paid_calls,
        elapsed=elapsed,
        open_items=max(0, progress.total - progress.done),
        done=progress.done,
    )


def _position(job: Job) -> str:
    progress = job.progress
    where = f"step {progress.step}/{progress.steps}  {progress.stage}" if progress.steps else progress.stage
    if job.runtime.story.replaying:
        where += " (replaying)"
    return f"{where}  {progress.done}/{progress.total}" if progress.total else where


def _scores(job: Job) -> list[str]:
    progress = job.progress
    found = []
    if progress.score is not None:
        found.append(f"train batch {text.score(progress.score)}")
    if progress.best is not None:
        found.append(f"best on val {text.score(progress.best)}")
    return found


def _spent(job: Job) -> list[str]:
    """What models were asked; nothing where there is none to ask."""
    spent = job.budget.spent
    if not job.task.calls_per_rollout and not spent.calls:
        return []
    words = f"{text.plural(spent.calls, 'call')}, {text.plural(spent.tokens, 'token')}"
    return [words + (f", {spent.money:.4f} in money" if spent.money else "")]


def _times(elapsed: float, left: float | None) -> str:
    to_come = "time left not known yet" if left is None else f"about {text.clock(left)} left"
    return f"{text.clock(elapsed)} so far, {to_come}"
