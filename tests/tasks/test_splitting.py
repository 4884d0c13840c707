"""Splits depend on content and seed alone, add up, never overlap, and can be written out and read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import SPLITS, Splits
from sharpen.tasks import datafile, splitting
from sharpen.tasks.splitting import Deal


def items(count: int) -> list[Item]:
    return [Item(f"i{n}", {"input": f"question {n}"}, str(n)) for n in range(count)]


def ids(splits: Splits) -> dict[str, list[str]]:
    return {name: [item.id for item in splits[name]] for name in SPLITS}


shares = st.tuples(*[st.integers(1, 9)] * 3)


@given(shares, st.integers(0, 500))
def test_sizes_add_up_and_are_within_one_of_the_exact_share(ratio: tuple[int, int, int], total: int) -> None:
    sizes = splitting.largest_remainder(ratio, total)
    assert sum(sizes) == total
    for share, size in zip(ratio, sizes, strict=True):
        assert abs(size - share * total / sum(ratio)) < 1


@given(st.integers(30, 80), shares, st.integers(0, 5), st.integers(0, 99))
def test_the_order_of_the_lines_does_not_matter(
    count: int, ratio: tuple[int, int, int], seed: int, shuffle: int
) -> None:
    text = ":".join(map(str, ratio))
    usual = splitting.by_ratio(items(count), text, seed)
    mixed = splitting.by_ratio(Stream(shuffle).shuffled(items(count)), text, seed)
    assert usual == mixed
    assert sorted(name for names in ids(usual).values() for name in names) == sorted(item.id for item in items(count))


def test_seeds_differ() -> None:
    assert ids(splitting.by_ratio(items(50), "2:1:7", 0)) != ids(splitting.by_ratio(items(50), "2:1:7", 1))


def test_the_split_of_a_known_set_never_changes() -> None:
    """Bytes on disk and ledger keys depend on it, whatever Python or platform."""
    assert ids(splitting.by_ratio(items(10), "2:1:7", 0))["train"] == ["i4", "i2"]


@given(st.integers(1, 12), st.integers(0, 3))
def test_a_limit_takes_a_subset_that_grows_with_it(limit: int, seed: int) -> None:
    full = splitting.by_ratio(items(60), "1:1:1", 0)
    some, more = splitting.limited(full, limit, seed), splitting.limited(full, limit + 3, seed)
    for name in SPLITS:
        assert len(some[name]) == limit
        assert set(ids(some)[name]) <= set(ids(more)[name]) <= set(ids(full)[name])
        assert [i for i in ids(full)[name] if i in set(ids(some)[name])] == ids(some)[name]


@pytest.mark.parametrize("ratio", ["2:1", "a:b:c", "0:1:2", "1:1:1:1", "", "1.5:1:1", "-1:1:1"])
def test_a_wrong_ratio_is_shown_with_a_right_one(ratio: str) -> None:
    with pytest.raises(UsageError, match="such as 2:1:7"):
        splitting.by_ratio(items(10), ratio, 0)


def test_too_few_items_for_a_ratio_name_the_split_that_would_be_empty() -> None:
    with pytest.raises(
        UsageError, match=r"3 items split by 2:1:7 leave val empty; .*, or another ratio, such as 3:3:4"
    ):
        splitting.by_ratio(items(3), "2:1:7", 0)


@pytest.mark.parametrize(("count", "says"), [(1, "1 item .* leaves train and val empty"), (2, "2 items .* val empty")])
def test_what_failed_is_not_what_is_advised(count: int, says: str) -> None:
    with pytest.raises(UsageError, match=rf"^d.csv: {says}; give at least 3 items$"):
        splitting.by_ratio(items(count), "3:3:4", 0, "d.csv")


@given(shares, st.integers(0, 40))
def test_the_number_of_items_that_is_said_to_be_enough_is_and_one_less_is_not(
    ratio: tuple[int, int, int], more: int
) -> None:
    number = splitting.enough(ratio)
    assert all(splitting.largest_remainder(ratio, number + more))
    assert not all(splitting.largest_remainder(ratio, number - 1))


@pytest.mark.parametrize("limit", [0, -1, True, "3"])
def test_a_wrong_limit_is_refused(limit: object) -> None:
    with pytest.raises(UsageError, match="limit must be"):
        Deal(limit=limit)  # type: ignore[arg-type]


def test_a_deal_needs_enough_items() -> None:
    with pytest.raises(UsageError, match="280 items are needed"):
        Deal().splits(items(279), (80, 80, 120))


def test_written_splits_are_read_back_as_they_were(tmp_path: Path) -> None:
    splits = splitting.by_ratio(items(20), "2:1:7", 3)
    splitting.write_manifest(tmp_path, splits, source="/somewhere/private/data.csv", ratio="2:1:7", seed=3)
    assert datafile.load(tmp_path, datafile.PLAIN, ratio="1:1:1", seed=0) == splits
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["source"] == "data.csv" and manifest["schema"] == "sharpen.splits/1"
    assert {name: entry["count"] for name, entry in manifest["splits"].items()} == {"train": 4, "val": 2, "test": 14}
    assert manifest["digest"] == splitting.digest_of(splits)


def test_splits_changed_after_writing_are_noticed(tmp_path: Path) -> None:
    splitting.write_manifest(tmp_path, splitting.by_ratio(items(20), "2:1:7", 3), source="d.csv")
    lines = (tmp_path / "val.jsonl").read_text().replace("question", "query")
    (tmp_path / "val.jsonl").write_text(lines)
    with pytest.raises(UsageError, match="items of val are not those"):
        datafile.load(tmp_path, datafile.PLAIN, ratio="1:1:1", seed=0)
    (tmp_path / "manifest.json").unlink()
    assert datafile.load(tmp_path, datafile.PLAIN, ratio="1:1:1", seed=0).val[0].text.startswith("query")


def test_a_manifest_that_is_not_json_is_named(tmp_path: Path) -> None:
    splitting.write_manifest(tmp_path, splitting.by_ratio(items(20), "2:1:7", 3), source="d.csv")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match=r"manifest\.json is not JSON"):
        datafile.load(tmp_path, datafile.PLAIN, ratio="1:1:1", seed=0)
