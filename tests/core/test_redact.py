"""Secrets are removed by value, by form and by key, and nothing else is touched."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core import redact as module
from sharpen.core.redact import (
    BLANK,
    is_clean,
    names_secret,
    redact,
    redact_echo,
    redact_json,
    redact_known,
    remember,
    remember_environment,
    remember_settings,
)
from sharpen.core.secrecy import is_ordinary


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
        {"OPENAI_API_KEY": "sesame-open", "HF_TOKEN": "hug-able", "PATH": "/usr/bin", "MONKEY": "banana"}
    )
    assert redact("sesame-open hug-able /usr/bin banana") == f"{BLANK} {BLANK} /usr/bin banana"


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {BLANK}"),
        ("invalid sk-proj-abcdefgh12345", f"invalid sk-{BLANK}"),
        ("http://host/v1?api_key=abcdefgh12345", f"http://host/v1?api_key={BLANK}"),
        ("authorization: 'Basic QWxhZGRpbjpPcGVu'", f"authorization: 'Basic {BLANK}'"),
        ("https://abcDEF123@github.com/x.git", f"https://{BLANK}@github.com/x.git"),
        ("https://abcDEF123:x-oauth-basic@github.com", f"https://{BLANK}:{BLANK}@github.com"),
        ("postgres://bob:p@ss:Word77@db/x?mail=me@b.c", f"postgres://bob:{BLANK}@db/x?mail=me@b.c"),
        ("postgres://bob:p#ss?Word@db/x", f"postgres://bob:{BLANK}@db/x"),
        ("http://h/?api_key=k%3Dy1&n=5&X-Amz-Signature=a1", f"http://h/?api_key={BLANK}&n=5&X-Amz-Signature={BLANK}"),
        ("http://h/?accessToken=a1&token_count=7", f"http://h/?accessToken={BLANK}&token_count=7"),
        ("is ghp_1234567890abcdefghijABCDEFGHIJ123456.", f"is {BLANK}."),
        ("is gho_1234567890abcdefghijABCDEFGHIJ123456.", f"is {BLANK}."),
        ("is github_pat_11ABCDEFG0123456789_abcdefghijk.", f"is {BLANK}."),
        ("is hf_abcdefghijklmnopqrstuvwxyzABCDEFGH.", f"is {BLANK}."),
        ("is AKIAIOSFODNN7EXAMPLE.", f"is {BLANK}."),
        ("is xoxb-123456789012-abcdefABCDEF.", f"is {BLANK}."),
        ("is glpat-abcdefgh12345678ABCD.", f"is {BLANK}."),
        ("is AIzaSyA1234567890abcdefghijklmnopqrstuv.", f"is {BLANK}."),
        ("is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXZhbHVl!", f"is {BLANK}!"),
    ],
)
def test_what_looks_like_a_secret_is_blanked(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert not is_clean(json.dumps(text))


PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "MIIEvQIBADANBgkqhkiG9w0BAQEF\nqz/+9w0BAQEFAASCBKcw\nab12=\n-----END RSA PRIVATE KEY-----"
)


@pytest.mark.parametrize("text", [PEM, json.dumps(PEM), repr(PEM), PEM[:90]])
def test_a_private_key_is_blanked_also_where_it_is_cut_off(text: str) -> None:
    clean = redact(f"before {text} after")
    assert "MIIE" not in clean and "9w0B" not in clean
    assert clean.startswith("before ") and clean.endswith(" after")


@pytest.mark.parametrize(
    "text",
    [
        "the task-force-of-twenty",
        "bearer of news, bearer certificates",
        "a" * 64 + " 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "ssh://git@host/x, postgres://postgres@db, http://host:80/?next=me@there.org, mail me@host",
        "hf_hub_download, npm_config_cache, sk-learn, AKIA, eyJ, ghp_, Asia.Tokyo, glpat-",
        "http://h/?sort_key=colour&page=2&signature_kind=x",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END CERTIFICATE-----",
        "it begins with -----BEGIN PRIVATE KEY----- and so on",
        "the key: a tokenizer; authorization: required",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("secret", ['quo"ted-12', "it's-12\"34", "back\\slash-1", "ünïcode-1", "a+b/c=12"])
def test_a_known_secret_is_blanked_however_it_was_written_down(secret: str) -> None:
    remember(secret)
    ways = [str({"k": secret}), repr(secret), repr(secret + "'\""), json.dumps(secret), quote(secret, safe="")]
    for text in (*ways, json.dumps(secret, ensure_ascii=False)):
        assert BLANK in redact_known(text), text
        assert not is_clean(json.dumps({"said": text}, ensure_ascii=False)), text


def test_each_longer_line_of_a_secret_is_one() -> None:
    remember_environment({"MY_PRIVATE_KEY": "-----BEGIN X-----\nfirst-line-1234\nshort\n second-line-5678\n"})
    text = "-----BEGIN X-----\nfirst-line-1234\nshort and second-line-5678"
    assert redact_known(text) == f"-----BEGIN X-----\n{BLANK}\nshort and {BLANK}"
    assert redact_known(repr(text)) == f"'-----BEGIN X-----\\n{BLANK}\\nshort and {BLANK}'"


@pytest.mark.parametrize(
    "value",
    [
        "ollama",
        "EMPTY",
        "lm-studio",
        "not-needed",
        "changeme",
        "required",
        "Disabled",
        "12345678",
        "/etc/ssl/my.key",
    ],
)
def test_a_value_of_the_environment_must_look_like_a_secret(value: str) -> None:
    remember_environment({"OPENAI_API_KEY": value, "DATABASE_URL": f"postgres://bob:{value}@db"})
    assert redact(f"so {value} it is") == f"so {value} it is"


def test_a_setting_under_a_secret_name_is_one_from_six_characters_on() -> None:
    remember_settings({"task": {"password": "sesam1", "pwd": "ab1", "sort_key": "colour-1"}})
    assert redact("sesam1 ab1 colour-1") == f"{BLANK} ab1 colour-1"


@pytest.mark.parametrize("value", ["reflact", "codebook", "REFLACT", "Swordfish", "12345678", "ollama", "./keys/mine"])
def test_what_occurs_in_ordinary_text_is_no_secret_wherever_it_stands(value: str) -> None:
    remember(value)
    remember_settings({"api_key": value})
    remember_environment({"SHARPEN_API_KEY": value})
    assert redact(f"so {value} it is") == f"so {value} it is"
    assert redact_json({"api_key": value}) == {"api_key": BLANK}, "its own place is blanked all the same"


KEY = "Zq7-plain_value/9x+Key"


@pytest.mark.parametrize("around", ["", "u", "us", "user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_secret_is_blanked_as_base64_wherever_it_stands(around: str, encode: Callable[[bytes], bytes]) -> None:
    remember(KEY)
    text = encode(f"{around}{KEY}{around}".encode()).decode()
    assert text[6:-6] not in redact_known(f"Basic {text}")
    assert BLANK in redact_known(text)


@pytest.mark.parametrize("encoded", [KEY.encode().hex(), KEY.encode().hex().upper()])
def test_a_known_secret_is_blanked_as_hex(encoded: str) -> None:
    remember(KEY)
    assert redact_known(f"<{encoded}>") == f"<{BLANK}>"


@pytest.mark.parametrize(
    "quoted",
    [
        KEY[:8], KEY[-8:], KEY[5:14], KEY[:12].upper(), KEY.lower(), f"{KEY[:5]}***{KEY[-4:]}", f"{KEY[:3]}…{KEY[-2:]}",
        "sk-ab***yz", "****wxyz", base64.b64encode(KEY.encode()).decode()[:12], KEY.encode().hex()[4:20],
        quote(KEY, safe="")[:14],
    ],
)  # fmt: skip
def test_who_refuses_a_key_cannot_quote_pieces_of_it(quoted: str) -> None:
    remember(KEY)
    said = redact_echo(f"invalid key: {quoted} (401)")
    assert said == f"invalid key: {BLANK} (401)"


def test_the_rest_of_a_refusal_stays() -> None:
    remember(KEY)
    text = "The model `gpt-5.5` does not exist, or you do not have access to it... see https://host/v1/errors?id=12."
    assert redact_echo(text) == text


@pytest.mark.parametrize("text", ["password=hunter2!", " API_KEY = abc def ", "access_token=x"])
def test_a_text_that_only_assigns_a_secret_is_blanked(text: str) -> None:
    assert (
        redact(text)
        == f"{text[: text.index('=') + 1]}{' ' if ' = ' in text else ''}{BLANK}{' ' if ' = ' in text else ''}"
    )


@pytest.mark.parametrize("text", ["a password=word in a sentence", "sort_key=name", "colour=red", "x = key"])
def test_other_assignments_stay(text: str) -> None:
    assert redact(text) == text


def test_text_that_is_data_loses_only_known_secrets() -> None:
    remember("hunter2-hunter2")
    assert redact_known("Bearer abcdefgh12345 hunter2-hunter2") == f"Bearer abcdefgh12345 {BLANK}"


@pytest.mark.parametrize(
    "key",
    [
        "api_key", "apiKey", "OPENAI_API_KEY", "OPENAI_API_KEY2", "OPENAI_KEY", "x-api-key", "key", "token",
        "auth.token", "accessToken", "access_tokens", "HF_TOKEN", "password", "db_password_2", "PGPASSWORD",
        "MYSQL_PWD", "pwd", "passphrase", "SMTP_PASS", "clientSecret", "SECRET_KEY_BASE", "secrets", "GITHUB_PAT",
        "Authorization", "auth", "basic_auth", "Cookie", "GOOGLE_CREDENTIALS", "MY_PRIVATE_KEY", "signingKey",
    ],
)  # fmt: skip
def test_keys_that_name_a_secret(key: str) -> None:
    assert names_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        "max_tokens", "tokens", "prompt_tokens", "token_count", "token_limit", "tokenizer", "eos_token", "monkey",
        "keyboard", "sort_key", "PRIMARY_KEY", "cache_key", "foreign_key", "key_value", "public_key", "author",
        "authority", "PWD", "OLDPWD", "file_path", "first_pass", "pattern", "signature",
    ],
)  # fmt: skip
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


names = st.sampled_from(["api_key", "githubToken", "MYSQL_PWD", "X_PAT", "DB_PASS_1", "jwt", "monkey", "name", "path"])
said = st.sampled_from(
    [PEM, "https://abcDEF123@h", "a?x-sig=1", 'quo"ted-12', repr('quo"ted-12\n'), "gsk_" + "a1" * 20, "no"]
)


@given(st.dictionaries(names, said | st.lists(said)))
def test_what_is_called_clean_holds_nothing_to_blank(value: dict[str, str | list[str]]) -> None:
    module._known.clear()
    remember('quo"ted-12\n')
    if is_clean(json.dumps(value, ensure_ascii=False)):
        assert redact_json(value) == value


texts = st.text("abc[]redt-= ", max_size=20)
secrets = texts.map(str.strip).filter(lambda text: len(text) >= 6 and text not in BLANK and not is_ordinary(text))


@given(texts, texts, secrets)
def test_no_known_secret_survives(before: str, after: str, secret: str) -> None:
    module._known.clear()
    remember(secret)
    assert secret not in redact(before + secret + after).replace(BLANK, "*")
