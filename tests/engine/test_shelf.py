"""Which checkpoint is the best, which stay, and what a kill in the middle of a save leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from math import nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.benchmark import Benchmark
from sharpen.core.candidate import Candidate
from sharpen.engine import checkpoints
from sharpen.engine.shelf import Entry, Retention, Shelf, better, kept
from sharpen.files import sweep, write_folder

VALUES = st.lists(st.one_of(st.none(), st.just(nan), st.integers(-3, 3).map(float)), min_size=1, max_size=12)


def policy(tmp: Path, number: int, *, replay: bool = False) -> Candidate:
    tmp.mkdir(parents=True, exist_ok=True)
    files = {"policy.pt": tmp / f"{number}.pt", "state.pt": tmp / f"{number}.state"}
    if replay:
        files["replay.pt"] = tmp / f"{number}.replay"
    for name, path in files.items():
        path.write_bytes(f"{name} {number}".encode())
    return Candidate({"policy.json": json.dumps({"weights": number})}, files)


def run(shelf: Shelf, tmp: Path, values: list[float | None]) -> None:
    for number, value in enumerate(values):
        grown = shelf.grown(policy(tmp, number, replay=True), 100 * number, {})
        shelf.judged(grown, 100 * number, {"eval_return_mean": value}, "eval_return_mean")
        shelf.settle()


@given(VALUES, st.sampled_from(["max", "min"]))
def test_the_best_is_the_earliest_of_the_best_numbers_and_never_anything_else(values, mode) -> None:
    shelf = Shelf(Path("nowhere"), Benchmark(best_metric_mode=mode))
    for step, value in enumerate(values):
        shelf.judged(Candidate(str(step)), step, {"m": value}, "m")
    numbers = [value for value in values if value is not None and value == value]
    if not numbers:
        assert shelf.best is None
    else:
        wanted = max(numbers) if mode == "max" else min(numbers)
        assert shelf.best is not None and shelf.best.step == values.index(wanted)


@given(VALUES, st.integers(0, 4), st.integers(0, 4))
def test_what_stays_is_bounded_and_holds_the_start_the_best_and_the_last(values, top, last) -> None:
    entries = [Entry(step, str(step), value if value == value else None) for step, value in enumerate(values)]
    best = None
    for entry in entries:
        if better(entry.value, None if best is None else entries[best].value, "max"):
            best = entry.step
    stay = kept(entries, best, "max", Retention(top, last))
    assert len(stay) <= 2 + top + last
    assert {0, *range(len(entries) - min(last, len(entries)), len(entries))} <= stay
    assert best is None or best in stay


def test_a_peak_in_the_middle_is_the_best_and_stays_when_the_rest_goes(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "job", Benchmark(0.0, 10.0, best_metric="eval_return_mean"), Retention(2, 1))
    run(shelf, tmp_path / "made", [1.0, 3.0, 9.0, None, 4.0, 2.0, 5.0])
    home = tmp_path / "job" / "checkpoints"
    index = json.loads((home / "metadata.json").read_text())
    assert (index["best"]["step"], index["best"]["value"], index["best"]["normalised"]) == (200, 9.0, 0.9)
    assert (home / "best" / "policy.pt").read_bytes() == b"policy.pt 2"
    assert (home / "best.pt").read_bytes() == b"policy.pt 2"
    there = sorted(path.name for path in home.glob("step_*"))
    assert there == ["step_00000000", "step_00000200", "step_00000600"]
    assert [row["path"] for row in index["kept"]] == there
    assert checkpoints.about(home / "best")["benchmark"]["human_score"] == 10.0


def test_what_only_going_on_needs_is_kept_with_the_newest_alone(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "job", retention=Retention(3, 2))
    run(shelf, tmp_path / "made", [1.0, 2.0, 3.0])
    assert [path.parent.name for path in sorted((tmp_path / "job").rglob("replay.pt"))] == ["step_00000200"]
    assert len([*(tmp_path / "job").rglob("state.pt")]) == 4, "three steps and the best"


def test_a_policy_is_found_again_with_its_files(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "job", retention=Retention(1, 1))
    run(shelf, tmp_path / "made", [5.0, 1.0, 1.0])
    assert shelf.newest() == 200
    leader = shelf.leader()
    assert leader is not None and leader.files["state.pt"].read_bytes() == b"state.pt 0"
    gone = Candidate({"policy.json": json.dumps({"weights": 1})})
    assert shelf.found(gone, 100).files == {}
    assert set(shelf.found(Candidate({"policy.json": json.dumps({"weights": 2})}), 200).files) == {
        "policy.pt", "state.pt", "replay.pt",
    }  # fmt: skip


def test_of_steps_with_the_same_weights_each_has_its_own_state(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "job")
    for step in (0, 100):
        again = policy(tmp_path / str(step), 7)
        again.files["state.pt"].write_bytes(f"at {step}".encode())
        shelf.grown(again, step, {})
    bare = Candidate({"policy.json": json.dumps({"weights": 7})})
    assert [shelf.found(bare, step).files["state.pt"].read_bytes() for step in (0, 100)] == [b"at 0", b"at 100"]


_WRITER = """
import sys
from pathlib import Path
from sharpen.files import write_folder
home = Path(sys.argv[1])
for number in range(10**9):
    write_folder(home, {"a": str(number) * 1000, "b/c": str(number) * 1000, "metadata.json": str(number)})
    if number == 3:
        print("going", flush=True)
"""


@pytest.mark.parametrize("delay", [0.003, 0.011, 0.019, 0.027, 0.041])
def test_killed_in_the_middle_of_a_save_the_old_or_the_new_is_there_whole(tmp_path: Path, delay: float) -> None:
    home = tmp_path / "best"
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(home)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"going\n"
        time.sleep(delay)
        os.kill(writer.pid, signal.SIGKILL)
    number = (home / "metadata.json").read_text()
    assert int(number) >= 3
    assert (home / "a").read_text() == (home / "b" / "c").read_text() == number * 1000
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_a_folder_is_replaced_where_two_folders_cannot_change_places_at_once(tmp_path: Path, monkeypatch) -> None:
    import ctypes

    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    write_folder(tmp_path / "x", {"a": "1", "b": "1"})
    write_folder(tmp_path / "x", {"a": "2"})
    assert {path.name: path.read_text() for path in (tmp_path / "x").iterdir()} == {"a": "2"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
