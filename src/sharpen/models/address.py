"""The address of an endpoint: it is written into files and shown, so it may hold no secret.

Where an endpoint wants a token in its path or its query, the address names a variable instead, as in
`https://host/${SHARPEN_TOKEN}/v1`, and only the request has the value. Such a variable begins with `SHARPEN_`: an address in
a configuration that somebody sent cannot ask for other secrets of the environment.
"""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from sharpen.core.errors import UsageError
from sharpen.core.redact import names_secret, remember
from sharpen.core.secrecy import secrets_in
from sharpen.models.keys import SHARPEN_KEY

_VARIABLE = re.compile(r"\$\{([A-Za-z0-9_]*)\}")
_TOKEN = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
"""Letters and digits in a row, as no word and no version has them."""


def check_address(url: str) -> None:
    """Refuse an address that holds a password, a key, or what looks like a token."""
    parts = urlsplit(url)
    given = [(key, value) for key, value in parse_qsl(parts.query) if not _VARIABLE.fullmatch(value)]
    secrets = [value for key, value in given if names_secret(key)] + list(_tokens(unquote(parts.path)))
    if parts.username or parts.password or secrets:
        for secret in secrets:
            remember(secret)
        raise UsageError(
            f"the address of {parts.hostname} holds a password, a key or a token, and addresses are written into files; "
            f"give it in {SHARPEN_KEY}, or in a variable such as SHARPEN_TOKEN, and write ${{SHARPEN_TOKEN}} in its place"
        )


def fill_in(url: str) -> str:
    """An address with the values of the variables it names, for a request alone."""
    return _VARIABLE.sub(lambda named: _value(named[1]), url)


def _tokens(path: str) -> list[str]:
    segments = [segment for segment in path.split("/") if not _VARIABLE.search(segment)]
    return [segment for segment in segments if _TOKEN.search(segment) or any(True for _ in secrets_in(segment))]


def _value(name: str) -> str:
    if not name.startswith("SHARPEN_") or name == SHARPEN_KEY:
        raise UsageError(
            f"an address can't hold ${{{name}}}: a variable in it begins with SHARPEN_, and is not {SHARPEN_KEY}"
        )
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"an address names ${{{name}}}, and there is no such variable; set it")
    remember(value)
    return value
