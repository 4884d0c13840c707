"""What a job has used, by stage, purpose and role, and how long its stages took."""

from __future__ import annotations

from collections.abc import Mapping

from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.events import UsageRow


class Meter:
    """Counts what each part of a job used. Everything is counted once per job, when it is first asked for."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, str, str], Usage] = {}

    def add(self, stage: str, purpose: str, used: Mapping[str, Usage]) -> None:
        for role, usage in used.items():
            key = (stage, purpose, role)
            self._used[key] = self._used.get(key, NOTHING) + usage

    @property
    def total(self) -> Usage:
        return sum(self._used.values(), NOTHING)

    def by_role(self) -> dict[str, Usage]:
        totals: dict[str, Usage] = {}
        for (_, _, role), usage in self._used.items():
            totals[role] = totals.get(role, NOTHING) + usage
        return totals

    def table(self) -> dict[str, dict[str, UsageRow]]:
        """By `stage/purpose`, then by role, in a stable order."""
        rows: dict[str, dict[str, UsageRow]] = {}
        for (stage, purpose, role), usage in sorted(self._used.items()):
            rows.setdefault(f"{stage}/{purpose}", {})[role] = usage.row()
        return rows


def rows(used: Mapping[str, Usage]) -> dict[str, UsageRow]:
    return {role: usage.row() for role, usage in sorted(used.items())}


def minus(after: Mapping[str, Usage], before: Mapping[str, Usage]) -> dict[str, Usage]:
    """What was added between two readings of `Meter.by_role`; roles with nothing added are left out."""
    added: dict[str, Usage] = {}
    for role, now in after.items():
        then = before.get(role, NOTHING)
        if now != then:
            money = None if now.money is None or then.money is None else round(now.money - then.money, 12)
            added[role] = Usage(
                now.calls - then.calls,
                now.prompt_tokens - then.prompt_tokens,
                now.cached_tokens - then.cached_tokens,
                now.completion_tokens - then.completion_tokens,
                money,
            )
    return added
