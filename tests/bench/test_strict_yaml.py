"""YAML that a few lines of stand for millions of values: refused while it is read, before anybody walks through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharpen.bench import strict_yaml
from sharpen.bench.config import load
from sharpen.core.errors import UsageError


def laughs(depth: int, width: int = 10) -> str:
    lines = ["l0: &l0 lol"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join(lines)


@pytest.mark.parametrize("text", [laughs(10), laughs(40, 2), laughs(10).replace("[", "{a: [").replace("]", "]}")])
def test_aliases_of_aliases_are_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"f\.yaml, line \d+: .* more than 100,000 values with its aliases written out"
    ):
        strict_yaml.parse(text, "f.yaml")


def test_a_long_text_that_is_repeated_counts_by_its_length() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]"
    with pytest.raises(UsageError, match="more than 100,000 values"):
        strict_yaml.parse(text, "f.yaml")


def test_ordinary_aliases_and_merges_are_read() -> None:
    text = "base: &base {a: 1, b: [1, 2]}\none: {<<: *base, a: 2}\ntwo: *base"
    assert strict_yaml.parse(text, "f.yaml") == {
        "base": {"a": 1, "b": [1, 2]}, "one": {"a": 2, "b": [1, 2]}, "two": {"a": 1, "b": [1, 2]},
    }  # fmt: skip
    assert strict_yaml.parse(laughs(4), "f.yaml")["l3"][0][0] == ["lol"] * 10


def test_a_configuration_is_read_this_way(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(laughs(12))
    with pytest.raises(UsageError, match="aliases written out"):
        load(tmp_path / "c.yaml")
