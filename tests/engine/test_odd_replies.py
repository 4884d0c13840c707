"""From an odd answer to an outcome: what the provider did is a failure without a score, what the model said is scored."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

from sharpen.core.item import Item
from sharpen.core.outcome import FailureKind
from sharpen.core.task import Splits
from sharpen.engine.retry import RetryPolicy
from sharpen.models.openai import OpenAIModel
from sharpen.tasks.textual import TextTask
from sharpen.testing.http import FakeEndpoint
from sharpen.testing.jobs import make_setup, running_job

ANSWERS: dict[str, dict[str, Any]] = {
    "right": {"finish_reason": "stop", "message": {"content": "yes"}},
    "refusal": {"finish_reason": "stop", "message": {"content": None, "refusal": "I can't help with that."}},
    "silent": {"finish_reason": "stop", "message": {"content": ""}},
    "filtered": {"finish_reason": "content_filter", "message": {"content": None}},
    "broken": {"finish_reason": "error", "message": {"content": None}},
    "null": {"finish_reason": "stop", "message": {"content": None}},
    "reasoning": {"finish_reason": "length", "message": {"content": ""}},
}


class Questions(TextTask):
    name = "questions"
    metric = "exact_match"
    skill = "Say yes."

    def __init__(self) -> None:
        super().__init__()
        items = tuple(Item(name, {"input": name}, "yes") for name in ANSWERS)
        val, test = (Item(name, {"input": name}, "yes") for name in ("another", "a third"))
        self._splits = Splits(items, (val,), (test,))


class Odd(FakeEndpoint):
    asked: Counter[str]

    async def _respond(self, http: Any) -> Any:
        text = str(await http.json())
        name = next(name for name in ANSWERS if name in text)
        self.asked[name] += 1
        heals = name == "broken" and self.asked[name] > 2
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return web.json_response({"choices": [ANSWERS["right" if heals else name]], "usage": usage})


def test_what_the_provider_did_has_no_score_and_what_the_model_said_has_one(tmp_path: Path) -> None:
    async def main() -> tuple[dict[str, float | None], dict[str, FailureKind], Counter[str], int]:
        async with Odd() as server:
            server.asked = Counter()
            model = OpenAIModel(f"{server.url}#m")
            setup = make_setup(Questions(), {"target": model})
            policy = RetryPolicy(first_pause=0.001)
            async with running_job(setup, tmp_path, max_failures=0.9, retry=policy) as job:
                found = await job.evaluate(setup.initial, setup.splits.train, purpose="test")
                scores = dict(zip((item.id for item in found.items), found.hard, strict=True))
                failures = {name: failure.kind for name, failure in found.failures.items()}
                return scores, failures, server.asked, job.budget.paid.calls

    scores, failures, asked, paid = asyncio.run(main())
    assert scores == {
        "right": 1.0, "refusal": 0.0, "silent": 0.0, "filtered": None, "broken": 1.0, "null": None, "reasoning": None,
    }  # fmt: skip
    assert failures == {
        "filtered": FailureKind.REFUSED, "null": FailureKind.BAD_REPLY, "reasoning": FailureKind.BAD_REPLY,
    }  # fmt: skip
    assert asked == Counter([*ANSWERS, "broken", "broken"]), "only what can heal is asked again"
    assert paid == sum(asked.values())
