"""From published files to splits: read, recognise, leave out what has no label or stands twice, split.

Published splits are kept where they can be. Three with labels: taken as they are. Train and one more: that one is test, and
val is cut from train. Validation and test: train and val are cut from validation. One alone: split by ratio. What is cut is
cut by ratio, content and seed. A question that stands twice is kept once: in test before val before train.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError, nearest
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import SPLITS, Splits
from sharpen.tasks import splitting
from sharpen.tasks.qa import reading
from sharpen.tasks.qa.family import Draft, Family, Shape, labels_of, shown

VERSION = "1"
"""Bumped whenever the same file would give other items than before."""
_UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, SyntaxError)
"""What a row that only looks like a published one makes its reader stumble over."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user may choose about the data."""

    ratio: str
    seed: int
    limit: int | None
    subset: str
    room: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """Splits, and a sentence for each thing about them that the published names do not tell."""

    splits: Splits
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    draft: Draft
    split: str
    type: str


def load(family: Family, data: Path, choice: Choice) -> Loaded:
    every = [one for found in reading.read(data, family.columns) for one in _drafts(family, found, data)]
    read = _chosen(family, every, choice)
    usable = [one for one in read if one.draft.answers is not None]
    if not usable:
        raise UsageError(
            f"{data}: none of its {len(read)} questions has an answer; a test without labels can't be scored"
        )
    pools = _pools(usable, choice.room)
    splits, told = _dealt(pools, choice, str(data))
    blind = sorted({one.split for one in read} - {one.split for one in usable} - {""})
    remarks = [f"The published {name} has no labels and is not used." for name in blind]
    lost = len(usable) - sum(map(len, pools.values())) - sum(one.split == "extra" for one in usable) * ("" not in pools)
    if lost > 0:
        remarks.append(f"{lost} questions that stand twice are used once.")
    limited = splitting.limited(splits, choice.limit, choice.seed)
    return Loaded(limited, (*told, *remarks))


def _drafts(family: Family, found: reading.Found, data: Path) -> list[_Read]:
    shape = next((shape for shape in family.shapes if shape.fits(found.row)), None)
    if shape is None:
        raise UsageError(_unknown(family.name, family.shapes, found))
    try:
        drafts = list(shape.read(found.row))
    except _UNREADABLE as error:
        raise UsageError(
            f"{found.where}: has the fields of {family.name}, but can't be read as it is published: "
            f"{type(error).__name__}: {error}"
        ) from error
    group = _group(found.file, data) if family.by_file else ""
    return [
        _Read(draft, _role(family, found.split or draft.split), draft.type or group or "default") for draft in drafts
    ]


def _unknown(name: str, shapes: Sequence[Shape], found: reading.Found) -> str:
    wanted = " or ".join(f"({', '.join(shape.fields)})" for shape in shapes)
    has = ", ".join(key for key in found.row if key != reading.KEY) or "none"
    return f"{found.where}: not a published format of {name}; looked for the fields {wanted}, found {has}"


def _role(family: Family, split: str) -> str:
    if split == "dev":
        return "train" if family.dev_is_train else "val"
    return split


def _group(file: Path, data: Path) -> str:
    """The task or subject that a file is called after: its own name without the split, or the folder it lies in."""
    parts = [
        file.name.partition(".")[0],
        *reversed(file.relative_to(data if data.is_dir() else data.parent).parent.parts),
    ]
    for part in parts:
        name = re.sub(r"[-_]?(?<![a-z])(train|dev|val|validation|test)(?![a-z])([-_]\d+-of-\d+)?$", "", part.lower())
        if name and name not in ("task", "data", "all", "default", "main"):
            return name
    return ""


def _chosen(family: Family, read: list[_Read], choice: Choice) -> list[_Read]:
    if not choice.subset:
        return read
    wanted = _folded(choice.subset)
    groups = sorted({one.type for one in read})
    chosen = {group for group in groups if _folded(group) == wanted} or {g for g in groups if wanted in _folded(g)}
    if not chosen:
        known = ", ".join(groups[:40])
        raise UsageError(
            f"qa/{family.name} has no subset {choice.subset!r}{nearest(choice.subset, groups)}; it has {known}"
        )
    return [one for one in read if one.type in chosen]


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()


def _pools(read: Sequence[_Read], room: int) -> dict[str, list[Item]]:
    """Items by published split, each question once. Rows of no split are a pool of their own, under the empty name, which
    holds everything where only one split is published."""
    names = {one.split for one in read} - {"extra"}
    single = len(names) < 2
    pools: dict[str, list[Item]] = {}
    seen: set[str] = set()
    ids: set[str] = set()
    order = {"test": 0, "val": 1, "train": 2}
    for one in sorted(read, key=lambda one: order.get(one.split, 3)):
        if one.split == "extra" and names:
            continue
        item = _item(one, room)
        content = digest(dict(item.inputs))
        if content in seen:
            continue
        if item.id in ids:
            item = Item(f"{item.id}-{content[:6]}", item.inputs, item.reference, item.type)
        seen.add(content)
        ids.add(item.id)
        pools.setdefault("" if single else one.split, []).append(item)
    return pools


def _item(one: _Read, room: int) -> Item:
    draft = one.draft
    inputs: dict[str, Json] = {"input": shown(draft, room)}
    if draft.options:
        inputs |= {"choices": list(draft.options), "labels": list(labels_of(draft))}
        if draft.answers not in labels_of(draft):
            raise UsageError(f"question {draft.question[:60]!r}: the answer {draft.answers!r} is none of its options")
    name = draft.id or digest([dict(inputs), draft.answers])[:16]
    return Item(str(name), inputs, draft.answers, one.type)


def _dealt(pools: Mapping[str, list[Item]], choice: Choice, source: str) -> tuple[Splits, list[str]]:
    if "" in pools:
        return splitting.by_ratio(pools[""], choice.ratio, choice.seed), ["Split by ratio."]
    shares = splitting.parse_ratio(choice.ratio)
    if len(pools) == 3:
        return Splits(*(tuple(pools[name]) for name in SPLITS)), []
    if "train" not in pools:
        train, val = _cut(pools["val"], shares[0], shares[1], choice.seed, f"{source}: validation")
        return Splits(train, val, tuple(pools["test"])), ["Train and val are cut from the published validation."]
    train, val = _cut(pools["train"], shares[0], shares[1], choice.seed, f"{source}: train")
    last = "test" if "test" in pools else "val"
    told = "Val is cut from the published train."
    return Splits(train, val, tuple(pools[last])), [
        told if last == "test" else f"{told} The published validation is the test."
    ]


def _cut(items: Sequence[Item], a: int, b: int, seed: int, source: str) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    sizes = splitting.largest_remainder((a, b), len(items))
    if not all(sizes):
        raise UsageError(f"{source} has {len(items)} questions, too few to be split {a}:{b} into train and val")
    order = Stream(seed, "split").shuffled(sorted(items, key=lambda item: item.digest))
    return tuple(order[: sizes[0]]), tuple(order[sizes[0] :])
