"""Items of a task that is made by code come back from a run as they were, whatever is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharpen.bench.item_files import read_description, read_items, write_items
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Splits
from sharpen.engine import checkpoints
from sharpen.engine.spec import describe_splits
from sharpen.tasks.codebook import Codebook


def test_items_come_back_as_they_were(tmp_path: Path) -> None:
    odd = Item("a\u2028b\n\ud800", {"input": ["\x85", {"x": None}], "n": 1.5}, {"answer": [1, 2]}, "kind", "document 7")
    splits = Splits((odd,), (Item("v", {"input": "v"}),), (Item("t", {"input": "t"}, "r"),))
    write_items(tmp_path / "items", Codebook(), splits, Candidate({"SKILL.md": "be brief\n", "more/x.md": ""}))
    again = read_items(tmp_path / "items")
    assert [again[name] for name in SPLITS] == [splits[name] for name in SPLITS]
    assert describe_splits(again) == describe_splits(splits)
    assert read_description(tmp_path / "items") == Codebook().brief.description
    assert set(checkpoints.load(tmp_path / "items" / "start").parts) == {"SKILL.md", "more/x.md"}


@pytest.mark.parametrize("text", ["{", "[]\n", "7\n", '["a", 1, 2, 3, 4]\n', "[" * 100_000])
def test_damaged_items_are_said_to_be(tmp_path: Path, text: str) -> None:
    splits = Codebook().splits()
    write_items(tmp_path, Codebook(), splits, Candidate("x"))
    (tmp_path / "val.jsonl").write_text(text)
    with pytest.raises(UsageError, match="damaged"):
        read_items(tmp_path)
