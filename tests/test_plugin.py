"""A package that adds one of everything works like what is built in; a broken one is named, and takes nothing else down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).parents[1] / "examples" / "sharpen-sample-plugin"
GROUPS = ("tasks", "trainers", "models", "gates", "proposers")

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages: the sample, and one whose modules cannot be imported."""
    folder = tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    # --no-index: everything needed is here, so that no package index is asked.
    only_this = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    done = subprocess.run([*pip, *only_this, str(SAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    broken = folder / "broken_thing-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-thing\nVersion: 1.0\n")
    entries = {"lost": "broken_thing.nowhere:Thing", "wrong": "broken_thing:NOTHING"}
    lines = [f"[sharpen.{group}]\n" + "".join(f"{n} = {v}\n" for n, v in entries.items()) for group in GROUPS]
    lines.append("[sharpen.tasks]\nfails = broken_thing:fails\n")
    (broken / "entry_points.txt").write_text("\n".join(lines))
    (folder / "broken_thing.py").write_text("NOTHING = None\n\ndef fails():\n    return 1 / 0\n")
    return folder


@pytest.fixture
def program(packages: Path, tmp_path: Path) -> Program:
    """`program("list")` is `sharpen list` where the packages are installed."""
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from sharpen.cli import main; main()", *arguments]
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    return call


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_list_shows_what_packages_add_and_what_is_broken(program: Program) -> None:
    listed = answer(program("list", "--json"))
    rows = {kind: {row["name"]: row for row in listed[kind]} for kind in GROUPS}
    for kind, name in zip(GROUPS, ("topics", "climber", "nearest/...", "margin", "one-per-type"), strict=True):
        assert rows[kind][name]["description"] and not rows[kind][name]["missing"]
        ending = "/..." if kind == "models" else ""
        assert "package broken-thing" in rows[kind][f"lost{ending}"]["missing"]
        assert rows[kind][f"wrong{ending}"]["missing"]
    assert "package broken-thing (broken_thing:fails)" in rows["tasks"]["fails"]["missing"]
    assert [setting["name"] for setting in rows["trainers"]["climber"]["settings"]] == ["rounds"]


def test_task_model_gate_and_proposer_of_a_package_train_a_skill(program: Program, tmp_path: Path) -> None:
    settings = ["trainer.params.proposers=[one-per-type]", "trainer.params.gate_params.margin=0.1"]
    done = program(
        "train", "topics", *settings, "--model", "nearest/words", "--gate", "margin", "--steps", "2", "--json"
    )
    results = answer(done)
    assert results["test"]["initial"]["mean"] == 0.0
    assert results["test"]["best"]["mean"] > 0.25
    story = (tmp_path / results["job"] / "events.jsonl").read_text(encoding="utf-8")
    assert "0.1 is needed" in story and '"one-per-type"' in story


def test_a_trainer_of_a_package_is_resumed_and_verified_like_a_built_in_one(program: Program) -> None:
    results = answer(program("train", "topics", "trainer=climber", "--model", "nearest/words", "--json"))
    assert results["test"]["best"]["mean"] > 0.25
    done = program("resume", "latest", "--verify")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "lost", "--model", "scripted/rules"),
        ("train", "codebook", "--model", "lost/x"),
        ("train", "codebook", "--model", "scripted/rules", "--gate", "lost"),
        ("train", "codebook", "--model", "scripted/rules", "trainer=lost"),
        ("train", "codebook", "--model", "scripted/rules", "trainer.params.proposers=[lost]"),
    ],
    ids=("task", "model", "gate", "trainer", "proposer"),
)
def test_a_broken_package_is_named_where_it_is_asked_for(program: Program, arguments: tuple[str, ...]) -> None:
    done = program(*arguments, "-q")
    assert done.returncode == 2
    assert "package broken-thing (broken_thing.nowhere:Thing) cannot be loaded: ModuleNotFoundError" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_sample_holds_to_the_contracts(packages: Path) -> None:
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    # Killing and resuming is tried with the built-in trainer, at length.
    chosen = [str(SAMPLE / "tests"), "-q", "-k", "not kill", "-p", "no:cacheprovider", "--rootdir", str(SAMPLE)]
    command = [sys.executable, "-m", "pytest", *chosen]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, cwd=packages, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
