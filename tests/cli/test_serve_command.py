"""`sharpen serve`, as a process of its own that the program then trains with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]
PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
KEY = "serve-key-0123456789"


@contextmanager
def serving(*arguments: str, stop: int = signal.SIGTERM, **environment: str) -> Iterator[Any]:
    """What the server says of itself. It must end well when it is told to stop."""
    process = subprocess.Popen(
        [*PROGRAM, "serve", *arguments, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        text=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.send_signal(stop)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


def story(runs: str) -> list[Any]:
    """What was measured, proposed, decided and scored, without what is the model's own: its identity and its price."""
    (path,) = Path(runs).glob("*/jobs/*/events.jsonl")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    apart = ("clock", "job_id", "models", "usage")
    return [{key: value for key, value in event.items() if key not in apart} for event in events]


@pytest.mark.parametrize("model", ["scripted/rules", "scripted/rules?noise=0.2&seed=4"])
def test_training_through_a_server_is_training_with_the_model(program: Program, model: str) -> None:
    rest = ("--steps", "2", "--limit", "24", "-q", "--runs")
    assert program("train", "codebook", "--model", model, "--optimizer", model, *rest, "inside").code == 0
    with serving(model, stop=signal.SIGINT) as server:
        assert server["model"] == model and server["name"].startswith(f"{server['url']}#rules")
        served = ("--model", server["name"], "--optimizer", server["name"])
        ran = program("train", "codebook", *served, *rest, "outside")
    assert ran.code == 0, ran.err
    assert story("inside") == story("outside")
    assert len(story("inside")) > 10


def test_other_machines_are_let_in_with_a_key_only(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARPEN_SERVE_KEY", raising=False)
    refused = program("serve", "scripted/echo", "--host", "0.0.0.0")
    assert refused.code == 2 and "give --api-key" in refused.err
    unset = program("serve", "scripted/echo", "--host", "0.0.0.0", "--api-key")
    assert unset.code == 2 and "needs SHARPEN_SERVE_KEY to be set" in unset.err
    with serving("scripted/echo", "--host", "0.0.0.0", "--api-key", SHARPEN_SERVE_KEY=KEY) as server:
        assert server["url"].startswith("http://127.0.0.1:")
        ask = ("eval", "initial", "--task", "codebook", "--model", server["name"], "--limit", "3", "--json")
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.setenv("SHARPEN_API_KEY", "not-the-right-key")
        wrong = program(*ask)
        assert wrong.code == 1 and "401" in wrong.json["error"] and KEY not in wrong.out
        monkeypatch.setenv("SHARPEN_API_KEY", KEY)
        right = program(*ask)
        assert right.code == 0, right.err


def test_what_cannot_be_served_is_said_in_one_message(program: Program) -> None:
    for name, words in (
        ("scripted/nope", "no script 'nope'"),
        ("nonsense", "is not a model name"),
        ("replay/none.jsonl", "no such cassette"),
    ):
        ran = program("serve", name, "--port", "0")
        assert ran.code == 2 and words in ran.err and "Traceback" not in ran.err
