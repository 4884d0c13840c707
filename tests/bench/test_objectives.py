"""Several aims at once: what a job and a study say of them, from stories made up here and from real runs."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench import objectives
from sharpen.bench.config import load
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Session, build, prepare
from sharpen.bench.tables import rebuild
from sharpen.cli.app import run as sharpen
from sharpen.core.errors import UsageError

STATED: dict[str, Any] = {"right": ["max", 1.0, [0.0, 1.0]], "words": ["min", 1.0, [0.0, 10.0]]}


def measured(
    stage: str, candidate: str, items: Any, right: list[Any], words: list[Any], sample: int = 0
) -> dict[str, Any]:
    group = {"candidate": candidate, "sample": sample, "items": items, "hard": right, "failed": {}}
    return {"type": "measured", "stage": stage, "groups": [{**group, "measures": {"right": right, "words": words}}]}


def done(step: int, stage: str) -> dict[str, Any]:
    return {"type": "stage_done", "step": step, "stage": stage}


STORY = [
    {"type": "job_started", "candidate": "start"},
    {"type": "objectives_stated", "objectives": STATED, "val": ["a", "b", "c", "d"]},
    measured("rollout", "start", ["t1", "t2"], [1, 1], [9, 9]),
    done(1, "rollout"),
    measured("gate", "start", ["a", "b"], [0, 0], [2, 2]),
    measured("gate", "one", ["b", "a"], [1, 0], [4, 4]),
    done(1, "gate"),
    measured("gate", "one", "val", [0, 1, 1, None], [4, 4, 4, None]),
    measured("gate", "two", ["c", "d", "a"], [0, 0, 1], [8, 8, 8]),
    measured("gate", "lucky", ["c"], [1], [0]),
    measured("gate", "start", "val", [1, 0, 0, 0], [2, 2, 2, 2], sample=1),
    done(2, "gate"),
    measured("test", "start", "test", [0, 1], [2, 2]),
    measured("test", "one", "test", [1, 1], [4, 4]),
    {"type": "tested", "which": "initial", "candidate": "start"},
    {"type": "tested", "which": "best", "candidate": "one"},
    done(2, "test"),
]


def test_means_are_over_items_and_a_front_over_those_measured_on_enough() -> None:
    found = objectives.of_job(STORY)
    assert found is not None
    assert found["test"] == {"initial": {"right": 0.5, "words": 2.0}, "best": {"right": 1.0, "words": 4.0}}
    assert found["measured_on_val"] == 4
    assert found["compared"] == 3, "one item is no measure of the lucky one"
    assert found["front"] == [
        # Item a was 0 in the first sample and 1 in the second, b, c and d were 0.
        {"candidate": "start", "step": 0, "n": 4, "means": {"right": 0.125, "words": 2.0}},
        {"candidate": "one", "step": 1, "n": 3, "means": {"right": pytest.approx(2 / 3), "words": 4.0}},
    ]
    assert found["hypervolume"] == pytest.approx(0.125 * 0.8 + (2 / 3 - 0.125) * 0.6)


def test_a_story_may_break_off_anywhere_and_may_have_no_aims() -> None:
    for end in range(2, len(STORY)):
        assert objectives.of_job(STORY[:end]) is not None
    assert objectives.of_job([STORY[0]]) is None and objectives.of_job([]) is None


def test_without_a_range_there_is_a_front_but_no_hypervolume() -> None:
    stated = {**STATED, "words": ["min", 1.0, None]}
    found = objectives.front(stated, [{"means": {"right": 1.0, "words": 2.0}}])
    assert (found["compared"], found["hypervolume"]) == (1, None)


STUDY = """
tasks: [camel, numeric-param]
trainers: [{name: reflact, params: {epochs: 1}}, noop]
models: {target: local/smollm2-135m}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SHARPEN_WEIGHTS", str(folder / "no-weights"))
        assert sharpen(["run", "study.yaml"]) == 0
    return folder / "runs" / "study"


def test_a_study_has_a_column_for_each_aim_and_a_front_for_each_task(study: Path) -> None:
    with (study / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    by_arm = {(row["task_id"], row["arm"]): row for row in rows}
    camel, start = by_arm["camel", "reflact"], by_arm["camel", "noop"]
    assert float(camel["test_base_loss"]) < float(start["test_base_loss"]) == pytest.approx(6.65, abs=0.05)
    assert by_arm["numeric-param", "reflact"]["test_base_loss"] == ""
    told = json.loads((study / "pareto.json").read_text())
    assert list(told["tasks"]) == ["camel"]
    front = told["tasks"]["camel"]["front"]
    assert {row["candidate"] for row in front} and len({row["candidate"] for row in front}) == len(front)
    assert all(row["arm"] == "reflact" for row in front), "the start is far from both aims"


def test_the_front_can_be_made_anew_from_the_stories(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study, tmp_path / "copy")
    (tmp_path / "copy" / "pareto.json").unlink()
    rebuild(RunFolder(tmp_path / "copy"))
    assert (tmp_path / "copy" / "pareto.json").read_bytes() == (study / "pareto.json").read_bytes()


def test_status_shows_the_aims_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sharpen(["train", "camel", "--steps", "2", "-q"]) == 0
    assert sharpen(["status", "latest"]) == 0
    out = capfd.readouterr().out
    assert "base_loss" in out and "lower is better" in out and "Pareto front on val" in out
    assert sharpen(["resume", "latest", "--verify"]) == 0


def test_a_task_that_calls_no_model_opens_none() -> None:
    setup = build(load(None, {"task": {"name": "numeric-param"}, "models": {"judge": "openai/nothing"}})).setup
    assert setup.models == {} and setup.spec.models == {}
    both = build(load(None, {"task": {"name": "numeric-param"}, "models": {"optimizer": "scripted/rules"}})).setup
    assert list(both.models) == ["optimizer"]


def test_a_cap_on_seconds_ends_a_search_without_calls_with_a_test_score(tmp_path: Path) -> None:
    settings = {
        "task": {"name": "multi-param"},
        "trainer": {"name": "basic-search", "params": {"iterations": 100_000}},
        "budget": {"seconds": 1.0},
    }
    folder, parts = prepare(load(None, settings), tmp_path)
    assert asyncio.run(Session(parts, folder).run()) == "budget"
    found = json.loads((folder.jobs()[0] / "results.json").read_text())
    assert "the cap of 1 seconds is reached" in found["budget_ended"]
    assert found["test"]["best"]["mean"] > found["test"]["initial"]["mean"] + 0.1


def test_what_cannot_be_trained_is_refused_with_its_reason_and_can_be_evaluated() -> None:
    config = load(None, {"task": {"name": "non-trainable"}})
    with pytest.raises(UsageError, match="task 'non-trainable' can't be trained: its agent is fixed"):
        build(config)
    assert build(config, to_train=False).setup.task.name == "non-trainable"


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_study_of_what_cannot_be_trained_says_so_and_spends_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("tasks: [non-trainable, numeric-param]\ntrainers: [reflact, noop]\n")
    assert sharpen([command, "bad.yaml"]) == 2
    assert "task 'non-trainable' can't be trained: its agent is fixed" in capfd.readouterr().err
    assert not Path("runs").exists()
