"""What a secret looks like: by the name it has, by its form, and by what its value is made of.

Names are taken apart at separators, capitals and digits, and the last word decides: `clientSecret`, `PGPASSWORD` and
`OPENAI_API_KEY2` name secrets. `key` does so alone, or after a word such as `api` or `private`; `sort_key` and
`PRIMARY_KEY` don't. `token` does, but not among a tokenizer's own (`eos_token`), and `tokens` only after a word such as
`access`. `auth` does as a word of its own: `author` is none.

Forms are those of keys whose makers gave them a mark (`ghp_...`, `AKIA...`, a JWT, a block of PEM), of passwords and keys
in addresses, of what stands behind `Bearer`, and of a text that is nothing but `password=...`. A digest has no such mark,
and is no secret.

A value that nothing but its variable's name speaks for must look like one, too: at least 8 characters, and not a single
word or a number of fewer than 16, not a path, and not one of the placeholders that people write where a key is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

BLANK = "[redacted]"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TELLING = frozenset(
    [
        "secret",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "authorization",
        "auth",
        "credential",
        "cookie",
        "bearer",
        "jwt",
    ]
) | frozenset(f"{word}s" for word in ["secret", "password", "passwd", "passphrase", "credential", "cookie"])
_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "privatekey", "secretkey", "accesskey")
_QUALIFIERS = frozenset({"base", "value", "string", "pem"})
_KEY_OF = frozenset({
    "api", "access", "secret", "private", "signing", "signature", "encryption", "auth", "ssh", "service", "master",
    "account", "license", "licence", "deploy", "subscription", "app", "application", "consumer", "admin", "client",
    "shared", "hmac", "session", "webhook", "write", "rsa", "ssl", "tls", "pgp", "gpg", "openai", "anthropic", "azure",
    "aws", "gcp", "google", "gemini", "hf", "huggingface", "mistral", "groq", "cohere", "together", "openrouter",
    "deepseek", "fireworks", "wandb", "github", "gitlab", "stripe", "sendgrid", "twilio", "datadog",
})  # fmt: skip
_TOKENS_OF = frozenset({
    "access", "auth", "api", "refresh", "bearer", "session", "secret",
})  # fmt: skip
_NO_TOKEN = frozenset({
    "eos", "bos", "pad", "sep", "cls", "mask", "unk", "stop", "start", "end", "special", "next", "first", "last",
    "image", "prompt", "per",
})  # fmt: skip
_WITH_SEPARATOR = re.compile(
    r"(?ai)[_-]pat[_-]?[0-9]*$|(?:db|database|user|admin|root|smtp|mail|email|ftp|ssh|mysql|pg|postgres|redis|mongo|"
    r"proxy|login|http|ldap|sudo|vault)[_-]pass[_-]?[0-9]*$"
)
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})
"""Where a shell is, and was."""
_IN_NAMES = (
    "key", "token", "secret", "passw", "passp", "pwd", "auth", "credential", "cookie", "bearer", "jwt", "_pat", "-pat",
    "_pass", "-pass",
)  # fmt: skip
"""Some piece of every name that names a secret, in lower case."""

_PLACEHOLDERS = frozenset({
    "none", "null", "empty", "dummy", "test", "testing", "ollama", "local", "localhost", "vllm", "llamacpp", "lmstudio",
    "lm-studio", "lm_studio", "llama-cpp", "not-needed", "not_needed", "notneeded", "not-required", "not-used",
    "unused", "no-key", "no_key", "nokey", "no-key-required", "no-key-needed", "sk-no-key-required", "sk-dummy",
    "sk-test", "sk-none", "changeme", "change-me", "change_me", "placeholder", "your-api-key", "your_api_key",
    "your-key", "your_key", "your-api-key-here", "your_api_key_here", "token-abc123", "disabled", "undefined",
})  # fmt: skip
_WORD = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+|[0-9.]+|(.)\1*")
_PATH = re.compile(r"(?:~|\.\.?)/.*|[A-Za-z]:[\\/].*|/(?:home|root|etc|usr|var|tmp|run|opt|mnt|srv|data|Users)/.*")
_USER = re.compile(r"[a-z][a-z._-]*")


@lru_cache(4096)
def names_secret(name: str) -> bool:
    """Whether what has this name is a secret."""
    if name in _NO_SECRETS:
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    qualified = False
    while len(words) > 1 and words[-1] in _QUALIFIERS:
        words.pop()
        qualified = True
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _TELLING or last.endswith(_ENDINGS) or last.removesuffix("s").endswith("apikey"):
        return True
    if last in ("key", "keys"):
        return before in _KEY_OF or not (before or qualified)
    if last == "token":
        return before not in _NO_TOKEN and not qualified
    return (last == "tokens" and before in _TOKENS_OF) or _WITH_SEPARATOR.search(name) is not None


def is_placeholder(value: str) -> bool:
    """Whether a value is what people write where a key is asked for and none is needed."""
    return value.lower() in _PLACEHOLDERS


def is_ordinary(value: str) -> bool:
    """Whether a value occurs in ordinary text: blanking it there would do harm."""
    word = len(value) < 16 and _WORD.fullmatch(value)
    return bool(word or _PATH.fullmatch(value)) or is_placeholder(value)


def looks_secret(value: str) -> bool:
    """Whether a value may be a secret by its length and by what it is made of."""
    return len(value) >= 8 and not is_ordinary(value)


class _Form(NamedTuple):
    pieces: tuple[str, ...]
    """Text in lower case, of which every text of this form has some: a search is spared where there is none."""
    pattern: re.Pattern[str]
    """The secret is the group `secret`; where there is no such group, all of it."""


_VALUE = r"(?P<secret>[A-Za-z0-9_\-.%+/~=]+)"
_MARKS = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "hf_", "glpat-", "xox", "xapp-", "akia", "asia", "aiza",
    "eyj", "k_live_", "k_test_", "gsk_", "npm_", "pypi-ag", "nvapi-", "xai-", "ya29.", "sg.",
)  # fmt: skip
_FORMS = (
    _Form(
        _MARKS,
        re.compile(
            r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|hf_[A-Za-z0-9]{20,}"
            r"|glpat-[A-Za-z0-9_-]{16,}|(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}|A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])"
            r"|AIza[A-Za-z0-9_-]{30,}|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
            r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|(?:gsk|npm)_[A-Za-z0-9]{30,}|pypi-Ag[A-Za-z0-9_-]{20,}"
            r"|(?:nvapi|xai)-[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"
        ),
    ),
    _Form(
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY( BLOCK)?-----(?P<secret>(?:(?!-----)[\s\S]){1,20000}(?=-----END )"
            r"|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+)"
        ),
    ),
    _Form(
        ("authorization",),
        re.compile(
            r"(?ai)\bauthorization\\?[\"']?\s*[:=]\s*\\?[\"']?(?:basic|bearer|token|digest|negotiate|apikey)\s+"
            rf"(?=[^\s\"']{{6}}){_VALUE}"
        ),
    ),
    _Form(
        ("bearer",),
        re.compile(rf"\b(?ai:bearer)\s+(?=[A-Za-z0-9_\-.]{{20}}|(?=[A-Za-z_\-.]*[0-9])[A-Za-z0-9_\-.]{{8}}){_VALUE}"),
    ),
    _Form(("sk-",), re.compile(rf"(?ai)\bsk-(?=[A-Za-z0-9_\-.]{{8}}){_VALUE}")),
    _Form(
        ("key=", "key:"),
        re.compile(rf"(?ai)\b(?:api[_-]?key[=:]\s*|(?:account|sharedaccess)key=)(?=[A-Za-z0-9_\-.]{{8}}){_VALUE}"),
    ),
)
_QUERY = re.compile(r"(?a)(?<=[?&;])([\w.\-]{1,60})=([\w\-.%+/~=:@!*$]+)")
_LONGEST_ASSIGNED = 1000
_SIGNATURES = re.compile(r"(?:^|[-_.])(?:sig|signature)$", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(
    r"://([^/\s?#\"'<>]+)@"
    # Whoever forgot to quote a '?' or '#' of a password still has a password there.
    r"|://([^/\s?#\"'<>:@]*:(?![0-9]*[/?#])[^/\s\"'<>]+)@"
)
_ASSIGNED = re.compile(r"\s*([\w.\-]{1,60})\s*=\s*(\S.*?)\s*", re.DOTALL)
_IN_FORMS = (*dict.fromkeys(piece for form in _FORMS for piece in form.pieces), "sig=", "signature=")


def may_hold_secret(text: str) -> bool:
    """Whether a text may hold something that has a secret's form, or a name for one. A no is certain."""
    lower = text.lower()
    return (
        any(piece in lower for piece in _IN_NAMES)
        or any(piece in lower for piece in _IN_FORMS)
        or ("://" in lower and "@" in lower)
    )


def secrets_in(text: str) -> Iterator[tuple[int, int]]:
    """Where in a text there is something that has the form of a secret: from, to. Such places may overlap."""
    lower = text.lower()
    for pieces, pattern in _FORMS:
        if any(piece in lower for piece in pieces):
            part = "secret" if pattern.groupindex else 0
            for found in pattern.finditer(text):
                yield found.span(part)
    if "=" in lower and ("?" in lower or "&" in lower or ";" in lower):
        for found in _QUERY.finditer(text):
            if names_secret(found[1]) or _SIGNATURES.search(found[1]):
                yield found.span(2)
    if "=" in lower and len(text) <= _LONGEST_ASSIGNED:
        assigned = _ASSIGNED.fullmatch(text)
        if assigned is not None and names_secret(assigned[1]):
            yield assigned.span(2)
    if "://" in lower and "@" in lower:
        for found in _AUTHORITY.finditer(text):
            yield from _in_address(found[found.lastindex or 0], found.start(found.lastindex or 0))


def _in_address(who: str, at: int) -> Iterator[tuple[int, int]]:
    """What is secret in front of a host: a password, and a user that is no user's name, which is then a token."""
    user, colon, password = who.partition(":")
    if len(user) >= 6 and not (len(user) < 16 and _USER.fullmatch(user)):
        yield at, at + len(user)
    if colon and password:
        yield at + len(user) + 1, at + len(who)
