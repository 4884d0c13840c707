"""What an OpenAI-compatible model is known by, what a request may cost at most, and what its refusals mean."""

from __future__ import annotations

import email.utils

import pytest

from sharpen.core.chat import Message, Request
from sharpen.core.errors import ModelErrorKind
from sharpen.models.base import Model
from sharpen.models.http_errors import from_status, retry_after
from sharpen.models.openai import OpenAIModel

K = ModelErrorKind
KEY = "test-key-0123456789"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SHARPEN_API_KEY", "SHARPEN_PRICES", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_a_model_and_its_identity_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPEN_API_KEY", KEY)
    model = OpenAIModel("http://localhost:1/v1/#m", temperature=0.5)
    assert isinstance(model, Model)
    assert model.endpoint == "http://localhost:1/v1"
    assert model.identity == {
        "kind": "openai",
        "base_url": "http://localhost:1/v1",
        "model": "m",
        "temperature": 0.5,
        "extra": {},
    }
    assert KEY not in repr(vars(model)["settings"])


def test_the_bound_is_never_below_what_a_byte_level_tokenizer_can_make_of_it() -> None:
    request = Request(messages=(Message("user", "ü" * 100),), max_tokens=10)
    tokens, _ = OpenAIModel("http://localhost:1/v1#m").bound(request)
    assert tokens >= 200 + 10


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": email.utils.formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after": email.utils.formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_the_wait_an_endpoint_asks_for_is_understood(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, K.BAD_REQUEST),
        (401, K.AUTH),
        (403, K.AUTH),
        (404, K.NOT_FOUND),
        (408, K.TIMEOUT),
        (409, K.BAD_REQUEST),
        (413, K.BAD_REQUEST),
        (422, K.BAD_REQUEST),
        (429, K.RATE_LIMITED),
        (500, K.UNAVAILABLE),
        (503, K.UNAVAILABLE),
        (529, K.RATE_LIMITED),
    ],
)
def test_every_status_has_a_kind(status: int, kind: ModelErrorKind) -> None:
    error = from_status("here", status, {"error": {"message": "because"}}, {})
    assert error.kind is kind
    assert str(error).startswith(f"here answered {status}: because")


def test_an_empty_account_is_not_waited_for() -> None:
    body = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    assert from_status("here", 429, body, {}).kind is K.AUTH
