"""Prices: known ones are exact, unknown ones stay unknown, and a user's own file goes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharpen.core.errors import UsageError
from sharpen.models.prices import FREE, Price, lookup


@pytest.fixture(autouse=True)
def _no_own_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARPEN_PRICES", raising=False)


def own_file(monkeypatch: pytest.MonkeyPatch, folder: Path, content: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(content)
    monkeypatch.setenv("SHARPEN_PRICES", str(path))
    return path


def test_a_known_model_has_its_price_and_an_unknown_one_none() -> None:
    assert lookup("openai/gpt-4o") == Price(2.5, 1.25, 10.0)
    assert lookup("openai/gpt-4o-2031") is None
    assert lookup("http://localhost:8000/v1#gpt-4o") is None


def test_cached_tokens_cost_what_cached_tokens_cost() -> None:
    assert Price(2.0, 0.5, 8.0).cost(1_000_000, 400_000, 500_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)
    assert FREE.cost(10, 5, 10) == 0.0


def test_ones_own_file_goes_first_and_may_use_patterns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_file(
        monkeypatch,
        tmp_path,
        "models:\n"
        "  openai/gpt-4o: {input: 1, cached: 0, output: 2}\n"
        "  'http://localhost:*': {input: 0, output: 0}\n"
        "  mine/*: {input: 3, output: 4}\n",
    )
    assert lookup("openai/gpt-4o") == Price(1.0, 0.0, 2.0)
    assert lookup("openai/gpt-4o-mini") is not None
    assert lookup("http://localhost:8000/v1#m") == FREE
    assert lookup("mine/x") == Price(3.0, 3.0, 4.0)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("models: [", "is not valid YAML"),
        ("- 1\n", "expected a mapping `models:`"),
        ("models:\n  a/b: 3\n", r"models\.a/b: expected"),
        ("models:\n  a/b: {input: 1, ouput: 2}\n", "unknown key 'ouput' .did you mean 'output'"),
        ("models:\n  a/b: {input: 1}\n", "'output' is missing"),
        ("models:\n  a/b: {input: -1, output: 2}\n", r"models\.a/b\.input: expected a number of at least 0, got -1"),
        ("models:\n  a/b: {input: cheap, output: 2}\n", "expected a number"),
        ("models:\n  a/b: {input: .nan, output: 2}\n", "expected a number"),
    ],
)
def test_a_mistake_in_it_is_named_with_file_and_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str, why: str
) -> None:
    path = own_file(monkeypatch, tmp_path, content)
    with pytest.raises(UsageError, match=why) as caught:
        lookup("a/b")
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHARPEN_PRICES", str(tmp_path / "none.yaml"))
    with pytest.raises(UsageError, match=r"no such price file: .*none\.yaml"):
        lookup("a/b")
