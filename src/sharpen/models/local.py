"""The embedded model: a small language model in worker processes on this machine. No key, no network, no money.

This file owns the processes: it starts them as they are needed, gives each one request at a time, and turns their replies
and their deaths into replies and errors of a `Model`. A free worker takes the waiting request whose shared prefix it has
ready, else one whose prefix no other worker has, so that of many prefixes each is computed once and not once per worker.
What happens inside a worker is `local_worker`'s, where the weights come from is `weights`'s.

What is promised: the same request brings the same text, whichever worker serves it and whatever ran before or runs
beside it, on the same kind of processor. The `shared` hint counts as part of the request here: it decides how the work
is cut, and so the last bits of the result. With a temperature above 0 the request's seed decides (0 where it has none).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sharpen
from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json
from sharpen.core.errors import ModelError, ModelErrorKind, SharpenError, UsageError, nearest
from sharpen.core.usage import Usage
from sharpen.models.local_worker import BLOCK, SLOTS
from sharpen.models.settings import check
from sharpen.models.weights import Progress, identity, locate, own_file

NAME = "local/smollm2-135m"

_LONGEST_REPLY = 1 << 24
_LAST_WORDS = 2000
_TEMPLATE_TOKENS = 64
_DYING = 2.0
"""Seconds a worker that closed its pipe may take to be gone."""
_TOKENS_PER_MESSAGE = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """`workers`: engine processes, by default one per core. `context`: tokens a request and its reply may have."""

    workers: int | None = None
    context: int = 4096
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers must be at least 1, got {self.workers}")
        if not 256 <= self.context <= 8192:
            raise UsageError(f"context must be from 256 to 8192, got {self.context}")


class LocalModel:
    """SmolLM2-135M-Instruct on this machine's processors."""

    family = "local"
    render = "completion"
    deterministic = True
    endpoint = "local"

    def __init__(self, name: str = NAME, **settings: Any) -> None:
        if name != NAME:
            raise UsageError(f"unknown embedded model {name!r}{nearest(name, [NAME])}; there is {NAME}")
        self.name = name
        self.settings = check(name, Settings, settings)
        self.workers = self.settings.workers or _cores()
        self._weights: Path | None = None
        self._free = self.workers
        """Workers that could take a request now, those not started yet included."""
        self._waiting: list[_Ticket] = []
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def identity(self) -> Json:
        return {
            "weights": identity(),
            "engine": f"xllamacpp {importlib.metadata.version('xllamacpp')}",
            "machine": platform.machine(),
            "context": self.settings.context,
            "block": BLOCK,
        }

    @property
    def context(self) -> int:
        """Tokens a request and its reply may have together."""
        return self.settings.context

    @property
    def concurrency(self) -> int:
        """Many more than there are workers, so that a free one finds a request whose prefix it has ready."""
        return max(64, 2 * self.workers)

    def bound(self, request: Request) -> tuple[int, float | None]:
        texts = [request.prompt or "", *(message.content for message in request.messages)]
        prompt = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        prompt += _TEMPLATE_TOKENS + _TOKENS_PER_MESSAGE * len(request.messages)
        return min(prompt + request.max_tokens, self.settings.context), 0.0

    async def open(self) -> None:
        """Fetch the weights where they are not there yet, and start the first worker."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError(f"{NAME} needs the Python package xllamacpp: pip install 'sharpen[local]'")
        self._weights = await asyncio.to_thread(locate, progress=self.settings.progress)
        try:
            self._idle.append(await self._start())
        except ModelError as error:
            kind = SharpenError if own_file() is None else UsageError
            raise kind(str(error)) from error

    async def close(self) -> None:
        for ticket in self._waiting:
            ticket.answer.cancel()
        self._waiting.clear()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self._all))
        self._all.clear()
        self._idle.clear()

    async def complete(self, request: Request) -> Reply:
        ticket = _Ticket(_line(request), _prefix(request), asyncio.get_running_loop().create_future())
        self._waiting.append(ticket)
        self._dispatch()
        try:
            answer = await ticket.answer
        except asyncio.CancelledError:
            # A caller that gives up leaves the worker busy: its reply must still be read, and then is dropped.
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            raise
        if "error" in answer:
            raise ModelError(ModelErrorKind(answer["error"]), f"{self.name}: {answer['message']}")
        usage = Usage(1, answer["prompt_tokens"], answer["cached_tokens"], answer["completion_tokens"], 0.0)
        return Reply(answer["text"], usage, answer["finish"])

    def _dispatch(self) -> None:
        """Bring free workers and waiting requests together."""
        while self._waiting and self._free:
            worker, ticket = self._match()
            self._free -= 1
            self._waiting.remove(ticket)
            if worker is not None:
                self._idle.remove(worker)
                worker.remember(ticket.prefix)
            task = asyncio.create_task(self._serve(ticket, worker))
            self._serving.add(task)
            task.add_done_callback(self._done)

    def _match(self) -> tuple[_Worker | None, _Ticket]:
        """A worker (None: a new one) and the request it should take next."""
        for worker in self._idle:
            for ticket in self._waiting:
                if ticket.prefix in worker.prefixes:
                    return worker, ticket
        held = {prefix for worker in self._all for prefix in worker.prefixes}
        ticket = next((ticket for ticket in self._waiting if ticket.prefix not in held), self._waiting[0])
        return (self._idle[0] if self._idle else None), ticket

    def _done(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        self._free += 1
        self._dispatch()

    async def _serve(self, ticket: _Ticket, worker: _Worker | None) -> None:
        answer = await self._answer(ticket, worker)
        if not ticket.answer.done():
            ticket.answer.set_result(answer)

    async def _answer(self, ticket: _Ticket, worker: _Worker | None) -> Mapping[str, Json]:
        if worker is None:
            try:
                worker = await self._start()
            except ModelError as error:
                return {"error": error.kind, "message": str(error)}
            worker.remember(ticket.prefix)
        answer = await worker.ask(ticket.line)
        if answer is not None:
            self._idle.append(worker)
            return answer
        return {"error": ModelErrorKind.UNAVAILABLE, "message": await self._bury(worker)}

    async def _start(self) -> _Worker:
        if self._weights is None:
            raise RuntimeError("the model is not open")
        worker = await _Worker.start(self._weights, self.settings.context)
        self._all.add(worker)
        greeting = await worker.read()
        if greeting is None or "error" in greeting:
            ending = await self._bury(worker)
            raise ModelError(ModelErrorKind.UNAVAILABLE, ending if greeting is None else greeting["message"])
        return worker

    async def _bury(self, worker: _Worker) -> str:
        """Make an end of a worker that died or should; what it left to say."""
        self._all.discard(worker)
        await worker.stop(patience=_DYING)
        return worker.last_words()


@dataclass(eq=False)
class _Ticket:
    """A request that waits for a worker, and then for its answer."""

    line: bytes
    prefix: int
    answer: asyncio.Future[Mapping[str, Json]]


class _Worker:
    """One worker process, its pipes, and the last it wrote to standard error."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.prefixes: deque[int] = deque(maxlen=SLOTS)
        self._words = b""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, weights: Path, context: int) -> _Worker:
        package = str(Path(sharpen.__file__).parent.parent)
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        # An idle OpenMP thread that spins takes the core from the worker beside it.
        threads = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "sharpen.models.local_worker", str(os.getpid()), str(weights), str(context)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LONGEST_REPLY,
            env={**os.environ, **threads, "PYTHONPATH": path},
        )
        return cls(process)

    def remember(self, prefix: int) -> None:
        """Keep in step with the worker's slots, of which it gives up the least recently used."""
        if prefix in self.prefixes:
            self.prefixes.remove(prefix)
        self.prefixes.append(prefix)

    async def ask(self, line: bytes) -> Mapping[str, Json] | None:
        """The worker's answer, or None when it died."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line)
            await self.process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            return None
        return await self.read()

    async def read(self) -> Mapping[str, Json] | None:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line.endswith(b"\n"):
            return None
        answer: Mapping[str, Json] = json.loads(line)
        return answer

    def last_words(self) -> str:
        words = self._words.decode(errors="replace").strip()
        return f"an engine process ended with code {self.process.returncode}" + (f": {words}" if words else "")

    async def stop(self, patience: float = 0.0) -> None:
        """End the process, after giving it `patience` seconds to end by itself: to signal one that is just dying would
        take its exit code from whoever waits for it."""
        if patience:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), patience)
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        await self.process.wait()
        await self._listening
        if self.process.stdin is not None:
            self.process.stdin.close()

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(_LAST_WORDS):
            self._words = (self._words + chunk)[-_LAST_WORDS:]


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prefix(request: Request) -> int:
    """What tells shared prefixes apart when a worker is chosen; a collision would only cost time."""
    return hash((request.prompt or "")[: request.shared] or request.messages[: request.shared])


def _line(request: Request) -> bytes:
    """The request as its worker reads it."""
    if request.tools:
        raise ModelError(ModelErrorKind.BAD_REQUEST, f"{NAME} calls no tools; leave them out, or use a larger model")
    if request.max_tokens < 1:
        raise ModelError(ModelErrorKind.BAD_REQUEST, f"max_tokens must be at least 1, got {request.max_tokens}")
    if request.prompt is None and not request.messages:
        raise ModelError(ModelErrorKind.BAD_REQUEST, "the request has neither a prompt nor messages")
    fields = {
        "prompt": request.prompt,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "shared": request.shared,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stop": list(request.stop),
        "schema": None if request.schema is None else dict(request.schema),
        "seed": request.seed,
    }
    return json.dumps(fields).encode() + b"\n"
