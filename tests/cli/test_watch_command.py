"""sharpen watch: the story of a job that runs, ran, or died, told from its events alone."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from sharpen.bench.layout import find_run, locked
from sharpen.cli.watch import OnTerminal, Tail, Watch
from sharpen.core.errors import StorageError
from sharpen.core.usage import Usage
from sharpen.report.watching import Position, Telling

Program = Callable[..., Any]
PROGRAM = [sys.executable, "-c", "from sharpen.cli import main; main()"]
SLOW = ["train", "codebook", "--model", "scripted/rules?latency=0.02", "--optimizer", "scripted/rules", "--steps", "2",
        "--limit", "30", "--workers", "4", "-q"]  # fmt: skip


def story() -> Path:
    return find_run("latest", Path("runs")).jobs()[0] / "events.jsonl"


def lines() -> list[str]:
    return story().read_text().splitlines(keepends=True)


def test_a_finished_job_is_told_from_beginning_to_end(trained: Program) -> None:
    ran = trained("watch")
    assert (ran.code, ran.err) == (0, "")
    told = [
        ran.out.find(words) for words in ("codebook (40", "step 1/3", "+ - kind-", "step 3/3", "test before", "\ndone:")
    ]
    assert -1 not in told
    assert told == sorted(told)
    results = json.loads((story().parent / "results.json").read_text())
    assert f"{results['usage']['total']['calls']:,} calls" in ran.out
    assert ran.out.count("accepted; best on val") == sum(step["action"] == "accept" for step in results["steps"])
    assert "append" not in ran.out, "every change is shown as a difference"
    assert trained("watch", str(story().parent), "--no-follow").out == ran.out


def test_no_event_of_a_training_is_left_to_its_name(program: Program) -> None:
    params = ("trainer.params.skill_aware=true", "trainer.params.update_mode=rewrite_from_suggestions")
    model = (
        "--model",
        "scripted/rules?noise=0.1",
        "--optimizer",
        "scripted/rules",
        "--steps",
        "3",
        "--limit",
        "30",
        "-q",
    )
    assert program("train", "codebook", *params, *model).code == 0
    ran = program("watch")
    kinds = {json.loads(line)["type"] for line in lines()}
    assert {"planned", "reflected", "notes_kept", "slow_updated", "epoch_done"} <= kinds
    assert [kind for kind in kinds if f"\n  {kind.replace('_', ' ')}:" in ran.out] == []
    assert "rewritten:" in ran.out
    assert "+ <!-- SLOW_UPDATE_START -->" in ran.out


def test_a_job_that_died_in_the_middle_of_a_line_is_told_as_far_as_it_came(trained: Program) -> None:
    kept = lines()
    end = next(n for n, line in enumerate(kept) if '"step_done"' in line)
    story().write_text("".join(kept[: end + 1]) + kept[end + 1][:40])
    ran = trained("watch")
    assert ran.code == 0
    assert "step 1/3" in ran.out
    assert "step 2/3" not in ran.out
    assert "process is not running" in ran.out
    assert "carry on with: sharpen resume runs/" in ran.out
    (story().parent / "process.json").write_text('{"state": "failed", "reason": "RuntimeError: no luck today"}')
    assert "not at its end: RuntimeError: no luck today" in trained("watch").out


def test_without_following_a_running_job_is_told_so_far(trained: Program) -> None:
    kept = lines()
    end = next(n for n, line in enumerate(kept) if '"step_done"' in line and '"step":2' in line)
    story().write_text("".join(kept[: end + 1]))
    with locked(story().parent):
        ran = trained("watch", "latest", "--no-follow")
    assert ran.code == 0
    assert "the job is running: step 3/3 rollout" in ran.out
    assert "left · last event" in ran.out
    assert "not known yet" not in ran.out, "after two steps there is something to go by"


def test_a_live_job_is_followed_to_its_end(tmp_path: Path) -> None:
    job = subprocess.Popen([*PROGRAM, *SLOW], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not list(tmp_path.glob("runs/*/meta/config.snapshot.yaml")):
        time.sleep(0.02)
    watch = subprocess.run([*PROGRAM, "watch"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert job.wait(timeout=60) == 0
    assert (watch.returncode, watch.stderr) == (0, "")
    again = subprocess.run([*PROGRAM, "watch", "--no-follow"], cwd=tmp_path, capture_output=True, text=True)
    assert watch.stdout == again.stdout
    assert "\ndone: " in watch.stdout


def test_ctrl_c_ends_the_watching_alone(trained: Program, tmp_path: Path) -> None:
    kept = lines()
    story().write_text("".join(kept[:5]))
    with locked(story().parent):
        watch = subprocess.Popen([*PROGRAM, "watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watch.stdout is not None
        assert "codebook" in watch.stdout.readline()
        time.sleep(0.3)
        assert watch.poll() is None
        os.kill(watch.pid, signal.SIGINT)
        _, err = watch.communicate(timeout=60)
    assert (watch.returncode, "not touched" in err, "Traceback" in err) == (130, True, False)


def test_changes_are_listed_as_edits_where_texts_are_gone(trained: Program) -> None:
    shutil.rmtree(story().parent / "checkpoints")
    ran = trained("watch")
    assert ran.code == 0
    assert "    append\n    + - kind-" in ran.out


def test_the_return_in_training_stands_with_the_step_it_led_to() -> None:
    telling = Telling(lambda path: None)
    metrics = {"eval_return_mean": 40.0}
    judged = {"type": "policy_evaluated", "episodes": 5, "metrics": metrics, "normalised": None, "best": False}
    story: list[dict[str, Any]] = []
    for step, trained in ((0, {}), (100, {"train_return_mean": 19.25})):
        story += [{"type": "advanced", "step": step, "metrics": trained}]
        story += [{"type": "stage_done", "step": step, "stage": "train"}, {**judged, "step": step}]
    told = [words.plain.strip() for line in story if (words := telling.tell(line)) is not None]
    assert [words.partition(" · ")[0] for words in told] == [
        "5 episodes on val: mean return 40.000",
        "step 100  mean return in training 19.250",
        "5 episodes on val: mean return 40.000",
    ]


def test_events_nobody_knows_are_shown_by_name() -> None:
    telling = Telling(lambda path: None)
    told = [
        telling.tell({"n": 0, "type": "slow_update", "step": 3, "kept": True, "text": "x" * 900, "clock": {"at": 1.0}}),
        telling.tell({"n": 1, "type": "decided", "step": 3, "surprise": "\x1b[2J"}),
        telling.tell({"n": 2}),
        telling.tell({"type": "measured", "groups": 7, "clock": None}),
    ]
    assert [said.plain.strip() for said in told if said is not None] == [
        "slow update: step 3, kept True", "decided: step 3, surprise �[2J", "None", "measured: groups 7",
    ]  # fmt: skip


def test_no_runs_and_wrong_names_are_said_in_words(program: Program) -> None:
    ran = program("watch")
    assert (ran.code, "there are no runs in runs" in ran.err) == (2, True)
    assert program("watch", "nonsense", "--no-follow").code == 2


def test_a_run_that_has_not_begun(trained: Program) -> None:
    story().unlink()
    assert "nothing has happened yet" in trained("watch", "--no-follow").out


def test_a_tail_waits_for_whole_lines_and_notices_an_ending_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n{"a"')
    tail = Tail(path)
    assert tail.read() == (0, [{"a": 1}, {"a": 2}])
    assert tail.read() == (2, [])
    path.write_bytes(b'{"a":1}\n{"a":2}\n{"a":3}\n')
    assert tail.read() == (2, [{"a": 3}])
    path.write_bytes(b'{"a":1}\n{"b":4,"longer":"than before"}\n{"a":5}\n{"a":6}\n')
    assert tail.read() == (1, [{"b": 4, "longer": "than before"}, {"a": 5}, {"a": 6}])
    path.write_bytes(b"")
    assert tail.read() == (0, [])
    path.unlink()
    with pytest.raises(StorageError, match="cannot read"):
        tail.read()


class Heard:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, said: Text) -> None:
        self.said.append(said.plain)

    def update(self, now: Position, status: list[str]) -> None: ...
    def close(self) -> None: ...


def test_a_job_that_is_resumed_while_it_is_watched_goes_on(trained: Program) -> None:
    kept, heard = lines(), Heard()
    failed = json.dumps(
        {"n": 9, "type": "job_ended", "status": "failed", "message": "no route", "usage": {}, "clock": {}}
    )
    story().write_text("".join(kept[:-1]) + failed + "\n")
    watch = Watch(story().parent, heard, None)
    watch.follow(wait=False)
    assert ("failed: no route" in heard.said[-1], watch.telling.position.ended) == (True, "failed")
    before = watch.telling.position.used
    story().write_text("".join(kept))
    heard.said.clear()
    watch.follow(wait=False)
    assert ["resumed" in heard.said[0], "done:" in heard.said[1], len(heard.said)] == [True, True, 2]
    assert (watch.telling.position.ended, watch.telling.position.used) == ("done", before)


def test_on_a_terminal_a_status_stands_below_the_story() -> None:
    out = io.StringIO()
    display = OnTerminal(Console(file=out, width=100, force_terminal=True, color_system=None))
    now = Position(step=2, steps=5, stage="gate", used=Usage(412, 60_000, 0, 1_204, 0.0))
    status = ["step 2/5 gate", "best on val 0.500", "412 calls", "1:01 so far, about 1:35 left", "last event 3 s ago"]
    display.update(now, status)
    display.say(Text("\n  a line " + "that is long " * 10))
    display.close()
    shown = out.getvalue()
    assert all(phrase in shown for phrase in status)
    assert "\n  that is long" in shown, "wrapped at its indentation"
