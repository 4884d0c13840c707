"""The whole error model.

`SharpenError` and its subclasses are for what a person can act on; each carries one message that says what was wrong,
where, and what would be right, and the exit code of the command that meets it. Anything else that escapes is a bug and
keeps its traceback.

A call of a model fails with a `ModelError`. Its `kind` decides what happens next: `HEALS` are tried again with growing
pauses; the rest are not. `FATAL` ones mean that every further call would fail in the same way (a wrong key, an unknown
model, nobody listening), so they stop the job at once; the others become the failure of the one rollout they hit.
What a failed call may have cost counts (`ModelError.counts`): caps are kept by it.
"""

from __future__ import annotations

from enum import StrEnum

from sharpen.core.usage import NOTHING, Usage


class SharpenError(Exception):
    """Something the person at the keyboard can fix. `str(error)` is the whole message."""

    exit_code = 1


class UsageError(SharpenError):
    """Asked for something impossible: an unknown name, a wrong type, a missing file, a broken data line."""

    exit_code = 2


class MissingRequirement(UsageError):
    """A package or a program is not here. The message says which, and how to get it. A study goes on without the jobs that
    need it."""


class BudgetExhausted(SharpenError):
    """The next call would pass a cap. Nothing was sent."""

    exit_code = 3


class TooManyFailures(SharpenError):
    """More rollouts failed for reasons that are not the agent's than the job may leave out."""


class NotDeterministic(SharpenError):
    """Replaying a job gave another story than the one on disk."""


class Interrupted(SharpenError):
    """The job is coming to its end for another reason; nothing more is written to its log in this session."""

    exit_code = 130


class StorageError(SharpenError):
    """The disk would not take what had to be kept."""


class SandboxFailed(SharpenError):
    """A program could not be run at all, through no fault of its own. It becomes the failure of the rollout it hit."""


class NoScore(SharpenError):
    """An attempt came to something that is not a number. It becomes the failure of that rollout."""


class ScoringTimeout(NoScore):
    """Scoring an answer took longer than it is given. It becomes the failure of that rollout."""


class ModelErrorKind(StrEnum):
    RATE_LIMITED = "rate_limited"  # 429, 529
    UNAVAILABLE = "unavailable"  # 5xx, connection lost
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"  # nobody listening, no such host
    AUTH = "auth"  # 401, 403
    NOT_FOUND = "not_found"  # 404: no such model or path
    BAD_REQUEST = "bad_request"  # 400, 413, 422: this request will never be accepted
    BAD_REPLY = "bad_reply"  # answered, but not with what was asked for


HEALS = frozenset(
    {ModelErrorKind.RATE_LIMITED, ModelErrorKind.UNAVAILABLE, ModelErrorKind.TIMEOUT, ModelErrorKind.UNREACHABLE}
)
FATAL = frozenset({ModelErrorKind.AUTH, ModelErrorKind.NOT_FOUND, ModelErrorKind.UNREACHABLE})
ANSWERED = frozenset({ModelErrorKind.UNAVAILABLE, ModelErrorKind.TIMEOUT, ModelErrorKind.BAD_REPLY})
"""Kinds of failure after which the endpoint may have answered all the same, unless the error says otherwise."""


class ModelError(SharpenError):
    """A call of a model that brought no usable reply. `retry_after` is the endpoint's own wish, in seconds; `usage` is what
    an answer that is of no use cost all the same. `counts` says whether the call counts as paid: it does where the endpoint
    answered, or may have; it does not where nobody was reached or the endpoint refused with an error status."""

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        usage: Usage = NOTHING,
        counts: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.usage = usage
        self.counts = kind in ANSWERED if counts is None else counts


def in_a_line(error: BaseException) -> str:
    """An exception's type and the first line of what it says."""
    try:
        said = str(error).strip()
    except Exception:  # its own way of putting it may be broken too
        said = ""
    return f"{type(error).__name__}: {said.splitlines()[0]}" if said else type(error).__name__


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """` (did you mean 'x'?)` when something known is close to `word`, else nothing."""
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.55)
    return f" (did you mean {close[0]!r}?)" if close else ""
