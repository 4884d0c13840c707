"""What is promised of secrets, held against an endpoint that quotes every key it is given, in every way it knows.

The values of keys and passwords are looked for in everything that is left: all files, standard output, standard error.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from sharpen.core import redact
from sharpen.engine import checkpoints

KEY, PASSWORD, TAGGED, TOKEN = "Zq7plain-Value_9x+Key/42", "pg:Pass-word_77", "tagged-Word-5!", "t0k3nInThePath77aa"
ENVIRONMENT = {"SHARPEN_API_KEY": KEY, "MY_DB_PASSWORD": PASSWORD, "SHARPEN_TOKEN": TOKEN}


def _quotes(key: str) -> list[str]:
    """A key in every way that is promised to be recognised."""
    as_bytes = key.encode()
    basic = base64.b64encode(b"user:" + as_bytes).decode()
    return [
        key, json.dumps(key), repr(key), quote(key, safe=""), as_bytes.hex(), as_bytes.hex().upper(),
        base64.b64encode(as_bytes).decode(), base64.urlsafe_b64encode(as_bytes).decode(), f"Basic {basic}",
        f"Bearer {key}",
    ]  # fmt: skip


def _pieces(key: str) -> list[str]:
    return [key[:10], key[-10:], f"{key[:6]}****{key[-4:]}", base64.b64encode(key.encode()).decode()[:14]]


_REFUSED = ("q 2", "q 7", "q 9", "q 13", "q 16")
"""Questions that are refused: always the same, so that no measurement depends on the order of calls."""


class _Quoting(BaseHTTPRequestHandler):
    """Answers with the key it was given; where some items are asked it refuses, and quotes pieces of the key as well."""

    count = 0
    always = 0
    lock = threading.Lock()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        with self.lock:
            type(self).count += 1
            number = self.count
        given = self.headers["Authorization"].removeprefix("Bearer ")
        if self.always or asked.endswith(_REFUSED):
            ways = _quotes(given) + _pieces(given)
            twice = ways[number % len(ways)], ways[(number * 7 + 1) % len(ways)]
            message = f"the key {twice[0]} may not do this: {twice[1]} at {self.path}"
            self._send(self.always or 400, {"error": {"message": message}})
            return
        ways = _quotes(given)
        text = f"I was asked at {self.path} with {ways[number % len(ways)]}, \nor {ways[(number // 3) % len(ways)]}"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        self._send(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Callable[[int], str]]:
    """The address of an endpoint that quotes; where a status is given, it refuses everything with that one."""
    servers = []

    def start(always: int = 0) -> str:
        handler = type("Quoting", (_Quoting,), {"count": 0, "always": always})
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/${{SHARPEN_TOKEN}}/v1#m"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Sharpen = Callable[..., Done]


@pytest.fixture
def sharpen(program: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sharpen:
    """The program with an environment of its own, in this process, which forgets what it knew."""
    rows = "".join(json.dumps({"input": f"q {n}", "answer": "x"}) + "\n" for n in range(18))
    (tmp_path / "data.jsonl").write_text(rows)

    def call(*words: str, **environment: str) -> Done:
        monkeypatch.setattr(redact, "_known", set())
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            ran = program(*words)
        return Done(ran.code, ran.out, ran.err)

    return call


def _no_trace(folder: Path, *done: Done) -> None:
    """Nothing of a secret is anywhere, as it is or encoded, whole or in a piece."""
    left = {"output": "".join(one.stdout + one.stderr for one in done).encode()}
    left |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for secret in (KEY, PASSWORD, TAGGED, TOKEN):
        core = base64.b64encode(secret.encode()).decode().rstrip("=")[:-2]
        shifted = base64.b64encode(b"user:" + secret.encode()).decode()[8:-4]
        forms = [
            secret[:10],
            secret[-10:],
            secret.encode().hex()[:20],
            secret.encode().hex().upper()[:20],
            core[:14],
            shifted,
        ]
        for form in (*forms, quote(secret, safe="")):
            for name, content in left.items():
                assert form.encode() not in content, (form, name)


def test_a_key_that_an_endpoint_quotes_is_nowhere(
    sharpen: Sharpen, endpoint: Callable[..., str], tmp_path: Path
) -> None:
    model = endpoint()
    words = ("--model", model, "--optimizer", model, "--steps", "2", "max_failures=1.0", "--gate", "strict")
    done = [
        sharpen("train", "data.jsonl", *words, **ENVIRONMENT),
        sharpen("eval", "latest", "--json", **ENVIRONMENT),
        sharpen("eval", "latest", "--split", "train", **ENVIRONMENT),
        sharpen("export", "latest", **ENVIRONMENT),
        sharpen("export", "latest", "--as", "compat", "--to", "compat", **ENVIRONMENT),
        sharpen("report", "latest", "--html", **ENVIRONMENT),
        sharpen("status", "latest", "--json", **ENVIRONMENT),
        sharpen("watch", "latest", **ENVIRONMENT),
    ]
    assert [one.returncode for one in done] == [0] * len(done), [one.stderr for one in done]
    events = "".join(path.read_text() for path in tmp_path.glob("runs/**/events.jsonl"))
    assert "[redacted]" in events and "may not do this" in events, "the endpoint was never quoted: nothing was tried"
    _no_trace(tmp_path, *done)


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_that_ends_a_run_quotes_no_key(
    sharpen: Sharpen, endpoint: Callable[..., str], tmp_path: Path, status: int
) -> None:
    done = sharpen("train", "data.jsonl", "--model", endpoint(status), **ENVIRONMENT)
    assert done.returncode == 1 and "[redacted]" in done.stderr, done.stderr
    _no_trace(tmp_path, done)


@pytest.mark.slow
def test_a_study_with_secrets_in_its_settings_and_tags_keeps_none(
    sharpen: Sharpen, tmp_path: Path, endpoint: Callable[..., str]
) -> None:
    study = {
        "tasks": ["data.jsonl"], "trainers": ["noop"], "tags": [f"password={TAGGED}", "team=blue"], "max_failures": 1.0,
        "models": {"target": endpoint()},
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    done = [
        sharpen(*words, **ENVIRONMENT) for words in (("run", "study.yaml"), ("report", "study"), ("status", "study"))
    ]
    assert done[0].returncode == 0, done[0].stderr
    manifest = json.loads((tmp_path / "runs/study/meta/manifest.json").read_text())
    assert manifest["tags"] == ["password=[redacted]", "team=blue"]
    (tmp_path / "study.yaml").unlink()
    _no_trace(tmp_path, *done)


@pytest.mark.parametrize("key", ["reflact", "measured"])
def test_a_key_that_is_an_ordinary_word_does_no_harm(sharpen: Sharpen, endpoint: Callable[..., str], key: str) -> None:
    words = ("--model", endpoint(), "--steps", "1", "max_failures=1.0", "-q")
    trained = sharpen("train", "data.jsonl", *words, SHARPEN_API_KEY=key, SHARPEN_TOKEN=TOKEN)
    assert trained.returncode == 0, trained.stderr
    for again in (key, "another-Key-77"):
        verified = sharpen("resume", "latest", "--verify", SHARPEN_API_KEY=again, SHARPEN_TOKEN=TOKEN)
        assert verified.returncode == 0, verified.stderr


def test_data_that_looks_like_a_key_is_data(sharpen: Sharpen, tmp_path: Path) -> None:
    rows = [{"input": f"which key has user {n}?", "answer": f"sk-live-{n:04d}abcdefgh"} for n in range(30)]
    (tmp_path / "keys.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--model", "scripted/rules", "--trainer", "few-shot", "-q")
    trained = sharpen("train", "keys.jsonl", *words, **ENVIRONMENT)
    assert trained.returncode == 0, trained.stderr
    assert sharpen("resume", "latest", "--verify", **ENVIRONMENT).returncode == 0
    (run,) = (tmp_path / "runs").glob("keys-*")
    assert "sk-live-" in (run / "data" / "train.jsonl").read_text()
    for path in run.glob("jobs/*/checkpoints/*/metadata.json"):
        assert checkpoints.load(path.parent).digest == json.loads(path.read_text())["candidate"]


@pytest.mark.parametrize("place", ["item", "skill"])
def test_data_and_skills_with_the_value_of_a_key_are_refused(sharpen: Sharpen, tmp_path: Path, place: str) -> None:
    row = json.dumps({"input": f"what is {PASSWORD}?", "answer": "x"})
    (tmp_path / "leak.jsonl").write_text((tmp_path / "data.jsonl").read_text() + row + "\n")
    (tmp_path / "leak.md").write_text(f"Log in with {PASSWORD}.\n")
    words = ("leak.jsonl",) if place == "item" else ("data.jsonl", "--skill", "leak.md")
    done = sharpen("train", *words, "--model", "scripted/rules", **ENVIRONMENT)
    assert (done.returncode, "holds the value of a key or a password" in done.stderr) == (2, True), done.stderr
    assert PASSWORD not in done.stderr and not (tmp_path / "runs").exists()
