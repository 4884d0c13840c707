"""Scores on a scale that means something: 0 is a player who presses buttons at random, 1 a person (or an expert).

(score - random) / (reference - random), times a scale (1, or 100 for per cent). References are data with their source and
protocol beside them (`data/references.csv`: `atari57`, `d4rl`, `classic`), looked up by name, or given. Normalising is
linear: it applies to means, ends of intervals and every point of a curve alike. A normalised score stands beside its
protocol, without which it means nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources

from sharpen.stats.errors import BadData


@dataclass(frozen=True, slots=True)
class Reference:
    """What 0 and 1 stand for. `protocol` says how the two were measured, `source` by whom."""

    random: float
    reference: float
    scale: float = 1.0
    protocol: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.random == self.reference:
            raise BadData(f"the random score and the reference score are both {self.random:g}: nothing to divide by")

    def of(self, score: float) -> float:
        """The normalised score."""
        return (score - self.random) / (self.reference - self.random) * self.scale

    @property
    def factor(self) -> float:
        """What a difference of scores is multiplied with."""
        return self.scale / (self.reference - self.random)

    def of_all(self, scores: Sequence[float]) -> list[float]:
        return [self.of(score) for score in scores]


def look_up(table: str, name: str, *, protocol: str | None = None, scale: float = 1.0) -> Reference:
    """The reference for `name` in a table that ships with the program; its first protocol where none is named. A variant
    (`hopper-medium-replay-v2`) has the reference of what it is a variant of."""
    rows = _tables()
    if table not in rows:
        raise BadData(f"no table of references {table!r}; there are {', '.join(rows)}")
    known = rows[table]
    key = _plain(name)
    key = next((k for k in sorted(known, key=len, reverse=True) if f"{key}-".startswith(f"{k}-")), key)
    if key not in known:
        near = get_close_matches(key, known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise BadData(f"the table {table} has no reference for {name!r}{hint}")
    by_protocol = known[key]
    if protocol is not None and protocol not in by_protocol:
        raise BadData(f"{name} has no scores by the protocol {protocol!r}; there are {', '.join(by_protocol)}")
    found = by_protocol[protocol] if protocol is not None else next(iter(by_protocol.values()))
    return replace(found, scale=scale)


def names(table: str, subset: str = "") -> list[str]:
    """What a table has references for, or only those of a subset such as `atari100k`."""
    return list(dict.fromkeys(_plain(r["name"]) for r in _rows() if r["table"] == table and subset in ("", r["set"])))


@cache
def _tables() -> dict[str, dict[str, dict[str, Reference]]]:
    tables: dict[str, dict[str, dict[str, Reference]]] = {}
    for row in _rows():
        found = Reference(float(row["random"]), float(row["reference"]), 1.0, row["protocol"], row["source"])
        tables.setdefault(row["table"], {}).setdefault(_plain(row["name"]), {})[row["protocol"]] = found
    return tables


@cache
def _rows() -> list[dict[str, str]]:
    text = resources.files("sharpen.stats").joinpath("data/references.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _plain(name: str) -> str:
    """`ALE/MsPacman-v5`, `MsPacmanNoFrameskip-v4` and `ms_pacman` are the same game."""
    game = name.rpartition("/")[2].partition("-v")[0].removesuffix("NoFrameskip").removesuffix("Deterministic")
    spaced = "".join(f"_{c}" if c.isupper() and place else c for place, c in enumerate(game)).lower()
    return spaced.replace(" ", "_").replace("__", "_")
