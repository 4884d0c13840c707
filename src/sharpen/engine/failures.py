"""Rollouts that failed: how many of a measurement may, and what is said of code that raised an exception.

A crash in the code of a task or metric is the failure of the item it happened on. Past the limit the job ends; with crashes
it ends as soon as the limit is passed, since the same code would meet the other items.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path

from sharpen.core.errors import SharpenError, TooManyFailures, in_a_line
from sharpen.core.outcome import Failure, FailureKind, Outcome
from sharpen.core.redact import redact

_FRAMES = 8
_LONGEST = 300
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
_OF_OTHERS = (str(Path(__file__).parents[1]), str(Path(os.__file__).parent), "<")
"""How the file names of code begin that the author of a task has not written; installed packages are not among them."""


def describe_crash(error: BaseException) -> Failure:
    """The failure that an exception in somebody's code is: what it says, and the file and line it comes from."""
    said = _without_addresses(in_a_line(error))[:_LONGEST]
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first one is the engine's
    if isinstance(error, SharpenError):
        return Failure(FailureKind.CRASHED, redact(str(error)))
    if not frames:
        return Failure(FailureKind.CRASHED, redact(said))
    place = next((frame for frame in reversed(frames) if _is_the_authors(frame.filename)), frames[-1])
    source = f": {place.line[:80]}" if place.line else ""
    message = f"{said} ({Path(place.filename).name}, line {place.lineno}, in {place.name}{source})"
    way = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames[-_FRAMES:])
    return Failure(FailureKind.CRASHED, redact(message), redact(way))


def _is_the_authors(filename: str) -> bool:
    return not filename.startswith(_OF_OTHERS) and "site-packages" not in filename


_FEW = 2
"""Of so few rollouts all may fail by chance: gates ask for one or two at a time."""


def allowed_failures(share: float | None, wanted: int) -> float:
    """How many of so many rollouts may fail: a share of them, one at least, but not all, unless there are only a few or the
    share is all of them; any number without a share."""
    if share is None or share >= 1.0:
        return inf
    most = max(1.0, share * wanted)
    return 0.0 if share == 0 else min(most, wanted - 1) if wanted > _FEW else most


def check_failures(failed: Sequence[Outcome], wanted: int, share: float | None) -> None:
    """Raise `TooManyFailures` where more of `wanted` rollouts failed than may."""
    broken = [outcome for outcome in failed if outcome.failure is not None and _broke_off(outcome.failure)]
    if not broken or len(broken) <= allowed_failures(share, wanted):
        return
    kinds = sorted({str(failure.kind) for failure in _failures(broken)})
    most = "" if len(broken) == wanted or share is None else f"; at most {share:.0%} may"
    raise TooManyFailures(
        f"{len(broken)} of {wanted} rollouts failed for reasons that are not the agent's ({', '.join(kinds)})"
        f"{most}. {_example(broken)}"
    )


def check_crashes(crashed: Sequence[Outcome], wanted: int, share: float | None) -> None:
    """Raise `TooManyFailures` where that is certain while other rollouts of the measurement are still to come."""
    if len(crashed) > allowed_failures(share, wanted):
        raise TooManyFailures(
            f"{len(crashed)} rollouts failed because of an error in the task's own code or metric; at most "
            f"{allowed_failures(share, wanted):.0f} of {wanted} may. {_example(crashed)}"
        )


def _example(failed: Sequence[Outcome]) -> str:
    first = next((o for o in failed if o.failure is not None and o.failure.kind is FailureKind.CRASHED), None)
    if first is None or first.failure is None:
        return f"The last one said: {list(_failures(failed))[-1].message}"
    trace = f"; called by way of {first.failure.trace}" if first.failure.trace else ""
    return f"First on item {first.item_id!r}: {first.failure.message}{trace}"


def _failures(outcomes: Iterable[Outcome]) -> Iterable[Failure]:
    return (outcome.failure for outcome in outcomes if outcome.failure is not None)


def _broke_off(failure: Failure) -> bool:
    """Whether a rollout failed for a reason outside of it, which trying again may heal."""
    return failure.kind is not FailureKind.NOT_A_NUMBER


def _without_addresses(text: str) -> str:
    """A text without the addresses of objects, which differ from run to run."""
    return _ADDRESS.sub("0x...", text)
