"""The files of a run: where they are, who may write them, and what is derived from a job's story."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from sharpen.bench import artifacts, layout
from sharpen.bench.config import load
from sharpen.bench.runner import Session, build, prepare
from sharpen.core import redact
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.engine import checkpoints
from sharpen.engine.replay import read_events
from sharpen.testing.processes import end_of, in_child, start_child

SETTINGS = {
    "task": {"name": "codebook", "limit": 12},
    "models": {"target": "scripted/rules", "optimizer": "scripted/rules"},
    "trainer": {"params": {"epochs": 1, "batch_size": 6}},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder, parts = prepare(load(None, SETTINGS), tmp_path_factory.mktemp("runs"))
    session = Session(parts, folder)
    assert asyncio.run(session.run()) == "done"
    return session


def test_what_must_be_known_is_written_before_the_first_job(tmp_path: Path) -> None:
    folder, parts = prepare(load(None, SETTINGS), tmp_path)
    assert sorted(path.name for path in (folder.path / "meta").iterdir()) == [
        "config.snapshot.yaml",
        "env.json",
        "git.json",
        "manifest.json",
    ]
    assert load(folder.config) == load(None, SETTINGS)
    manifest = json.loads((folder.path / "meta" / "manifest.json").read_text())
    assert list(manifest["jobs"]) == [parts.setup.spec.job_id] and manifest["schema_version"] == 1
    assert folder.path.name.startswith("codebook-reflact-") and not folder.jobs()


def test_two_runs_in_the_same_second_get_folders_of_their_own(tmp_path: Path) -> None:
    assert len({layout.new_run(tmp_path, "x").path for _ in range(5)}) == 5


def test_a_run_is_found_by_path_by_name_and_as_the_latest(tmp_path: Path) -> None:
    older, _ = prepare(load(None, SETTINGS), tmp_path)
    newer, _ = prepare(load(None, SETTINGS), tmp_path)
    os.utime(older.config, (time.time() - 100,) * 2)
    assert layout.find_run(str(older.path), Path("elsewhere")).path == older.path
    assert layout.find_run(older.path.name, tmp_path).path == older.path
    assert layout.find_run("latest", tmp_path).path == newer.path


def test_a_run_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run 'x'; there are no runs in"):
        layout.find_run("x", tmp_path)
    folder, _ = prepare(load(None, SETTINGS), tmp_path)
    with pytest.raises(UsageError, match=f"no run 'x'; runs in .*: {folder.path.name}"):
        layout.find_run("x", tmp_path)


def test_the_job_id_depends_on_what_decides_the_result_and_on_nothing_else(tmp_path: Path) -> None:
    def job_id(**changes: object) -> str:
        return build(load(None, {**SETTINGS, **changes})).setup.spec.job_id

    base = job_id()
    assert len(base) == 12
    same = [job_id(workers=3), job_id(budget={"calls": 10**6}), job_id(max_failures=0.5), job_id(rollout_timeout=5)]
    assert set(same) == {base}
    others = [
        job_id(seed=1),
        job_id(task={"name": "codebook", "limit": 13}),
        job_id(task={"name": "codebook", "limit": 12, "split_seed": 1}),
        job_id(trainer={"params": {"epochs": 2, "batch_size": 6}}),
        job_id(models={"target": "scripted/rules?noise=0.1", "optimizer": "scripted/rules"}),
        job_id(models={"target": "scripted/rules"}),
        job_id(models={"target": "scripted/rules", "optimizer": "scripted/rules", "temperature": 0.5}),
    ]
    assert len({base, *others}) == 8


def test_a_budget_that_leaves_nothing_for_training_is_refused_before_anything_is_paid() -> None:
    with pytest.raises(UsageError, match=r"budget\.calls=10 leaves nothing for training"):
        build(load(None, {**SETTINGS, "budget": {"calls": 10}}))


class TestLock:
    def test_a_second_process_is_turned_away(self, tmp_path: Path) -> None:
        ready, over = tmp_path / "ready", tmp_path / "over"

        def hold() -> None:
            with layout.locked(tmp_path / "job"):
                ready.touch()
                while not over.exists():
                    time.sleep(0.005)

        child = start_child(hold)
        try:
            while not ready.exists():
                time.sleep(0.005)
            assert layout.is_running(tmp_path / "job")
            with (
                pytest.raises(UsageError, match=r"the job in .*job is running in another process"),
                layout.locked(tmp_path / "job"),
            ):
                pass
        finally:
            over.touch()
        assert end_of(child) == 0
        assert not layout.is_running(tmp_path / "job")
        with layout.locked(tmp_path / "job"):
            pass

    def test_a_killed_process_holds_nothing(self, tmp_path: Path) -> None:
        def die() -> None:
            with layout.locked(tmp_path):
                os.kill(os.getpid(), 9)

        assert in_child(die) == -9
        assert not layout.is_running(tmp_path)

    def test_a_folder_without_a_job_is_not_running(self, tmp_path: Path) -> None:
        assert not layout.is_running(tmp_path / "nothing")


class TestResults:
    def test_they_are_a_pure_function_of_the_story(self, finished: Session) -> None:
        lines = read_events(finished.job_folder / "events.jsonl")
        written = json.loads((finished.job_folder / "results.json").read_text())
        assert json.loads(json.dumps(artifacts.results(lines))) == written
        (finished.job_folder / "results.json").unlink()
        artifacts.write(finished.job_folder)
        assert json.loads((finished.job_folder / "results.json").read_text()) == written

    def test_they_can_be_made_of_a_story_that_breaks_off_anywhere(self, finished: Session) -> None:
        lines = read_events(finished.job_folder / "events.jsonl")
        for end in range(1, len(lines)):
            found = artifacts.results(lines[:end])
            assert found["status"] == "unfinished"
        assert artifacts.results(lines)["status"] == "done"
        assert artifacts.results([])["status"] == "unfinished"

    def test_what_was_used_adds_up(self, finished: Session) -> None:
        lines = read_events(finished.job_folder / "events.jsonl")
        found = artifacts.results(lines)
        ended = lines[-1]
        assert found["usage"]["total"]["calls"] == sum(
            row[0] for part in ended["usage"].values() for row in part.values()
        )
        assert set(found["usage"]["stages"]) == set(ended["usage"])

    def test_the_best_checkpoint_is_the_candidate_the_results_name(self, finished: Session) -> None:
        found = artifacts.results(read_events(finished.job_folder / "events.jsonl"))
        best = checkpoints.load(finished.job_folder / found["best"]["path"])
        assert best.digest == found["best"]["candidate"] == found["test"]["best"]["candidate"]

    def test_no_path_in_them_is_absolute(self, finished: Session) -> None:
        for path in finished.folder.path.rglob("*.json*"):
            assert str(finished.folder.path) not in path.read_text()


class TestCheckpoints:
    @pytest.mark.parametrize("text", ["a\r\nb\rc\n", "", "ß\u2028\ufeff", "no newline"])
    def test_a_candidate_comes_back_exactly(self, tmp_path: Path, text: str) -> None:
        candidate = Candidate({"SKILL.md": text, "notes/deep/a.md": text})
        where = checkpoints.save(tmp_path, candidate, 1, {})
        assert checkpoints.load(tmp_path / where) == candidate

    def test_a_file_and_a_folder_of_texts_are_candidates_too(self, tmp_path: Path) -> None:
        (tmp_path / "texts" / "more").mkdir(parents=True)
        (tmp_path / "texts" / "SKILL.md").write_text("a")
        (tmp_path / "texts" / "more" / "b.md").write_text("b")
        (tmp_path / "texts" / ".hidden").write_text("c")
        assert checkpoints.load(tmp_path / "texts") == Candidate({"SKILL.md": "a", "more/b.md": "b"})
        assert checkpoints.load(tmp_path / "texts" / "SKILL.md") == Candidate("a")

    def test_what_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"no skill or checkpoint at .*nothing"):
            checkpoints.load(tmp_path / "nothing")
        with pytest.raises(UsageError, match="no text parts in"):
            checkpoints.load(tmp_path)
        (tmp_path / "picture.md").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(UsageError, match=r"picture\.md is not UTF-8 text"):
            checkpoints.load(tmp_path / "picture.md")

    @pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\\b", "", "."])
    def test_a_part_cannot_leave_its_folder(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError, match="must be a relative path"):
            checkpoints.save(tmp_path / "job", Candidate({name: "x"}), 1, {})
        assert not (tmp_path / "x").exists()


def test_no_secret_reaches_a_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2")
    settings = {**SETTINGS, "task": {"name": "codebook", "limit": 6, "skill": str(tmp_path / "s.md")}}
    (tmp_path / "s.md").write_text("Answer with the code word.\n")
    try:
        folder, parts = prepare(load(None, {**settings, "models": {"target": "scripted/rules"}}), tmp_path / "runs")
        folder.write_meta("note: hunter2-hunter2\n", {"a": {"api_key": "zzzzzz"}})
        asyncio.run(Session(parts, folder).run())
        for path in folder.path.rglob("*"):
            if path.is_file():
                assert b"hunter2-hunter2" not in path.read_bytes() and b"zzzzzz" not in path.read_bytes()
    finally:
        redact._known.discard("hunter2-hunter2")
