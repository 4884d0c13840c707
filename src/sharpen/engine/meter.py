"""What a job has used, by stage, purpose and role, and how long its stages took."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sharpen.core.usage import NOTHING, Usage
from sharpen.engine.events import UsageRow


class Tally:
    """A sum of usages by role that does not depend on their order, not even in the last digit of the money."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._money: dict[str, list[float | None]] = {}

    def add(self, used: Mapping[str, Usage]) -> None:
        for role, usage in used.items():
            counts = self._counts.setdefault(role, [0, 0, 0, 0])
            counts[0] += usage.calls
            counts[1] += usage.prompt_tokens
            counts[2] += usage.cached_tokens
            counts[3] += usage.completion_tokens
            if usage.money != 0.0:
                self._money.setdefault(role, []).append(usage.money)

    def by_role(self) -> dict[str, Usage]:
        return {role: Usage(c[0], c[1], c[2], c[3], self._sum(role)) for role, c in self._counts.items()}

    def _sum(self, role: str) -> float | None:
        amounts = self._money.get(role, [])
        return None if None in amounts else math.fsum(amount for amount in amounts if amount is not None)


class Meter:
    """Counts what each part of a job used. Everything is counted once per job, when it is first asked for."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], Tally] = {}
        self._all = Tally()

    def add(self, stage: str, purpose: str, used: Mapping[str, Usage]) -> None:
        self._parts.setdefault((stage, purpose), Tally()).add(used)
        self._all.add(used)

    @property
    def total(self) -> Usage:
        return sum((usage for _, usage in sorted(self.by_role().items())), NOTHING)

    def by_role(self) -> dict[str, Usage]:
        return self._all.by_role()

    def table(self) -> dict[str, dict[str, UsageRow]]:
        """By `stage/purpose`, then by role, in a stable order."""
        parts = {f"{stage}/{purpose}": rows(tally.by_role()) for (stage, purpose), tally in sorted(self._parts.items())}
        return {part: used for part, used in parts.items() if used}


def rows(used: Mapping[str, Usage]) -> dict[str, UsageRow]:
    return {role: usage.told() for role, usage in sorted(used.items())}


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
