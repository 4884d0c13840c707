"""The model `nearest/words`: it answers as the worked example with the most words in common does. No weights, no network.

It is asked in the rendering `turns`, where every worked example of the skill is a question and an answer.
"""

from __future__ import annotations

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError
from sharpen.core.usage import Usage


class NearestModel:
    """answers as the most similar worked example does, without weights"""

    family = "nearest"
    deterministic = True
    render = "turns"
    concurrency = 64

    def __init__(self, name: str) -> None:
        if name != "nearest/words":
            raise UsageError(f"unknown model {name!r}; there is nearest/words")
        self.name = self.endpoint = name

    @property
    def identity(self) -> Json:
        return {"kind": "nearest", "version": 1}

    def bound(self, request: Request) -> tuple[int, float | None]:
        return _words(request) + request.max_tokens, 0.0

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def complete(self, request: Request) -> Reply:
        said = [message for message in request.messages if message.role != "system"]
        shown = list(zip(said[:-1:2], said[1::2], strict=False))
        asked = set((said[-1].content if said else request.prompt or "").lower().split())
        ranked = sorted(shown, key=lambda pair: -len(asked.intersection(pair[0].content.lower().split())))
        answer = (ranked[0][1].content if ranked else "unknown").split()[: request.max_tokens]
        return Reply(" ".join(answer), Usage(1, _words(request), 0, len(answer), 0.0))


def _words(request: Request) -> int:
    return len((request.prompt or "").split()) + sum(len(message.content.split()) for message in request.messages)
