"""What another gate would have said: a job's decisions taken again, from what its story tells, at no cost.

For every verdict in the story, the scores of both candidates as they were known at that moment are put before the other
gate. It sees the items on which both were measured; where it wants draws nobody made, it can't be told what it would
have decided, and that is said. Each decision is taken for the candidates of the job as it went: after the first one
that differs, the training itself would have gone another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sharpen.engine.metric import Metric
from sharpen.gates.base import Evidence, Gate, Need, Pair

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Redecided:
    """One decision: what was, and what the other gate says. `would` is None where it can't be told."""

    step: int
    was: bool
    would: bool | None
    effect: float | None
    low: float | None
    high: float | None
    items: int
    of: int
    reason: str

    @property
    def differs(self) -> bool:
        return self.would is not None and self.would != self.was


def redecide(lines: Sequence[Line], gate: Gate) -> list[Redecided]:
    """All verdicts of a story, by another gate."""
    started = next((line for line in lines if line["type"] == "job_started"), {})
    params, repeatable = started.get("params", {}), bool(started.get("repeatable"))
    metric = Metric(params.get("gate_metric", "hard"), params.get("gate_mixed_weight", 0.5))
    planned = sum(line["type"] == "decided" for line in lines)
    deciding = {
        name
        for line in lines
        if line["type"] == "measured" and line["purpose"] == "gate"
        for group in line["groups"]
        for name in _names(group)
    }
    known = _Known(metric, deciding)
    found: list[Redecided] = []
    for line in lines:
        if line["type"] == "measured":
            known.add(line["groups"], fresh=line["purpose"] == "gate")
        elif line["type"] == "decided":
            found.append(_taken_again(line, known, gate, repeatable, len(found), planned))
            known.settle()
    return found


class _Known:
    """The scores told so far on the items gates decide on: by candidate and item, in the order of their sample numbers."""

    def __init__(self, metric: Metric, deciding: set[str]) -> None:
        self._metric = metric
        self._deciding = deciding
        self._scores: dict[str, dict[str, dict[int, float | None]]] = {}
        self._fresh: Counter[tuple[str, str]] = Counter()
        """By candidate and item: how many of its draws were made for the decision at hand."""

    def settle(self) -> None:
        """A decision was taken: what was drawn for it is stored from now on."""
        self._fresh.clear()

    def add(self, groups: Sequence[Line], *, fresh: bool) -> None:
        for group in groups:
            hard, soft = group["hard"], group["soft"] or group["hard"]
            mine = self._scores.setdefault(group["candidate"], {})
            for item, first, second in zip(_names(group), hard, soft, strict=True):
                if item not in self._deciding:
                    continue
                score = None if first is None or second is None else self._metric.of(first, second)
                mine.setdefault(item, {})[group["sample"]] = score
                self._fresh[group["candidate"], item] += fresh

    def pairs(self, new: str, old: str) -> list[Pair]:
        ours, theirs = self._scores.get(new, {}), self._scores.get(old, {})
        return [
            Pair(
                _row(ours[item]),
                _row(theirs[item]),
                len(ours[item]) - self._fresh[new, item],
                max(1, len(theirs[item]) - self._fresh[old, item]),
            )
            for item in theirs
            if item in ours
        ]


def _names(group: Line) -> list[str]:
    """The items of a group. Those of a whole split are told by its name and known by their place in it, which is the same
    for every candidate."""
    items = group["items"]
    return [f"{items}/{place}" for place in range(len(group["hard"]))] if isinstance(items, str) else list(items)


def _row(samples: Mapping[int, float | None]) -> tuple[float | None, ...]:
    return tuple(samples[number] for number in range(len(samples)) if number in samples)


def _taken_again(line: Line, known: _Known, gate: Gate, repeatable: bool, decision: int, planned: int) -> Redecided:
    pairs = tuple(known.pairs(line["new"], line["old"]))
    told = (line["step"], line["accepted"])
    said = gate.decide(Evidence(pairs, repeatable, decision=decision, planned=planned)) if pairs else None
    if said is None or isinstance(said, Need):
        wanted = (
            "both candidates were measured on no item" if said is None else f"it wants {len(said.draws)} more draws"
        )
        return Redecided(*told, None, None, None, None, len(pairs), line["items"], wanted)
    return Redecided(*told, said.accepted, said.effect, said.low, said.high, len(pairs), line["items"], said.reason)
