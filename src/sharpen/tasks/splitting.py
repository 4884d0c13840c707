"""Which items train, which decide, which have the final word: by ratio, by given sizes, or as the data says.

Splitting depends on the items' content, a seed and nothing else: items are sorted by digest before they are shuffled, so
the order of the lines in a file does not matter, and the shares are cut by largest remainder. `limit` keeps at most that
many items of each split, always a subset of the full split of the same name. `write_manifest` puts splits on disk as
files that can be read again, with a manifest that tells whether they were changed since.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.digest import Json, canonical, digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import SPLITS, Splits
from sharpen.files import write_atomic, write_json

SCHEMA = "sharpen.splits/1"
MANIFEST = "manifest.json"
DEFAULT_RATIO = "3:3:4"


@dataclass(frozen=True, slots=True)
class Deal:
    """How a task that makes its own items hands them out: the seed of the shuffle, and a limit per split."""

    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self.limit)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise UsageError(f"split_seed must be a whole number, got {self.seed!r}")

    def splits(self, items: Iterable[Item], sizes: tuple[int, int, int] | None = None) -> Splits:
        """Deal `items` out, by `sizes` for train, val and test or else by the default ratio. Items over are left out."""
        every = list(items)
        if sizes is None:
            return limited(by_ratio(every, DEFAULT_RATIO, self.seed), self.limit, self.seed)
        if len(every) < sum(sizes):
            raise UsageError(f"{sum(sizes)} items are needed for splits of {sizes}, there are {len(every)}")
        return limited(_cut(_shuffled(every, self.seed), sizes), self.limit, self.seed)


def by_ratio(items: Sequence[Item], ratio: str, seed: int, source: str = "") -> Splits:
    """Split by shares such as `2:1:7` (train, val, test). Each share gets at least one item, or it is an error, which
    begins with `source` where one is given."""
    shares = parse_ratio(ratio)
    sizes = largest_remainder(shares, len(items))
    empty = [name for name, size in zip(SPLITS, sizes, strict=True) if not size]
    if empty:
        count, leave = ("1 item", "leaves") if len(items) == 1 else (f"{len(items)} items", "leave")
        other = all(largest_remainder(parse_ratio(DEFAULT_RATIO), len(items)))
        raise UsageError(
            f"{source + ': ' if source else ''}{count} split by {ratio} {leave} {' and '.join(empty)} empty; "
            f"give at least {enough(shares)} items{f', or another ratio, such as {DEFAULT_RATIO}' if other else ''}"
        )
    return _cut(_shuffled(items, seed), sizes)


def enough(shares: Sequence[int]) -> int:
    """The number of items from which on no share is empty. Above the sum of the shares none ever is; below it, one more item
    can empty a share again, so every number is tried (the sum will do where that would take long)."""
    whole = sum(shares) // math.gcd(*shares)
    if whole > 10_000:
        return whole
    return 1 + max(total for total in range(whole) if not all(largest_remainder(shares, total)))


def by_name(named: Iterable[tuple[str, Item]], source: str) -> Splits:
    """Split as the data says, in its own order."""
    found: dict[str, list[Item]] = {name: [] for name in SPLITS}
    for name, item in named:
        check_name(name, source)
        found[name].append(item)
    return checked(Splits(*(tuple(found[name]) for name in SPLITS)), source)


def checked(splits: Splits, source: str) -> Splits:
    """`splits`, unless training or deciding would have nothing to work with."""
    empty = [name for name in SPLITS if not splits[name]]
    if empty:
        raise UsageError(f"{source}: no items in {' and '.join(empty)}; each of {', '.join(SPLITS)} needs at least one")
    return splits


def limited(splits: Splits, limit: int | None, seed: int) -> Splits:
    """At most `limit` items of each split, drawn by content, in the order they had. A higher limit only adds items."""
    if limit is None:
        return splits
    check_limit(limit)
    kept = []
    for name in SPLITS:
        order = Stream(seed, "limit", name).shuffled(sorted(item.digest for item in splits[name]))
        chosen = set(order[:limit])
        kept.append(tuple(item for item in splits[name] if item.digest in chosen))
    return Splits(*kept)


def check_name(name: str, source: str) -> None:
    if name not in SPLITS:
        raise UsageError(f"{source}: unknown split {name!r}; the splits are {', '.join(SPLITS)}{nearest(name, SPLITS)}")


def check_limit(limit: int | None) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise UsageError(f"limit must be a whole number of 1 or more, got {limit!r}")


def parse_ratio(ratio: str) -> tuple[int, int, int]:
    """The three shares of a text such as `2:1:7`."""
    parts = ratio.split(":") if isinstance(ratio, str) else []
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts) or not all(map(int, parts)):
        raise UsageError(f"ratio must be three whole numbers above 0 for train:val:test, such as 2:1:7, got {ratio!r}")
    train, val, test = map(int, parts)
    return train, val, test


def largest_remainder(shares: Sequence[int], total: int) -> tuple[int, ...]:
    """`total` divided as closely to `shares` as whole numbers allow; ties go to the earlier share."""
    whole = sum(shares)
    sizes = [share * total // whole for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda i: (-(shares[i] * total % whole), i))
    for i in by_rest[: total - sum(sizes)]:
        sizes[i] += 1
    return tuple(sizes)


def digest_of(splits: Splits) -> str:
    """Identity of the data and of how it is split."""
    return digest([[item.digest for item in splits[name]] for name in SPLITS])


def write_manifest(
    folder: Path, splits: Splits, *, source: str, ratio: str | None = None, seed: int | None = None
) -> None:
    """Write `train.jsonl`, `val.jsonl`, `test.jsonl` and a manifest. Only the last part of `source` is kept."""
    for name in SPLITS:
        lines = (canonical(_row(item)) + "\n" for item in splits[name])
        write_atomic(folder / f"{name}.jsonl", "".join(lines))
    write_json(
        folder / MANIFEST,
        {
            "schema": SCHEMA,
            "source": Path(source).name,
            "ratio": ratio,
            "split_seed": seed,
            "digest": digest_of(splits),
            "splits": {
                name: {
                    "file": f"{name}.jsonl",
                    "count": len(splits[name]),
                    "digest": digest([item.digest for item in splits[name]]),
                }
                for name in SPLITS
            },
        },
    )


def check_manifest(folder: Path, splits: Splits) -> None:
    """Compare splits that were read from `folder` with the manifest there, if there is one of ours."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}; remove it or write the splits again") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        return
    for name in SPLITS:
        written = manifest["splits"][name]["digest"]
        if written != digest([item.digest for item in splits[name]]):
            raise UsageError(
                f"{folder}: the items of {name} are not those that {MANIFEST} was written for; "
                f"restore them, or remove {MANIFEST} to take them as they are"
            )


def _row(item: Item) -> Json:
    return {**item.inputs, "id": item.id, "answer": item.reference, "type": item.type}


def _shuffled(items: Iterable[Item], seed: int) -> list[Item]:
    return Stream(seed, "split").shuffled(sorted(items, key=lambda item: item.digest))


def _cut(items: Sequence[Item], sizes: Sequence[int]) -> Splits:
    train, val, test = sizes
    return Splits(
        tuple(items[:train]), tuple(items[train : train + val]), tuple(items[train + val : train + val + test])
    )
