"""A key is in no file of a run and never on the terminal, wherever it was put; and what needs it still gets it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.withheld import Withheld, restored
from sharpen.core import redact
from sharpen.core.errors import UsageError

Program = Callable[..., subprocess.CompletedProcess[str]]

TASK = """
import hashlib, json, os, sys
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message
from sharpen.core.item import Item
from sharpen.core.outcome import scored
from sharpen.core.task import Splits, Task

class Leaky(Task):
    name = "leaky"

    def __init__(self, api_key="", note="", loud=False, opts=None):
        self.api_key, self.note, self.loud, self.opts = api_key, note, loud, opts

    def splits(self):
        return Splits(*[tuple(Item(f"{s}-{n}", {"input": f"{s} {n}"}, "x") for n in range(4)) for s in "abc"])

    def seed(self):
        return Candidate("Say x.")

    async def rollout(self, item, candidate, attempt):
        every = f"{self.api_key} {self.note} {os.environ['MY_SERVICE_TOKEN']}"
        print("printed", every, flush=True)
        print(dict(os.environ), json.dumps(dict(os.environ)), self.opts, json.dumps(self.opts), flush=True)
        print(os.environ.get("MY_PRIVATE_KEY"), flush=True)
        print("on stderr", every, file=sys.stderr, flush=True)
        if self.loud:
            raise RuntimeError(f"cannot reach the service with {every}")
        fits = hashlib.sha256(every.encode()).hexdigest() == os.environ["FITS"]
        return scored(item.id, float(fits), answer=every, feedback=every, trajectory=(Message("user", every),))
"""
KEY, PASSWORD, QUERY, TOKEN = "PARAM-key-1234567890", "URL-pass-99887766", "QUERY-55443322", 'ENV-token-"quoted"-12'
NOTE = f"https://bob:{PASSWORD}@host/x?key={QUERY}"
UNNAMED = {
    "repo": "https://ghost-Token-1@host/x.git",
    "dsn": "postgres://bob:p@ssWord77@db/x",
    "one": "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "two": "AKIAIOSFODNN7EXAMPLE",
    "three": "https://h/?n=1&X-Amz-Signature=amzsig123456",
}
NAMED = {"accessToken": "camelTok-998", "passphrase": "phrase-abc", "pwd": "pwd-xyz", "db_password_2": "numbered-1"}
OPTS = ", ".join(f'{name}: "{value}"' for name, value in (UNNAMED | NAMED).items())
ENVIRONMENT = {
    "PGPASSWORD": "pg-word-1",
    "MYSQL_PWD": "my-word-2",
    "GITHUB_PAT": "pat-word-3",
    "OPENAI_API_KEY2": "api-key-4",
}
STUDY = f"""
tasks:
  - {{name: "leaky.py:Leaky", params: {{api_key: {KEY}, note: "{NOTE}", opts: {{{OPTS}}}}}}}
  - {{name: "leaky.py:Leaky", params: {{api_key: {KEY}, loud: true}}}}
trainers: [{{name: reflact, params: {{epochs: 1, max_steps: 2}}}}, noop]
models: {{target: scripted/rules, optimizer: scripted/rules}}
parallel: 2
"""
LINES = ("bGluZSBvbmUgb2YgYSBrZXk", "bGluZSB0d28gb2YgYSBrZXk")
PEM = "\n".join(("-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"))
SECRETS = (
    KEY, PASSWORD, QUERY, TOKEN, json.dumps(TOKEN)[1:-1], *NAMED.values(), *ENVIRONMENT.values(), *LINES,
    "ghost-Token", "ssWord77", "hf_abc", "AKIAIOS", "amzsig",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_known", set())


def shown(*done: subprocess.CompletedProcess[str]) -> str:
    return "".join(one.stdout + one.stderr for one in done)


def no_secret(folder: Path, said: str) -> None:
    for secret in SECRETS:
        assert secret not in said
        for path in folder.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_keys_of_a_study_reach_its_jobs_and_no_file(program: Program, tmp_path: Path, table: Any) -> None:
    (tmp_path / "leaky.py").write_text(TASK)
    (tmp_path / "s.yaml").write_text(STUDY)
    every = hashlib.sha256(f"{KEY} {NOTE} {TOKEN}".encode()).hexdigest()
    known = {"MY_SERVICE_TOKEN": TOKEN, "FITS": every, "SHARPEN_PROXY": f"http://me:{PASSWORD}@proxy/", **ENVIRONMENT}
    known["MY_PRIVATE_KEY"] = PEM
    runs = [
        program("validate", "s.yaml", **known),
        program("run", "s.yaml", **known),
        program("run", "s.yaml", **known),
    ]
    assert [one.returncode for one in runs] == [0, 1, 1], runs[1].stderr
    runs += [program("status", "s"), program("report", "s", "--rebuild")]
    found = table("s")
    assert [row["status"] for row in found] == ["ok", "ok", "failed", "failed"]
    assert found[0]["score_best"] == "1.0", "the task was not given its real settings"
    assert "cannot reach the service with [redacted]" in found[2]["feedback"]
    assert len({row["task_id"] for row in found}) == 2
    no_secret(tmp_path / "runs", shown(*runs))
    log = (tmp_path / f"runs/s/jobs/{found[0]['job_id']}/stdout.log").read_text()
    assert "printed [redacted]" in log
    gone = program("resume", "s", **known)
    assert gone.returncode == 2 and "tasks.0.params.api_key was a secret" in gone.stderr


def test_keys_of_a_training_are_in_no_file_and_not_on_the_terminal(program: Program, tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(TASK)
    known = {"MY_SERVICE_TOKEN": TOKEN, "FITS": ""}
    words = ("train", "leaky.py:Leaky", "--model", "scripted/rules", "--optimizer", "scripted/rules", "--steps", "1")
    good = program(*words, f"task.params.api_key={KEY}", **known)
    assert good.returncode == 0 and "printed [redacted]" in good.stdout, good.stderr
    loud = program(*words, f"task.params={{api_key: {KEY}, loud: true}}", **known)
    assert loud.returncode == 1 and "cannot reach the service with [redacted]" in loud.stderr
    no_secret(tmp_path / "runs", shown(good, loud))
    results = json.loads(next(tmp_path.glob("runs/*/jobs/*/results.json")).read_text())
    assert isinstance(results["usage"]["total"]["prompt_tokens"], int), "token counts are numbers, not secrets"


@pytest.mark.parametrize(
    "model", ["http://me:{}@127.0.0.1:9/v1#m", "http://127.0.0.1:9/v1?key={}#m", "http://127.0.0.1:9/v1#m?api_key={}"]
)
def test_a_key_in_the_address_of_a_model_is_refused_without_repeating_it(
    program: Program, tmp_path: Path, model: str
) -> None:
    (tmp_path / "s.yaml").write_text(f"tasks: [codebook]\nmodels: {{target: '{model.format(KEY)}'}}\n")
    done = [program("validate", "s.yaml"), program("run", "s.yaml")]
    assert {one.returncode for one in done} == {2} and "127.0.0.1" in shown(*done)
    assert not (tmp_path / "runs").exists()
    no_secret(tmp_path / "runs", shown(*done))


def test_settings_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = f"a:\n  api_key: {KEY}\n  list: [1, 'sk-abcdefgh12345', plain]\n  max_tokens: 5\nb: {NOTE}\n"
    hidden, withheld = Withheld(), []
    text = hidden.hide(settings)
    withheld = [secret for secret in (KEY, "abcdefgh12345", PASSWORD, QUERY) if secret in text]
    assert not withheld and "plain" in text and "max_tokens: 5" in text
    found = {"a": {"api_key": "[withheld 0]"}}
    with pytest.raises(UsageError, match=r"a\.api_key was a secret"):
        restored(found, "file")
    monkeypatch.setenv("SHARPEN_WITHHELD_SECRETS", json.dumps(hidden.values))
    assert restored(found, "file") == {"a": {"api_key": KEY}}


def test_a_known_secret_is_withheld_however_yaml_writes_it() -> None:
    redact.remember("it's a phrase-1")
    hidden = Withheld()
    assert "phrase" not in hidden.hide("note: 'it''s a\n  phrase-1'\n") and hidden.values == ["it's a phrase-1"]


def test_settings_without_a_secret_are_written_as_they_stand() -> None:
    settings, hidden = "budget: {tokens: 5}  # looks like one, and is none\n", Withheld()
    assert hidden.hide(settings) == settings and hidden.values == []
