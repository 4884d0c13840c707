"""Whatever is wrong with what a person gave: one clear message that says where, an exit code, and no traceback."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharpen.testing.http import FakeEndpoint

Program = Callable[..., Any]
SCRIPTED = ("--model", "scripted/rules", "--optimizer", "scripted/rules", "--gate", "strict")


def rows(count: int = 20) -> list[dict[str, Any]]:
    return [{"id": f"i{n}", "input": f"kind-{n % 4:02}: message {n}", "answer": f"word{n % 4}"} for n in range(count)]


def write(path: str, made: list[Any]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in made))
    return path


def complaint(program: Program, *arguments: str, code: int = 2) -> str:
    """What a command says when it refuses, after checking the form: once, on standard error, without a traceback."""
    ran = program(*arguments)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    (first,) = [line for line in ran.err.splitlines() if line.startswith("sharpen: ")]
    as_json = program(*arguments, "--json")
    assert as_json.code == code
    assert as_json.json["exit_code"] == code
    assert as_json.json["error"].splitlines()[0] == first.removeprefix("sharpen: ")
    return str(as_json.json["error"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train", "number-word"), ["unknown task 'number-word'", "did you mean 'number-words'"]),
        (("train", "codebook", "--model", "scriptd/rules"), ["unknown model 'scriptd/rules'", "'scripted'"]),
        (("train", "codebook", "--model", "rules"), ["'rules' is not a model name", "KIND/NAME"]),
        (("train", "codebook", "trainer=reflct"), ["unknown trainer 'reflct'", "did you mean 'reflact'"]),
        (("train", "codebook", *SCRIPTED, "--gate", "sequentail"), ["'sequentail'", "'sequential'"]),
        (("train", "codebook", *SCRIPTED, "trainer.params.proposers=[exmples]"), ["'exmples'", "'examples'"]),
        (("train", "codebook", "--metric", "f1"), ["codebook", "'metric'"]),
        (("train", "codebook", "trainer.params.batchsize=3"), ["'batchsize'", "did you mean 'batch_size'"]),
        (("train", "codebook", "trainer.params.batch_size=many"), ["batch_size", "integer", "'many'"]),
        (("train", "codebook", "--steps", "0"), ["max_steps", "0"]),
        (("train", "codebook", "modles.target=x/y"), ["unknown key 'modles'", "did you mean 'models'"]),
        (("train", "codebook", "seed"), ["'seed' is not an override", "key.key=value"]),
        (("train", "codebook", "--render", "sistem"), ["models.render", "'sistem'"]),
        (("train", "codebook", "--limit", "0"), ["task.limit", "0"]),
        (("train", "codebook", "--budget", "call=3"), ["unknown cap 'call'", "did you mean 'calls'"]),
        (("train", "codebook", "--budget", "calls=many"), ["calls must be a number", "'many'"]),
        (("train", "codebook", "--budget", "calls=1.5"), ["calls must be a whole number above 0", "'1.5'"]),
        (("train", "codebook", *SCRIPTED, "--budget", "calls=50"), ["calls=50", "closing measurement"]),
        (("train", "codebook", "--skill", "nowhere.md"), ["no skill or checkpoint at nowhere.md"]),
        (("train", "nowhere.jsonl"), ["no such file or folder: nowhere.jsonl"]),
        (("train", "nowhere.yaml"), ["no configuration file", "nowhere.yaml"]),
        (("eval", "nowhere.md", "--task", "codebook"), ["'nowhere.md' is no run, checkpoint or skill file"]),
        (("eval", "initial"), ["which task?", "--task"]),
        (
            ("eval", "initial", "--task", "codebook", "--model", "scripted/echo", "--split", "dev"),
            ["unknown split 'dev'"],
        ),
        (("eval", "initial", "--task", "codebook", "--model", "scripted/echo", "--repeats", "0"), ["repeats"]),
        (("resume", "nothing"), ["no run 'nothing'", "no runs in runs"]),
        (("status", "nothing"), ["no run 'nothing'"]),
        (("list", "taks"), ["'taks'", "tasks"]),
        (("trian",), ["no command 'trian'", "did you mean 'train'"]),
        (("train", "codebook", "--sed", "3"), ["--sed", "--seed"]),
        (("train", "codebook", "--seed", "x"), ["--seed", "'x'"]),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, tuple) else "",
)
def test_a_name_or_value_that_cannot_be_is_refused(
    program: Program, arguments: tuple[str, ...], expected: list[str]
) -> None:
    said = complaint(program, *arguments)
    for words in expected:
        assert words in said


def test_nothing_is_laid_out_for_a_run_that_cannot_be(program: Program) -> None:
    complaint(program, "train", "codebook", "--model", "nobody/knows")
    complaint(program, "eval", "initial", "--task", "codebook", "--model", "scripted/echo", "--split", "dev")
    assert not Path("runs").exists()


def test_an_unknown_metric_is_refused_with_the_nearest_one(program: Program) -> None:
    said = complaint(program, "train", write("d.jsonl", rows()), "--metric", "exact_mach")
    assert "unknown metric 'exact_mach'" in said
    assert "did you mean 'exact_match'" in said


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("task: {name: codebook, limt: 3}\n", ["c.yaml", "'task.limt'", "did you mean 'limit'"]),
        ("task: codebook\nsede: 1\n", ["c.yaml", "'sede'", "did you mean 'seed'"]),
        ("task: codebook\nseed: soon\n", ["c.yaml", "seed", "'soon'"]),
        ("seed: 1\n", ["c.yaml", "'task' is missing"]),
        ("- a\n- b\n", ["c.yaml", "list", "mapping"]),
        ("task: [\n", ["c.yaml", "line 2"]),
        ("_base_: other.yaml\n", ["other.yaml"]),
        ("_base_: c.yaml\n", ["c.yaml", "leads back to itself"]),
    ],
)
def test_a_broken_configuration_is_refused_with_file_and_key(
    program: Program, content: str, expected: list[str]
) -> None:
    Path("c.yaml").write_text(content)
    said = complaint(program, "train", "c.yaml")
    for words in expected:
        assert words in said


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([*rows(3), '{"input": "x", "answer": '], ["d.jsonl, line 4", "not JSON"]),
        ([*rows(3), {"input": "x"}], ["d.jsonl, line 4", "'answer'"]),
        ([*rows(3), {"question": "x", "answer": "y"}], ["d.jsonl, line 4", "'input'"]),
        ([*rows(3), ["x"]], ["d.jsonl, line 4", "expected an object"]),
        ([*rows(3), {**rows(1)[0], "input": "other"}], ["d.jsonl, line 4", "'i0'", "line 1"]),
        ([*rows(3), {**rows(1)[0], "id": "new"}], ["d.jsonl, line 4", "same content"]),
        ([{**row, "split": "dev"} for row in rows(9)], ["d.jsonl, line 1", "unknown split 'dev'"]),
        ([{**row, "split": "train"} for row in rows(9)], ["d.jsonl", "no items in val and test"]),
        (rows(2), ["leave", "empty"]),
        ([], ["d.jsonl", "empty"]),
    ],
)
def test_broken_data_is_refused_with_file_and_line(program: Program, made: list[Any], expected: list[str]) -> None:
    said = complaint(program, "train", write("d.jsonl", made), *SCRIPTED)
    for words in expected:
        assert words in said


def test_splits_that_overlap_are_refused(program: Program) -> None:
    for name in ("train", "val", "test"):
        write(f"d/{name}.jsonl", rows(5) if name != "test" else rows(8)[5:])
    said = complaint(program, "train", "d", *SCRIPTED)
    assert "'i0'" in said
    assert "train" in said
    assert "val" in said


def test_an_empty_split_is_refused(program: Program) -> None:
    for name in ("train", "val"):
        write(f"d/{name}.jsonl", [{**row, "id": f"{name}{row['id']}", "input": name + row["input"]} for row in rows(5)])
    Path("d/test.jsonl").write_text("")
    assert "test.jsonl" in complaint(program, "train", "d", *SCRIPTED)


def test_an_endpoint_that_nobody_answers_at(program: Program) -> None:
    said = complaint(program, "train", "codebook", "--model", "http://127.0.0.1:9/v1#m", "--limit", "5", code=1)
    assert "cannot reach http://127.0.0.1:9/v1" in said
    assert "sharpen resume" in said


def test_a_wrong_key_is_said_once_and_never_shown(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-of-mine-123")
    endpoint = FakeEndpoint(key="another")
    with endpoint.in_thread():
        ran = program("train", "codebook", "--model", f"{endpoint.url}#m", "--limit", "10")
    assert ran.code == 1
    assert "answered 401" in ran.err
    assert "check the API key" in ran.err
    assert "Traceback" not in ran.err
    for path in Path("runs").rglob("*"):
        assert not path.is_file() or b"secret-key-of-mine-123" not in path.read_bytes()
    assert "secret-key-of-mine-123" not in ran.err + ran.out


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB, where this machine lets us have one."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True)
    if done.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def sharpen(*arguments: str, cwd: Path, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    def lower() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-c", "from sharpen.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, preexec_fn=lower)


def carried_on_without_paying_again(run: Path, cwd: Path, undisturbed: Path) -> None:
    """Resume with room on the disk: it must end like an undisturbed run, and pay only for what was missing."""
    from sharpen.ledger.store import Ledger

    with Ledger(run / "ledger.db") as ledger:
        before = ledger.counts()["replies"]
    done = sharpen("resume", str(run), "-q", cwd=cwd)
    assert done.returncode == 0, done.stderr
    with Ledger(run / "ledger.db") as ledger, Ledger(undisturbed / "ledger.db") as other:
        assert before > 0
        assert ledger.counts() == other.counts()


def test_a_full_disk_loses_nothing_that_was_paid_for(tmp_path: Path, small_disk: Path) -> None:
    arguments = ("train", "codebook", *SCRIPTED, "--steps", "4", "-q")
    assert sharpen(*arguments, "--runs", "good", cwd=tmp_path).returncode == 0
    (small_disk / "ballast").write_bytes(b"x" * 1_200_000)
    done = sharpen(*arguments, "--runs", str(small_disk), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "full" in done.stderr
    assert "Traceback" not in done.stderr
    (small_disk / "ballast").unlink()
    (run,) = [path for path in small_disk.iterdir() if path.is_dir()]
    (undisturbed,) = (tmp_path / "good").iterdir()
    shutil.copytree(run, tmp_path / "moved")
    carried_on_without_paying_again(tmp_path / "moved", tmp_path, undisturbed)


def test_a_file_size_limit_is_met_like_a_full_disk(tmp_path: Path) -> None:
    arguments = ("train", "codebook", *SCRIPTED, "--steps", "4", "-q")
    assert sharpen(*arguments, "--runs", "good", cwd=tmp_path).returncode == 0
    done = sharpen(*arguments, "--runs", "bad", cwd=tmp_path, limit=3_000_000)
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr or "no room" in done.stderr
    assert "Traceback" not in done.stderr
    (run,), (undisturbed,) = (tmp_path / "bad").iterdir(), (tmp_path / "good").iterdir()
    carried_on_without_paying_again(run, tmp_path, undisturbed)


def test_what_is_found_out_before_the_first_call_leaves_no_folder_and_what_comes_later_a_run_to_resume(
    program: Program, tmp_path: Path
) -> None:
    good = [{"input": f"question {number}", "answer": "1"} for number in range(30)]
    for name, lines in {
        "no-column": [*good, {"input": "b"}],
        "empty": [*good, {"input": "b", "answer": ""}],
        "misread": [*good, {"input": "b", "answer": "1/2"}],
        "good": good,
    }.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "task.py").write_text("x = 1\n")
    for words in (
        ("no-column.jsonl",), ("empty.jsonl",), ("misread.jsonl", "--metric", "numeric"), ("task.py:Nope",),
        ("good.jsonl", "--skill", "none.md"), ("good.jsonl", "trainer.params.gate=none"),
    ):  # fmt: skip
        assert program("train", *words, "--model", "scripted/rules").code == 2
        assert not (tmp_path / "runs").exists(), words
    with FakeEndpoint(key="another").in_thread() as server:
        refused = program("train", "good.jsonl", "--model", f"{server.url}#m", "-q")
    assert refused.code == 1
    (run,) = (tmp_path / "runs").iterdir()
    assert f"resume runs/{run.name}" in refused.err
