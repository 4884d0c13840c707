"""Secrets are removed by value, by form and by key, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core import redact as module
from sharpen.core.redact import BLANK, names_secret, redact, redact_json, redact_known, remember, remember_environment


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    before = set(module._known)
    module._known.clear()
    yield
    module._known.clear()
    module._known.update(before)


def test_a_known_secret_is_blanked_wherever_it_stands() -> None:
    remember("hunter2-hunter2")
    assert redact("key hunter2-hunter2, and xhunter2-hunter2y") == f"key {BLANK}, and x{BLANK}y"
    assert redact_json({"a": ["at hunter2-hunter2", {"b": "hunter2-hunter2"}]}) == {"a": [f"at {BLANK}", {"b": BLANK}]}


def test_the_longer_of_two_secrets_goes_first() -> None:
    remember("secret-1")
    remember("secret-1-and-more")
    assert redact("secret-1-and-more") == BLANK


@pytest.mark.parametrize("value", [None, "", "abc", "12345"])
def test_what_is_too_short_to_be_a_secret_is_not_one(value: str | None) -> None:
    remember(value)
    assert redact("abc 12345") == "abc 12345"


def test_a_secret_read_from_a_file_with_its_newline_is_known_without_it() -> None:
    remember("hunter2-hunter2\n")
    assert redact("Invalid key hunter2-hunter2.") == f"Invalid key {BLANK}."


def test_environment_variables_that_name_a_secret_are_remembered() -> None:
    remember_environment(
        {"OPENAI_API_KEY": "sesame-open", "HF_TOKEN": "huggable", "PATH": "/usr/bin", "MONKEY": "banana"}
    )
    assert redact("sesame-open huggable /usr/bin banana") == f"{BLANK} {BLANK} /usr/bin banana"


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {BLANK}"),
        ("invalid sk-proj-abcdefgh12345", f"invalid sk-{BLANK}"),
        ("http://host/v1?api_key=abcdefgh12345", f"http://host/v1?api_key={BLANK}"),
        ("the task-force-of-twenty", "the task-force-of-twenty"),
        ("bearer of news", "bearer of news"),
    ],
)
def test_what_looks_like_a_secret_is_blanked(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_text_that_is_data_loses_only_known_secrets() -> None:
    remember("hunter2-hunter2")
    assert redact_known("Bearer abcdefgh12345 hunter2-hunter2") == f"Bearer abcdefgh12345 {BLANK}"


@pytest.mark.parametrize(
    "key", ["api_key", "apiKey", "OPENAI_API_KEY", "x-api-key", "token", "auth.token", "password", "Authorization"]
)
def test_keys_that_name_a_secret(key: str) -> None:
    assert names_secret(key)


@pytest.mark.parametrize("key", ["max_tokens", "tokens", "prompt_tokens", "monkey", "keyboard", "author", "tokenizer"])
def test_keys_that_do_not(key: str) -> None:
    assert not names_secret(key)


def test_values_under_a_telling_key_are_blanked_and_the_shape_stays() -> None:
    value = {
        "model": {"api_key": "anything", "max_tokens": 64, "temperature": 0.5},
        "headers": [{"Authorization": "xyz"}],
        "token": "",
        "password": None,
        "secrets": ["one", {"two": "three"}],
    }
    assert redact_json(value) == {
        "model": {"api_key": BLANK, "max_tokens": 64, "temperature": 0.5},
        "headers": [{"Authorization": BLANK}],
        "token": "",
        "password": None,
        "secrets": [BLANK, {"two": BLANK}],
    }


@given(st.text(max_size=80))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)


texts = st.text("abc[]redt-= ", max_size=20)
secrets = texts.map(str.strip).filter(lambda text: len(text) >= 6 and text not in BLANK)


@given(texts, texts, secrets)
def test_no_known_secret_survives(before: str, after: str, secret: str) -> None:
    module._known.clear()
    remember(secret)
    assert secret not in redact(before + secret + after).replace(BLANK, "*")
