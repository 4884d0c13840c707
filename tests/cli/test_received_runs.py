"""A run that somebody sent: whatever is in its folder, no command runs, follows or writes through any of it unasked.

`Sender` makes a real finished run and then changes it as somebody with bad intentions would. A canary is a file that only
the sender's code could have written; a secret is a file outside of the folder that nothing may show.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

Program = Callable[..., Any]
Change = Callable[["Received"], None]

SECRET = "kept-outside-of-the-run"
_EVIL = """from pathlib import Path
Path({canary!r}).touch()


def metric(answer, item):
    return 1.0


class Task:
    pass
"""


@dataclass(frozen=True)
class Received:
    """The folder of a run that came from elsewhere, and what must stay as it is."""

    folder: Path
    canary: Path
    secret: Path

    @property
    def job(self) -> Path:
        return next((self.folder / "jobs").iterdir())

    def code(self, place: str = "evil.py") -> str:
        path = self.folder / place
        path.write_text(_EVIL.format(canary=str(self.canary)))
        return str(path)

    def set(self, *keys: str, value: Any) -> None:
        path = self.folder / "meta" / "config.snapshot.yaml"
        config = yaml.safe_load(path.read_text())
        block = config
        for key in keys[:-1]:
            block = block[key]
        block[keys[-1]] = value
        path.write_text(yaml.safe_dump(config))

    def without_data(self) -> None:
        shutil.rmtree(self.folder / "data")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs as they were made on the sender's machine: a data file, a metric of the sender's own, two steps."""
    from sharpen.cli.app import run
    from sharpen.tasks.codebook import Codebook

    home = tmp_path_factory.mktemp("sender")
    rows = [{"input": item.text, "answer": item.reference} for item in Codebook().splits().train[:60]]
    (home / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "score.py").write_text("def score(answer, item):\n    return answer == item.reference, 'no'\n")
    here = Path.cwd()
    os.chdir(home)
    try:
        models = ("--model", "scripted/rules", "--optimizer", "scripted/rules", "--gate", "strict")
        for name, seed in (("sent", "0"), ("other", "1")):
            words = ("train", "data.jsonl", "--metric", "score.py:score", *models, "--steps", "2", "--seed", seed, "-q")
            assert run(words) == 0
            next((home / "runs").glob("data-*")).rename(home / "runs" / name)
    finally:
        os.chdir(here)
    return home / "runs"


@pytest.fixture
def received(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Received:
    """The same run on another machine: nothing that its sender allowed is known here."""
    monkeypatch.setenv("SHARPEN_STATE", str(tmp_path / "state"))
    monkeypatch.syspath_prepend(str(tmp_path / "runs" / "sent"))
    folder = tmp_path / "runs" / "sent"
    shutil.copytree(finished, folder.parent)
    secret = tmp_path / "secret.md"
    secret.write_text(f"{SECRET}\n")
    return Received(folder, tmp_path / "canary", secret)


READING: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("status", "sent"),
    ("report", "sent"),
    ("report", "sent", "--rebuild"),
    ("report", "sent", "--plots", "plots", "--html"),
    ("compare", "runs/sent", "runs/other"),
    ("variance", "runs/sent", "runs/other"),
    ("power", "--pilot", "runs/sent", "--pilot", "runs/other", "--paired", "--effect", "0.1"),
    ("watch", "sent"),
    ("replay", "sent", "--gate", "strict"),
    ("explain", "sent"),
    ("export", "sent", "--to", "out/skill"),
    ("export", "sent", "--as", "prompt", "--to", "out/prompt"),
    ("export", "sent", "--as", "compat", "--to", "out/compat"),
    ("export", "sent", "--as", "python", "--to", "out/python"),
    ("validate", "study.yaml", "--reuse", "sent"),
    ("run", "study.yaml", "--reuse", "sent", "-q"),
)
ASKING: tuple[tuple[str, ...], ...] = (
    ("eval", "sent"),
    ("eval", "sent", "--against", "initial", "--split", "val"),
    ("resume", "sent"),
    ("resume", "sent", "--verify"),
    ("resume", "sent", "--budget", "calls=5000"),
    ("explain", "sent", "--fresh"),
    ("compare", "runs/sent", "runs/other", "--since", "HEAD"),
    ("play", "sent"),
)
_STUDY = "tasks: [codebook]\ntrainers: [noop]\nseeds: [0]\nmodels: {target: scripted/rules}\n"


def _metric_in_the_folder(sent: Received) -> None:
    sent.set("task", "metric", value=f"{sent.code()}:metric")


def _metric_beside_the_snapshot(sent: Received) -> None:
    sent.code("meta/evil.py")
    sent.set("task", "metric", value="evil.py:metric")


def _metric_of_a_module(sent: Received) -> None:
    sent.code("evil_module_of_a_metric.py")
    sent.set("task", "metric", value="evil_module_of_a_metric:metric")


def _task_in_the_folder(sent: Received) -> None:
    sent.without_data()
    sent.set("task", "metric", value=None)
    sent.set("task", "name", value=f"{sent.code()}:Task")


def _program_as_task(sent: Received) -> None:
    sent.without_data()
    sent.set("task", "metric", value=None)
    sent.set("task", "name", value="subprocess:Popen")
    sent.set("task", "params", value={"args": ["touch", str(sent.canary)]})


def _environment_of_a_module(sent: Received) -> None:
    sent.without_data()
    sent.set("task", "metric", value=None)
    sent.code("evil_module_of_a_game.py")
    sent.set("task", "name", value="evil_module_of_a_game:Game-v0")


def _inspect_task(sent: Received) -> None:
    sent.without_data()
    sent.set("task", "metric", value=None)
    sent.set("task", "name", value=f"inspect/{sent.code()}@Task")


def _trainer_in_the_folder(sent: Received) -> None:
    sent.set("trainer", "name", value=f"{sent.code()}:Task")


def _recording(sent: Received) -> None:
    sent.set("models", "target", value=f"record:{sent.canary}.jsonl:scripted/rules")


def _yaml_tag(sent: Received) -> None:
    path = sent.folder / "meta" / "config.snapshot.yaml"
    path.write_text(
        f"task: !!python/object/apply:pathlib.Path.touch [!!python/object/new:pathlib.Path ['{sent.canary}']]"
    )


def _job_configuration(sent: Received) -> None:
    """As in a study: the job's own configuration counts."""
    config = yaml.safe_load((sent.folder / "meta" / "config.snapshot.yaml").read_text())
    config["task"]["metric"] = f"{sent.code()}:metric"
    (sent.job / "config.yaml").write_text(yaml.safe_dump(config))


def _policy(sent: Received) -> None:
    """A policy whose environment is the sender's module, and whose weights are a pickle that acts."""
    sent.code("evil_module_of_a_policy.py")
    best = sent.job / "checkpoints" / "best"
    about = {"environment": "evil_module_of_a_policy:Game-v0", "algorithm": "ppo", "policy": "MlpPolicy"}
    about |= {"policy_kwargs": {}, "parameters": 1, "trained_parameters": 1, "weights": "0"}
    (best / "parts" / "policy.json").write_text(json.dumps(about))
    (best / "policy.pt").write_bytes(pickle.dumps(_Touch(sent.canary)))
    (best / "state.pt").write_bytes(pickle.dumps(_Touch(sent.canary)))
    metadata = json.loads((best / "metadata.json").read_text())
    metadata |= {"parts": ["policy.json"], "files": ["policy.pt", "state.pt"]}
    (best / "metadata.json").write_text(json.dumps(metadata))


class _Touch:
    """Unpickled, it leaves the canary."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def _trigger(sent: Received) -> None:
    """A ledger that would spoil what is written to it."""
    with sqlite3.connect(sent.folder / "ledger.db") as db:
        db.execute("CREATE TRIGGER spoil AFTER INSERT ON rollouts BEGIN DELETE FROM replies; END")
    db.close()


CODE: tuple[Change, ...] = (
    _metric_in_the_folder, _metric_beside_the_snapshot, _metric_of_a_module, _task_in_the_folder, _program_as_task,
    _environment_of_a_module, _inspect_task, _trainer_in_the_folder, _recording, _yaml_tag, _job_configuration, _policy,
    _trigger,
)  # fmt: skip


def _base(sent: Received) -> None:
    path = sent.folder / "meta" / "config.snapshot.yaml"
    path.write_text(f"_base_: {sent.secret}\n{path.read_text()}")


def _linked_events(sent: Received) -> None:
    (sent.job / "events.jsonl").unlink()
    (sent.job / "events.jsonl").symlink_to(sent.secret)


def _linked_folder(sent: Received) -> None:
    outside = sent.secret.parent / "outside"
    shutil.copytree(sent.job / "checkpoints", outside)
    shutil.rmtree(sent.job / "checkpoints")
    (sent.job / "checkpoints").symlink_to(outside)


def _linked_lock(sent: Received) -> None:
    (sent.job / "lock").unlink(missing_ok=True)
    (sent.job / "lock").symlink_to(sent.canary)


def _pipe(sent: Received) -> None:
    (sent.job / "results.json").unlink()
    os.mkfifo(sent.job / "results.json")


def _part_outside(sent: Received) -> None:
    for path in (sent.job / "checkpoints").glob("*/metadata.json"):
        parts = ["SKILL.md", f"{'../' * 7}{sent.secret.name}"]
        path.write_text(json.dumps(json.loads(path.read_text()) | {"parts": parts, "files": [str(sent.secret)]}))


def _checkpoint_outside(sent: Received) -> None:
    """Events that lead to a skill elsewhere."""
    path = sent.job / "events.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["type"] == "checkpointed":
            line["path"] = "../../../../secret.md"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _job_outside(sent: Received) -> None:
    path = sent.folder / "meta" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["jobs"] = {"../../../outside": next(iter(manifest["jobs"].values()))}
    path.write_text(json.dumps(manifest))


def _data_elsewhere(sent: Received) -> None:
    sent.without_data()
    sent.set("task", "metric", value=None)
    sent.set("task", "skill", value=str(sent.secret))
    sent.set("task", "data", value=str(sent.secret))
    sent.set("task", "name", value="codebook")


PLACES: tuple[Change, ...] = (
    _base, _linked_events, _linked_folder, _linked_lock, _pipe, _part_outside, _checkpoint_outside, _job_outside,
    _data_elsewhere,
)  # fmt: skip


def _hold(program: Program, sent: Received, command: tuple[str, ...]) -> Any:
    """Run a command on what was received, and look whether anything of it did something."""
    Path("study.yaml").write_text(_STUDY)
    before = sent.secret.read_bytes()
    ran = program(*command)
    assert not sent.canary.exists(), f"{command} ran the sender's code"
    assert not Path(f"{sent.canary}.jsonl").exists(), f"{command} wrote where the sender wanted"
    assert sent.secret.read_bytes() == before, f"{command} wrote through a link"
    shown = ran.out + ran.err + "".join(_text(path) for path in _written(sent))
    assert SECRET not in shown, f"{command} shows a file from outside of the folder"
    assert "Traceback" not in ran.err and ran.code in (0, 1, 2), (command, ran.code, ran.err)
    return ran


def _written(sent: Received) -> Iterator[Path]:
    for place in (sent.folder, Path("out"), Path("plots")):
        yield from (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_needs_no_code_and_loses_nothing_without_it(
    program: Program, received: Received, command: tuple[str, ...]
) -> None:
    _metric_in_the_folder(received)
    ran = _hold(program, received, command)
    assert ran.code == 0 or "a spread takes at least 2" in ran.err, ran.err
    if "compat" in command:
        rows = Path("out/compat/test_eval/results.jsonl").read_text().splitlines()
        assert all(json.loads(row)["task_description"] for row in rows)


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_what_needs_code_of_the_folder_is_refused_by_name(
    program: Program, received: Received, command: tuple[str, ...]
) -> None:
    _metric_in_the_folder(received)
    if "--since" in command:
        _trainer_in_the_folder(received)
    ran = _hold(program, received, command)
    assert ran.code == 2
    if command[0] != "play":
        assert str(received.folder / "evil.py") in ran.err and "--trust" in ran.err


@pytest.mark.parametrize("change", CODE, ids=lambda change: change.__name__.strip("_"))
@pytest.mark.parametrize(
    "command", [("report", "sent", "--html"), ("eval", "sent"), ("resume", "sent"), ("play", "sent")]
)
def test_no_way_into_a_run_leads_to_the_code_of_its_sender(
    program: Program, received: Received, change: Change, command: tuple[str, ...]
) -> None:
    change(received)
    _hold(program, received, command)


@pytest.mark.parametrize("change", PLACES, ids=lambda change: change.__name__.strip("_"))
def test_nothing_in_a_run_leads_out_of_its_folder(program: Program, received: Received, change: Change) -> None:
    change(received)
    for command in (("report", "sent", "--html"), ("export", "sent", "--to", "out")):
        _hold(program, received, command)


@pytest.mark.slow
@pytest.mark.parametrize("change", [*CODE, *PLACES], ids=lambda change: change.__name__.strip("_"))
def test_every_command_on_every_change(program: Program, received: Received, change: Change) -> None:
    change(received)
    for command in (*READING, *ASKING):
        shutil.rmtree("out", ignore_errors=True)
        shutil.rmtree("runs/study", ignore_errors=True)
        _hold(program, received, command)


def test_trust_is_asked_once_and_again_when_the_code_changes(program: Program, received: Received) -> None:
    code = Path(received.code("score.py"))
    code.write_text("def score(answer, item):\n    return answer == item.reference, 'no'\n")
    received.set("task", "metric", value=f"{code}:score")
    assert program("eval", "sent", "-q").code == 2
    assert program("eval", "sent", "-q", "--trust").code == 0
    assert program("eval", "sent", "-q").code == 0
    assert program("resume", "sent", "-q").code == 0, "of the same digest, for every command"
    code.write_text(f"{code.read_text()}\n")
    again = program("eval", "sent", "-q")
    assert (again.code, "score.py" in again.err) == (2, True)


def test_a_run_of_ones_own_is_not_asked_about_wherever_it_lies(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARPEN_STATE", str(tmp_path / "state"))
    Path("mine.py").write_text(
        "from sharpen.tasks.codebook import Codebook\n\nclass Mine(Codebook):\n    sizes = (20, 20, 20)\n"
    )
    Path("study.yaml").write_text(
        "tasks: [mine.py:Mine]\ntrainers: [noop]\nseeds: [0, 1]\nmodels: {target: scripted/rules}\n"
    )
    assert program("train", "mine.py:Mine", "--model", "scripted/rules", "--steps", "1", "-q").code == 0
    run = next(Path("runs").glob("mine-*"), None) or next(Path("runs").glob("*-reflact-*"))
    shutil.copytree(run, "elsewhere/copy")
    for command in (("eval", str(run)), ("eval", "elsewhere/copy"), ("resume", "elsewhere/copy")):
        ran = program(*command, "-q")
        assert ran.code == 0, ran.err
    ran = program("run", "study.yaml", "-q")
    assert ran.code == 0, ran.err
    shutil.move("runs/study", "elsewhere/study")
    ran = program("resume", "elsewhere/study", "-q")
    assert ran.code == 0, ran.err
    job = next(Path("elsewhere/study/jobs").iterdir())
    assert program("eval", str(job), "-q").code == 0
    monkeypatch.setenv("SHARPEN_STATE", str(tmp_path / "somebody-else"))
    refused = program("resume", "elsewhere/study", "-q")
    assert (refused.code, "mine.py" in refused.err) == (2, True)


def test_a_study_that_was_sent_is_refused_before_its_first_job(program: Program, received: Received) -> None:
    code = received.code()
    (received.folder / "meta" / "config.snapshot.yaml").write_text(
        f"tasks: ['{code}:Task']\ntrainers: [noop]\nseeds: [0]\nmodels: {{target: scripted/rules}}\n"
    )
    for command in (("resume", "sent"), ("report", "sent"), ("status", "sent")):
        _hold(program, received, command)
    assert _hold(program, received, ("resume", "sent")).code == 2


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "allowed"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_at_a_terminal_a_yes_is_enough(
    received: Received, monkeypatch: pytest.MonkeyPatch, answer: str, allowed: bool
) -> None:
    from sharpen.bench import trust
    from sharpen.bench.config import load
    from sharpen.bench.layout import RunFolder
    from sharpen.cli.trusting import allow

    _metric_in_the_folder(received)
    run = RunFolder(received.folder)
    uses = trust.uses(load(run.config), run)
    monkeypatch.setattr("sys.stdin", _Terminal(answer))
    monkeypatch.setattr("sys.stderr", screen := _Terminal())
    with contextlib.nullcontext() if allowed else pytest.raises(trust.NotTrusted):
        allow(received.folder, uses, trust=False)
    assert "evil.py" in screen.getvalue()
    assert trust.unknown(uses) == ([] if allowed else uses)
