"""Caps by the server's own count: whatever goes wrong with answers, it has not been asked for more than a cap allows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from sharpen.core.chat import Message, Request
from sharpen.core.errors import BudgetExhausted, ModelError
from sharpen.engine.budget import Budget, Caps
from sharpen.engine.gateway import Gateway
from sharpen.engine.retry import RetryPolicy
from sharpen.ledger.payments import read_accounts
from sharpen.ledger.store import Ledger
from sharpen.models.openai import OpenAIModel
from sharpen.testing.http import FakeEndpoint, Fault, FaultKind

F = FaultKind
WORKERS = 64
MIX = (F.MALFORMED, F.TRUNCATED, F.EMPTY, F.UPSTREAM, F.DROPPED, F.LATE, F.RATE_LIMITED, F.BROKEN)
PRICES = 'models: {"http://*": {input: 1000000, cached: 1000000, output: 1000000}}\n'
"""A dollar for each token, so that money is as easily counted."""


async def spend(path: Path, server: FakeEndpoint, caps: Caps, questions: int, *, patience: float = 60.0) -> Budget:
    """Ask more than a cap allows, from 64 workers, in one session of a job."""
    with Ledger(path) as ledger:
        model = OpenAIModel(f"{server.url}#m", timeout=patience)
        await model.open()
        budget = Budget(caps, lambda: 0.0, paid=ledger.paid("job"))
        policy = RetryPolicy(attempts=4, first_pause=0.001)
        gateway = Gateway({"target": model}, ledger, budget, policy=policy, account="job")
        left = iter(range(questions))

        async def work() -> None:
            for number in left:
                request = Request(messages=(Message("user", f"question {number} of several words"),), max_tokens=8)
                with suppress(ModelError, BudgetExhausted):
                    await gateway.complete("target", request, [number])

        try:
            await asyncio.gather(*(work() for _ in range(WORKERS)))
        finally:
            await model.close()
        return budget


@pytest.mark.parametrize("kinds", [(kind,) for kind in MIX] + [MIX], ids=lambda kinds: "+".join(kinds))
def test_a_cap_on_calls_holds_by_the_servers_count(kinds: tuple[FaultKind, ...], tmp_path: Path) -> None:
    faults = [Fault(kind, every=len(kinds) + 1 + number) for number, kind in enumerate(kinds)]
    patience = 0.5 if F.LATE in kinds else 60.0

    async def main() -> tuple[FakeEndpoint, Budget]:
        async with FakeEndpoint(lambda body: "four", faults=faults) as server:
            return server, await spend(tmp_path / "ledger.db", server, Caps(calls=90), 300, patience=patience)

    server, budget = asyncio.run(main())
    assert server.billed <= 90 and budget.paid.calls <= 90
    assert F.LATE in kinds or server.billed >= 80, "what the cap allows can be used"
    assert read_accounts(tmp_path / "ledger.db")["job"].calls == budget.paid.calls >= server.billed


@pytest.mark.parametrize("caps", [Caps(tokens=4000), Caps(money=4000.0)], ids=["tokens", "money"])
@pytest.mark.parametrize("reports", [True, False])
def test_caps_on_tokens_and_money_hold_too(
    caps: Caps, reports: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)
    monkeypatch.setenv("SHARPEN_PRICES", str(tmp_path / "prices.yaml"))
    faults = [Fault(kind, every=9 + number) for number, kind in enumerate(MIX)]

    async def main() -> tuple[FakeEndpoint, Budget]:
        async with FakeEndpoint(lambda body: "one two", faults=faults, usage=reports) as server:
            return server, await spend(tmp_path / "ledger.db", server, caps, 1000, patience=0.5)

    server, budget = asyncio.run(main())
    assert 0 < server.billed_tokens <= 4000 and budget.paid.tokens <= 4000 and budget.paid.money <= 4000
    assert budget.paid.lost > 0


def test_all_sessions_of_a_job_share_a_cap(tmp_path: Path) -> None:
    """Three sessions, each of which ends with most of its answers lost."""
    faults = [Fault(F.MALFORMED, every=2), Fault(F.DROPPED, every=3)]

    async def main() -> int:
        async with FakeEndpoint(lambda body: "four", faults=faults) as server:
            for questions in (20, 40, 200):
                await spend(tmp_path / "ledger.db", server, Caps(calls=100), questions)
            return server.billed

    assert 90 <= asyncio.run(main()) <= 100
