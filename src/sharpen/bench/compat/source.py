"""What the classic files are made from: a job's events, its checkpoints, and, where they are at hand, its items and ledger.

Everything but the events is optional. Without the items (a task that is not installed here, or has changed since), rows of
a whole split have no ids; without the ledger, attempts have scores but no answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sharpen.bench.compat.story import Line
from sharpen.bench.leave_one_out import stored_keys
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.task import SPLITS, Splits
from sharpen.engine.replay import read_events
from sharpen.engine.spec import describe_splits
from sharpen.ledger.keys import RolloutKeys
from sharpen.ledger.reading import open_to_read
from sharpen.ledger.store import Ledger


@dataclass(frozen=True)
class Source:
    """One job. `names` are the models by role, as the configuration names them."""

    folder: Path
    lines: Sequence[Line]
    names: Mapping[str, str] = field(default_factory=dict)
    splits: Splits | None = None
    ledger: Ledger | None = None

    @property
    def started(self) -> Line:
        return self.lines[0]

    @property
    def params(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.started["params"]
        return found

    def ids(self, group: Mapping[str, Any]) -> list[str | None]:
        """The items of a measured group, in order; None where only the task could tell and it is not at hand."""
        items = group["items"]
        if isinstance(items, list):
            return list(items)
        if self.splits is None:
            return [None] * len(group["hard"])
        return [item.id for item in self.splits[items]]

    @cached_property
    def items(self) -> dict[str, Item]:
        if self.splits is None:
            return {}
        return {item.id: item for name in SPLITS for item in self.splits[name]}

    def outcome(self, candidate: Candidate, item: Item, sample: int) -> Outcome | None:
        """The whole record of an attempt, where the ledger has it."""
        return None if self.ledger is None else self.ledger.outcome(self._keys.key(candidate, item, sample))

    @cached_property
    def _keys(self) -> RolloutKeys:
        return stored_keys(self.lines)


@contextmanager
def open_source(
    folder: Path, ledger: Path, splits: Splits | None, names: Mapping[str, str | None] | None = None
) -> Iterator[Source]:
    """A job's folder as a source. Splits that are not the job's own are not used."""
    lines = read_events(folder / "events.jsonl")
    if not lines:
        raise UsageError(f"nothing has happened yet in {folder}")
    started = lines[0]
    if started["trainer"] != "reflact":
        raise UsageError(
            f"the compat files tell of a training by reflact, and this job was trained by {started['trainer']}; "
            "results.json has what it came to"
        )
    same = splits if splits is not None and describe_splits(splits) == started["splits"] else None
    known = {role: name for role, name in (names or {}).items() if name is not None}
    if not ledger.exists():
        yield Source(folder, lines, known, same)
        return
    with open_to_read(ledger) as opened:
        yield Source(folder, lines, known, same, opened)
