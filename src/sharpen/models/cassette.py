"""Record what a model says, and play it back without the model.

`record:talk.jsonl:openai/gpt-5.5` asks the model and keeps every answer; `replay/talk.jsonl` answers from the file. A
cassette is a JSONL file. Its first line is the header:

    {"format": "sharpen.cassette", "version": 1, "model": {"name", "family", "render", "identity"}}

and every further line one exchange:

    {"id": DIGEST, "request": {...}, "reply": {"text", "finish", "usage": [...], "tool_calls": [...]}}

`id` is the digest of everything in the request that may change the answer, its seed included; an id occurs once, and the
first answer to a request is the one that is kept. `usage` is calls, prompt tokens, cached tokens, completion tokens and
money, as paid when it was recorded. Secrets are blanked. A last line that a crash cut short is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.chat import Reply, Request
from sharpen.core.digest import Json, digest
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.core.redact import redact_json
from sharpen.core.usage import Usage
from sharpen.files import append_line, complete_lines, storage_error
from sharpen.models.base import Model

FORMAT = "sharpen.cassette"
VERSION = 1


def request_id(request: Request) -> str:
    """What a request is known by on a cassette."""
    return digest([request.key_fields(), request.seed])


@dataclass(frozen=True)
class Cassette:
    """What is on a file: the header's description of the model, and the replies by request id."""

    model: Mapping[str, Json]
    replies: Mapping[str, Reply]
    digest: str


def load(path: Path) -> Cassette:
    """Read a cassette, or say which line of it is wrong."""
    if not path.is_file():
        raise UsageError(f"no such cassette: {path} (make one with record:{path}:MODEL)")
    model: Mapping[str, Json] | None = None
    replies: dict[str, Reply] = {}
    content = hashlib.sha256()
    for number, (_, line) in enumerate(complete_lines(path), start=1):
        content.update(line)
        try:
            row = json.loads(line)
            if model is None:
                model = _header(path, row)
            else:
                replies.setdefault(row["id"], _reply(row["reply"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path}, line {number}: not a line of a cassette ({type(error).__name__}: {error})"
            ) from None
    if model is None:
        raise UsageError(f"{path} is empty; a cassette begins with a header line")
    return Cassette(model, replies, content.hexdigest())


class ReplayModel:
    """Answers from a cassette. Passes for the recorded model in family and rendering, so that requests come out the same."""

    deterministic = True
    in_process = True
    concurrency = 1024

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = Path(name.removeprefix("replay/"))
        self._cassette = load(self._path)

    @property
    def family(self) -> str:
        return str(self._cassette.model["family"])

    @property
    def render(self) -> str:
        return str(self._cassette.model["render"])

    @property
    def identity(self) -> Json:
        return {"kind": "replay", "content": self._cassette.digest}

    @property
    def endpoint(self) -> str:
        return self.name

    def bound(self, request: Request) -> tuple[int, float | None]:
        reply = self._cassette.replies.get(request_id(request))
        return (0, 0.0) if reply is None else (reply.usage.tokens, reply.usage.money)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def complete(self, request: Request) -> Reply:
        known = request_id(request)
        reply = self._cassette.replies.get(known)
        if reply is None:
            said = (
                request.prompt
                if request.prompt is not None
                else request.messages[-1].content
                if request.messages
                else ""
            )
            raise ModelError(
                ModelErrorKind.BAD_REQUEST,
                f"{self._path} holds no answer to request {known[:12]} ({said[-60:]!r}, seed {request.seed}); "
                f"record it with record:{self._path}:{self._cassette.model['name']}",
            )
        return reply


class RecordingModel:
    """Another model, with everything it says kept on a cassette. An existing cassette of the same model is continued."""

    def __init__(self, model: Model, path: Path) -> None:
        self._model = model
        self._path = path
        self._known: set[str] = set()
        self._file: int | None = None

    @property
    def name(self) -> str:
        return f"record:{self._path}:{self._model.name}"

    @property
    def family(self) -> str:
        return self._model.family

    @property
    def identity(self) -> Json:
        return self._model.identity

    @property
    def deterministic(self) -> bool:
        return self._model.deterministic

    @property
    def render(self) -> str:
        return self._model.render

    @property
    def endpoint(self) -> str:
        return self._model.endpoint

    @property
    def concurrency(self) -> int:
        return self._model.concurrency

    def bound(self, request: Request) -> tuple[int, float | None]:
        return self._model.bound(request)

    async def open(self) -> None:
        if self._file is None:
            self._file = self._open_file()
        await self._model.open()

    async def close(self) -> None:
        try:
            await self._model.close()
        finally:
            file, self._file = self._file, None
            if file is not None:
                os.close(file)

    async def complete(self, request: Request) -> Reply:
        if self._file is None:
            raise RuntimeError(f"{self.name} was asked before it was opened")
        reply = await self._model.complete(request)
        known = request_id(request)
        if known not in self._known:
            self._known.add(known)
            self._write(self._file, {"id": known, "request": _request_row(request), "reply": _reply_row(reply)})
        return reply

    def _open_file(self) -> int:
        described = redact_json(
            {
                "name": self._model.name,
                "family": self.family,
                "render": self.render,
                "identity": self.identity,
            }
        )
        fresh = not self._path.exists()
        if not fresh:
            cassette = load(self._path)
            if cassette.model != described:
                raise UsageError(f"{self._path} was recorded from {cassette.model['name']}; choose another file")
            self._known = set(cassette.replies)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            whole = max((offset for offset, _ in complete_lines(self._path)), default=0)
            os.ftruncate(file, whole)
        except OSError as error:
            raise storage_error(self._path, error) from error
        if fresh:
            self._write(file, {"format": FORMAT, "version": VERSION, "model": described})
        return file

    def _write(self, file: int, row: Json) -> None:
        append_line(file, json.dumps(redact_json(row), ensure_ascii=False, allow_nan=False).encode(), self._path)


def _header(path: Path, row: Json) -> Mapping[str, Json]:
    if not isinstance(row, Mapping) or row.get("format") != FORMAT:
        raise UsageError(f"{path} is no cassette: its first line is not a {FORMAT} header")
    if row.get("version") != VERSION:
        raise UsageError(
            f"{path} is a cassette of version {row.get('version')!r}; this program reads version {VERSION}"
        )
    model = row["model"]
    return {key: model[key] for key in ("name", "family", "render", "identity")}


def _request_row(request: Request) -> Json:
    names = ("messages", "prompt", "max_tokens", "temperature", "stop", "schema", "tools")
    return {**dict(zip(names, request.key_fields(), strict=True)), "seed": request.seed}


def _reply_row(reply: Reply) -> Json:
    return {
        "text": reply.text,
        "finish": reply.finish,
        "usage": reply.usage.row(),
        "tool_calls": [dict(call) for call in reply.tool_calls],
    }


def _reply(row: Mapping[str, Json]) -> Reply:
    return Reply(row["text"], Usage(*row["usage"]), row["finish"], tool_calls=tuple(row["tool_calls"]))
