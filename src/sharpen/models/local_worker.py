"""One engine of the embedded model in a process of its own: requests in as JSON lines, replies out as JSON lines.

This file owns the promise that a request brings the same text whatever the engine did before. The last bits of a result
depend on how the tokens were cut into batches, so the cutting is fixed by the request alone: the tokens of the shared
prefix in blocks of `BLOCK` counted from its beginning, then the rest in blocks counted from the prefix's end (`cuts`).
Whatever an engine slot holds is used again only up to a point where its tokens and its cuts are those of the new
request (`reusable`), and the slot is set back to exactly that point before anything is computed. So a prefix is computed
once, a changed prefix costs only what follows its first changed block, and neither shows in any text. That the engine
did reuse just this much is checked on every call.

The process ends when its input ends, and on Linux with its parent, however that one ends.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

BLOCK = 64
SLOTS = 2
_PR_SET_PDEATHSIG = 1
_ENGINE_RANDOM_SEED = 0xFFFFFFFF


class Refused(Exception):
    """The request can't be answered. `kind` is the value of a `ModelErrorKind`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def cuts(head: int, total: int) -> list[int]:
    """Where each batch ends when `total` tokens are computed from nothing, of which the first `head` are shared."""
    if not 0 < head < total:
        return [*range(BLOCK, total, BLOCK), total]
    return [*range(BLOCK, head, BLOCK), head, *range(head + BLOCK, total, BLOCK), total]


def reusable(held: Sequence[int], held_cuts: Sequence[int], wanted: Sequence[int], wanted_cuts: Sequence[int]) -> int:
    """How many of the held tokens were computed just as the wanted ones would be; always fewer than are wanted."""
    reach = 0
    for old, new in zip(held_cuts, wanted_cuts, strict=False):
        if old != new or new == len(wanted) or held[reach:old] != wanted[reach:new]:
            break
        reach = new
    return reach


def common(first: Sequence[object], second: Sequence[object]) -> int:
    """The length of the longest common beginning."""
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


@dataclass
class Slot:
    """What a slot of the engine holds. `open_ended`: generated tokens, not listed here, may follow `tokens`."""

    number: int
    tokens: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    open_ended: bool = False
    used: int = 0


Call = Callable[[dict[str, Any]], dict[str, Any]]


class Slots:
    """The engine's slots and what they hold. One request at a time: nothing is ever computed beside another."""

    def __init__(self, call: Call, count: int = SLOTS) -> None:
        self._call = call
        self._slots = [Slot(number) for number in range(count)]
        self._clock = 0

    def complete(self, tokens: list[int], head: int, settings: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """The engine's reply to `tokens`, of which the first `head` are shared, and how many of them were ready."""
        wanted = cuts(head, len(tokens))
        reach = {slot.number: reusable(slot.tokens, slot.cuts, tokens, wanted) for slot in self._slots}
        slot = max(self._slots, key=lambda slot: (reach[slot.number] >= max(head, 1), -slot.used))
        self._clock += 1
        slot.used = self._clock
        start = ready = reach[slot.number]
        if start < head < len(tokens):
            self._run(slot, tokens[:head], start, {"max_tokens": 0})
            slot.cuts, slot.open_ended = cuts(0, head), False
            start = head
        reply = self._run(slot, tokens, start, settings)
        slot.cuts = wanted
        return reply, ready

    def _run(self, slot: Slot, tokens: list[int], start: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Continue from the first `start` tokens, which the slot holds, to the end of `tokens` and beyond."""
        same = common(slot.tokens, tokens)
        exact = same == start and (same < len(slot.tokens) or not slot.open_ended)
        # Should a call fail, nothing is known of what the slot holds.
        slot.tokens, slot.cuts, slot.open_ended = [], [], True
        if start and not exact:
            # The engine drops what it holds behind the last common token: one odd token makes that the one we mean.
            odd = next(token for token in range(2) if token != tokens[start])
            self._checked(slot, [*tokens[:start], odd], start, {"max_tokens": 0})
        reply = self._checked(slot, tokens, start, settings)
        slot.tokens = tokens
        return reply

    def _checked(self, slot: Slot, tokens: list[int], start: int, settings: dict[str, Any]) -> dict[str, Any]:
        body = {"prompt": tokens, "id_slot": slot.number, "cache_prompt": start > 0, "temperature": 0.0, "top_k": 1}
        reply = self._call({**body, **settings})
        if "error" in reply:
            error = reply["error"]
            raise Refused("bad_request" if error.get("code") == 400 else "unavailable", str(error.get("message")))
        reused = reply["timings"]["cache_n"]
        if reused != start:
            raise RuntimeError(f"the engine took {reused} tokens from its cache where {start} were meant")
        return reply


class Engine:
    """The language model itself: from a request to its reply."""

    def __init__(self, path: str, context: int) -> None:
        import xllamacpp

        self.context = context
        # The engine always listens on a local port; a key that only this process knows keeps everyone else out.
        self._key = secrets.token_hex(16)
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx = context * SLOTS
        params.n_parallel = SLOTS
        params.kv_unified = False
        params.n_batch = params.n_ubatch = BLOCK
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.n_threads_http = 1
        params.n_gpu_layers = 0
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_ram_mib = 0
        params.cache_idle_slots = params.warmup = params.fit_params = params.ui = params.endpoint_slots = False
        params.verbosity = 1
        params.api_keys = [self._key]
        server = xllamacpp.Server(params)
        self._address = server.listening_address.split("//", 1)[1]
        self._slots = Slots(server.handle_completions)
        self._head_tokens = lru_cache(maxsize=16)(self._tokens)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        text, shared = self._texts(request)
        tokens = self._tokens(text)
        if not tokens:
            raise Refused("bad_request", "the prompt is empty")
        if len(tokens) >= self.context:
            raise Refused(
                "bad_request",
                f"the prompt has {len(tokens)} tokens; the embedded model's context holds {self.context}, "
                "the new ones included",
            )
        # Whitespace at the prefix's end belongs to the word behind it; without it the same tokens come out every time.
        head = common(self._head_tokens(shared.rstrip()), tokens) if shared.strip() else 0
        room = min(request["max_tokens"], self.context - len(tokens))
        reply, ready = self._slots.complete(tokens, head, {"max_tokens": room, **_sampling(request)})
        choice = reply["choices"][0]
        return {
            "text": choice["text"],
            "finish": choice["finish_reason"],
            "prompt_tokens": len(tokens),
            "cached_tokens": ready,
            "completion_tokens": reply["usage"]["completion_tokens"],
        }

    def _texts(self, request: dict[str, Any]) -> tuple[str, str]:
        """The text to be continued, and the part of it that other requests begin with too."""
        prompt, shared = request["prompt"], request["shared"]
        if prompt is not None:
            return prompt, prompt[:shared]
        messages = request["messages"]
        text = self._templated(messages, True)
        beginning = self._templated(messages[:shared], False) if shared else ""
        return text, text[: common(text, beginning)]

    def _tokens(self, text: str) -> list[int]:
        reply = self._post("/tokenize", {"content": text, "add_special": True, "parse_special": True})
        tokens: list[int] = reply["tokens"]
        return tokens

    def _templated(self, messages: list[dict[str, str]], open_turn: bool) -> str:
        reply = self._post("/apply-template", {"messages": messages, "add_generation_prompt": open_turn})
        return str(reply["prompt"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        reply: dict[str, Any] = json.loads(content)
        if response.status != http.HTTPStatus.OK:
            raise Refused("bad_request", str(reply.get("error", {}).get("message", content[:200])))
        return reply


def _sampling(request: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {"stop": request["stop"]}
    if request["temperature"] > 0:
        # One value of the seed means "draw one yourself" to the engine: it must never be passed on.
        seed = (request["seed"] or 0) % _ENGINE_RANDOM_SEED
        settings |= {"temperature": request["temperature"], "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": seed}
    if request["schema"] is not None:
        # Left free, a small model fills its answer with spaces and newlines until the tokens run out.
        settings["json_schema"] = {**request["schema"], "x-guidance": {"whitespace_flexible": False}}
    return settings


def _die_with(parent: int) -> None:
    """Have the kernel end this process with its parent. Elsewhere than on Linux the end of the input does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(0)


def _private_output() -> int:
    """A descriptor for the replies alone; whatever the engine prints goes to standard error."""
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def _replies(path: str, context: int) -> Iterator[dict[str, Any]]:
    try:
        engine = Engine(path, context)
    except (ImportError, RuntimeError) as error:
        yield {"error": "unavailable", "message": f"the engine did not start with {path}: {error}"}
        return
    yield {"ready": True}
    for line in sys.stdin.buffer:
        try:
            yield engine.answer(json.loads(line))
        except Refused as refused:
            yield {"error": refused.kind, "message": str(refused)}


def main() -> None:
    parent, path, context = sys.argv[1:]
    _die_with(int(parent))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # its parent ends it: calls under way are finished
        signal.signal(number, signal.SIG_IGN)
    output = _private_output()
    with os.fdopen(output, "wb", buffering=0) as sink:
        for reply in _replies(path, int(context)):
            sink.write(json.dumps(reply).encode() + b"\n")
    # The engine's own threads would delay an ordinary exit.
    os._exit(0)


if __name__ == "__main__":
    main()
