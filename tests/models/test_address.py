"""Addresses hold no secrets: what looks like one is refused, and a variable stands in its place."""

from __future__ import annotations

import pytest

from sharpen.core import redact
from sharpen.core.errors import UsageError
from sharpen.models.address import check_address, fill_in
from sharpen.models.registry import open_model


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_known", set())


@pytest.mark.parametrize(
    ("address", "secret"),
    [
        ("https://bob:hunter22x@host/v1", "hunter22x"),
        ("https://ghost-Token-1@host/v1", "ghost-Token-1"),
        ("https://host/v1?api_key=abcdefgh12", "abcdefgh12"),
        ("https://host/a1b2c3d4e5f6a7b8c9/v1", "a1b2c3d4e5f6a7b8c9"),
        ("https://host/key-Zq7plainValue9xKey42/v1", "Zq7plainValue9xKey42"),
        ("https://host/%61b2c3d4e5f6a7b8c9/v1", "ab2c3d4e5f6a7b8c9"),
        ("https://host/sk-abcdefghijkl/v1", "sk-abcdefghijkl"),
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_shown(address: str, secret: str) -> None:
    with pytest.raises(UsageError, match="holds a password, a key or a token") as refused:
        open_model(f"{address}#m")
    assert secret not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8000/v1",
        "https://host/openai/deployments/gpt-4o-2024-08-06/v1?api-version=2024-10-21",
        "https://host/projects/internationalization/v1beta1",
        "https://host/550e8400-e29b-41d4-a716-446655440000/v1",
        "https://host/${SHARPEN_TOKEN}/v1?key=${SHARPEN_TOKEN}",
    ],
)
def test_ordinary_addresses_are_not(address: str) -> None:
    check_address(address)


def test_a_variable_is_filled_in_for_the_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPEN_TOKEN", "t0k3nInThePath77aa")
    model = open_model("https://host/${SHARPEN_TOKEN}/v1#m")
    assert "t0k3n" not in str(model.identity) + model.name + model.endpoint
    assert fill_in("https://host/${SHARPEN_TOKEN}/v1") == "https://host/t0k3nInThePath77aa/v1"
    assert redact.redact("at https://host/t0k3nInThePath77aa/v1") == "at https://host/[redacted]/v1"


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "SHARPEN_API_KEY", "", "SHARPEN_NOT_SET"])
def test_no_other_variable_can_be_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "SHARPEN_API_KEY"):
        monkeypatch.setenv(variable, "Zq7plain-Value")
    with pytest.raises(UsageError) as refused:
        open_model(f"https://host/${{{name}}}/v1#m")
    assert "Zq7plain" not in str(refused.value)
