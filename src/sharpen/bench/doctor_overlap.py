"""Items that say nearly the same in two splits: what a duplicate check by content does not see.

Texts are compared without case, punctuation and spacing. Two of them are near-duplicates when their answers are the same and
the runs of eight bytes they consist of overlap by 80 % (Jaccard). Runs that many items share are a template and are left
out; texts that are short without them must be equal. Long texts are compared by a sample of their runs, the same runs
in all of them. Pairs are found without comparing all with all: of each text only its rarest runs are looked up, just as
many as two texts that overlap so much can't both do without. So this is exact up to the sample, and takes seconds for
ten thousand items. Pure; `numpy` does the counting.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharpen.core.digest import canonical
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Splits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Runs = NDArray[np.uint64]

ALIKE = 0.8
_RUN = 8
_FEWEST = 16
"""Runs that a text must have of its own to be compared by them."""
_TEMPLATE = 0.05
"""A run that more than this share of the items has (and more than ten of them) belongs to a template."""
_SAMPLE = 200
"""Runs per text that are enough to compare by, on average."""
_SCATTER = 0x9E3779B97F4A7C15
_BETWEEN = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two items of different splits, and how alike their inputs are: 1 is equal but for case, punctuation and spacing."""

    one: str
    one_split: str
    other: str
    other_split: str
    alike: float
    text: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """`pairs` are near-duplicates between splits, the worst first. `conflicts` are inputs that stand there more than once
    with different answers. `touched` counts the items of val and test that are in a pair."""

    pairs: tuple[Pair, ...]
    conflicts: tuple[str, ...]
    touched: dict[str, int]


def find(splits: Splits) -> Overlap:
    """All near-duplicates between the splits, and all inputs with more than one answer."""
    homes = [(name, item) for name in SPLITS for item in splits[name]]
    texts = [normalised(_text(item)) for _, item in homes]
    answers = [canonical(item.reference) for _, item in homes]
    groups: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        groups[text].append(number)
    conflicts = [group[0] for text, group in groups.items() if text and len({answers[n] for n in group}) > 1]
    found = {pair: 1.0 for group in groups.values() for pair in _across(group, homes, answers)}
    found.update(_alike(texts, homes, answers))
    ranked = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    pairs = tuple(
        Pair(homes[a][1].id, homes[a][0], homes[b][1].id, homes[b][0], alike, _text(homes[b][1]))
        for (a, b), alike in ranked
    )
    touched = {
        name: len(
            {item for p in pairs for item, home in ((p.one, p.one_split), (p.other, p.other_split)) if home == name}
        )
        for name in ("val", "test")
    }
    return Overlap(pairs, tuple(_text(homes[number][1]) for number in conflicts), touched)


def normalised(text: str) -> str:
    """A text without case, punctuation and spacing."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _BETWEEN.sub(" ", folded).strip()


def _text(item: Item) -> str:
    return "\n".join(str(value) for value in item.inputs.values())


def _across(
    group: Sequence[int], homes: Sequence[tuple[str, Item]], answers: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Each item of a group of equals with the first one before it that is in another split and has the same answer."""
    for position, b in enumerate(group):
        for a in group[:position]:
            if homes[a][0] != homes[b][0] and answers[a] == answers[b]:
                yield a, b
                break


def _alike(
    texts: Sequence[str], homes: Sequence[tuple[str, Item]], answers: Sequence[str]
) -> dict[tuple[int, int], float]:
    """The pairs of different splits whose runs overlap enough, with how much."""
    import numpy as np

    runs = _runs(texts)
    if not runs:
        return {}
    known, inverse, counts = np.unique(np.concatenate(list(runs.values())), return_inverse=True, return_counts=True)
    rank = np.empty(len(known), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(known))
    own = counts[inverse] <= max(10, _TEMPLATE * len(texts))
    ends = np.cumsum([len(one) for one in runs.values()])[:-1]
    split = zip(runs, np.split(rank[inverse], ends), np.split(own, ends), strict=True)
    sets = {n: set(ranked[kept].tolist()) for n, ranked, kept in split if kept.sum() >= _FEWEST}
    index: dict[tuple[int, str], list[int]] = defaultdict(list)
    found: dict[tuple[int, int], float] = {}
    for b, mine in sets.items():
        rarest = sorted(mine)[: len(mine) - math.ceil(ALIKE * len(mine)) + 1]
        candidates = {a for token in rarest for a in index[token, answers[b]] if homes[a][0] != homes[b][0]}
        for a in candidates:
            theirs = sets[a]
            if min(len(mine), len(theirs)) < ALIKE * max(len(mine), len(theirs)) or texts[a] == texts[b]:
                continue
            shared = len(mine & theirs)
            alike = shared / (len(mine) + len(theirs) - shared)
            if alike >= ALIKE:
                found[a, b] = alike
        for token in rarest:
            index[token, answers[b]].append(b)
    return found


def _runs(texts: Sequence[str]) -> dict[int, Runs]:
    """The runs of bytes of every text that is long enough, each as the number its eight bytes spell."""
    import numpy as np

    encoded = {n: text.encode("utf-8", "surrogatepass") for n, text in enumerate(texts)}
    longer = {n: raw for n, raw in encoded.items() if len(raw) >= _FEWEST + _RUN}
    total = sum(map(len, longer.values()))
    keep = min(1.0, _SAMPLE * len(longer) / total) if total else 1.0
    limit = np.uint64(min(keep * 2**64, 2**64 - 1))
    found: dict[int, Runs] = {}
    for n, raw in longer.items():
        letters = np.frombuffer(raw, dtype=np.uint8).astype(np.uint64)
        spelt = np.zeros(len(letters) - _RUN + 1, dtype=np.uint64)
        for place in range(_RUN):
            spelt = spelt << np.uint64(8) | letters[place : place + len(spelt)]
        chosen = np.unique(spelt if keep == 1.0 else spelt[spelt * np.uint64(_SCATTER) <= limit])
        if len(chosen) >= _FEWEST:
            found[n] = chosen
    return found
