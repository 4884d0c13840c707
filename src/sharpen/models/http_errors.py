"""What an HTTP endpoint's refusal means: from a status, a body and headers, or a broken connection, to a `ModelError`.

Shared by every model that is reached over HTTP. Each error carries one sentence that names the endpoint and says what to do
where that is known; secrets are blanked, since an endpoint may quote the key it was given.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from datetime import UTC

from sharpen.core.digest import Json
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.core.redact import redact_echo

_KINDS = {
    400: ModelErrorKind.BAD_REQUEST,
    401: ModelErrorKind.AUTH,
    403: ModelErrorKind.AUTH,
    404: ModelErrorKind.NOT_FOUND,
    408: ModelErrorKind.TIMEOUT,
    413: ModelErrorKind.BAD_REQUEST,
    422: ModelErrorKind.BAD_REQUEST,
    429: ModelErrorKind.RATE_LIMITED,
    529: ModelErrorKind.RATE_LIMITED,
}
ADVICE = {
    ModelErrorKind.AUTH: "check the API key",
    ModelErrorKind.NOT_FOUND: "check the model's name and the base URL",
}
# A 429 with one of these codes says that nothing more will be served until somebody pays: waiting does not heal it.
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_LONGEST = 300


def from_status(
    endpoint: str,
    status: int,
    body: Json,
    headers: Mapping[str, str],
    *,
    counts: bool = False,
    advice: Mapping[ModelErrorKind, str] = ADVICE,
) -> ModelError:
    """The error for an answer with an HTTP status of 400 or more (or one that stands in the body of a 200, which counts as
    paid: the endpoint did answer)."""
    said, code = _said(body)
    kind = _KINDS.get(status)
    if kind is None:
        kind = ModelErrorKind.UNAVAILABLE if status >= 500 else ModelErrorKind.BAD_REQUEST
    if kind is ModelErrorKind.RATE_LIMITED and code in _SPENT:
        kind = ModelErrorKind.AUTH
        return ModelError(kind, f"{endpoint} answered {status}: {said} (the account has no credit left)", counts=counts)
    hint = f" ({advice[kind]})" if kind in advice else ""
    message = f"{endpoint} answered {status}{': ' + said if said else ''}{hint}"
    return ModelError(kind, message, retry_after=retry_after(headers), counts=counts)


def from_redirect(endpoint: str, status: int, headers: Mapping[str, str]) -> ModelError:
    """The error for an answer that points elsewhere: what was meant for one address is not sent to another."""
    target = redact_echo(headers.get("location", "")[:_LONGEST])
    return ModelError(
        ModelErrorKind.NOT_FOUND,
        f"{endpoint} answered {status} and points to {target!a}; redirects are not followed: name that address instead",
    )


def from_timeout(endpoint: str, seconds: float) -> ModelError:
    return ModelError(ModelErrorKind.TIMEOUT, f"{endpoint} did not answer within {seconds:g} s")


def from_connection(endpoint: str, error: BaseException) -> ModelError:
    """The error for a connection that could not be made, or broke. What really happened stands at the root of the chain:
    transports wrap it, and not always under a fitting name."""
    chain = _chain(error)
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    detail = redact_echo(str(chain[-1]) or type(chain[-1]).__name__)[:_LONGEST]
    if names & {"ClientConnectorError", "ConnectError", "ConnectionTimeoutError", "gaierror"}:
        return ModelError(
            ModelErrorKind.UNREACHABLE,
            f"cannot reach {endpoint}: {detail} (is the server running, is the address right?)",
        )
    if names & {"ServerTimeoutError", "TimeoutError"}:
        return ModelError(ModelErrorKind.TIMEOUT, f"{endpoint} stopped answering: {detail}")
    return ModelError(ModelErrorKind.UNAVAILABLE, f"the connection to {endpoint} broke: {detail}")


def bad_reply(endpoint: str, why: str) -> ModelError:
    return ModelError(
        ModelErrorKind.BAD_REPLY, f"{endpoint} answered with something unusable: {redact_echo(why)[:_LONGEST]}"
    )


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The wait an endpoint asks for, in seconds: `retry-after-ms`, or `retry-after` as seconds or as an HTTP date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        date = email.utils.parsedate_to_datetime(value)
        until = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError, OSError):  # a header may say anything
        return None
    return max(0.0, until - (time.time() if now is None else now))


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def message_in(error: Json) -> str:
    """An endpoint's own words, from any of the shapes in use: a line of some hundred characters, without secrets."""
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("detail") or error
    try:
        text = str(error or "")
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        text = "an error that can't be shown"
    # Cut twice: what is cut first may be the half of a secret, which would not be known any more.
    line = redact_echo(" ".join(text[: 10 * _LONGEST].split()))[:_LONGEST]
    return line.encode("utf-8", "replace").decode()


def _said(body: Json) -> tuple[str, str]:
    """The endpoint's own words and its error code."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    code = inner.get("code") or inner.get("type") if isinstance(inner, Mapping) else None
    return message_in(inner), code if isinstance(code, str) else ""


def _chain(error: BaseException) -> list[BaseException]:
    links = [error]
    while (link := links[-1].__cause__ or links[-1].__context__) is not None and link not in links:
        links.append(link)
    return links
