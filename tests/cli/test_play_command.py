"""`sharpen play`: what a policy came to, on its benchmark's scale where it has one, and a film."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest import approx

pytest.importorskip("stable_baselines3")

from sharpen.core.benchmark import Benchmark
from sharpen.core.candidate import Candidate
from sharpen.engine import checkpoints
from sharpen.tasks.gym import about, making, policy

Program = Callable[..., Any]


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    made = making.from_settings("Pendulum-v1", max_steps=20)
    architecture = about.Architecture("Pendulum-v1", "ppo", "MlpPolicy", settings=made.settings())
    networks = policy.build(architecture, *making.spaces(made))
    kept = policy.keep(tmp_path, networks, architecture)
    benchmark = Benchmark(random_score=-100.0, human_score=0.0)
    return checkpoints.save(tmp_path / "job", kept, 5, {}, more={"benchmark": benchmark.row()})


def test_playing_tells_returns_on_both_scales_and_films(program: Program, checkpoint: str) -> None:
    folder = f"job/{checkpoint}"
    said = program("play", folder, "--episodes", "4", "--json").json
    assert said["environment"] == "Pendulum-v1" and len(said["episodes"]) == 4
    assert all(row["length"] == 20 and row["normalised"] == approx(1 + row["return"] / 100) for row in said["episodes"])
    shown = program("play", folder, "--episodes", "4", "--output", "first.gif")
    assert shown.code == 0 and "at most 20 steps" in shown.out
    assert f"mean return {said['mean']:g} (normalised {said['mean_normalised']:.3f})" in shown.out
    assert Path("first.gif").read_bytes().startswith(b"GIF89a")
    other = program("play", folder, "--episodes", "4", "--seed", "1", "--json").json
    assert [row["return"] for row in other["episodes"]] != [row["return"] for row in said["episodes"]]


def test_a_policy_is_scored_against_the_weights_its_training_began_with(program: Program) -> None:
    few = ("task.params.val_episodes=2", "task.params.test_episodes=2", "task.params.max_steps=60")
    short = ("trainer.params.preset=none", "trainer.params.total_steps=64", "trainer.params.n_steps=64")
    assert program("train", "CartPole-v1", "--trainer", "ppo", *few, *short, "-q").code == 0
    (job,) = Path("runs").glob("CartPole*/jobs/*")
    said = {row["which"]: row["score"] for row in _events(job) if row["type"] == "tested"}
    for what in ("latest", str(job / "checkpoints" / "best.pt")):
        scores = program("eval", what, "--against", "initial", "--json").json["scores"]
        assert scores["initial"]["mean"] == said["initial"][0]
    for refused in (("export", "latest"), ("export", "latest", "--as", "compat"), ("explain", "latest")):
        ran = program(*refused)
        assert ran.code == 2 and "trains a policy, and ex" in ran.err
    assert not Path("exported").exists()


def _events(job: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (job / "events.jsonl").read_text().splitlines()]


def test_a_policy_is_not_scored_as_a_text_nor_on_two_things_at_once(program: Program, checkpoint: str) -> None:
    folder = f"job/{checkpoint}"
    ran = program("eval", folder, "--task", "codebook", "--model", "scripted/rules")
    assert ran.code == 2 and "is a policy for Pendulum-v1, and task 'codebook' is about a text" in ran.err
    assert "not both" in program("eval", folder, "--episodes", "2", "--split", "val").err
    alone = Path("alone.pt")
    alone.write_bytes((Path(folder) / "policy.pt").read_bytes())
    for command in ("eval", "play"):
        assert "give the whole folder of one" in program(command, str(alone)).err
    assert not Path("runs").exists()


def test_what_cannot_play_is_refused(program: Program, checkpoint: str, tmp_path: Path) -> None:
    text = checkpoints.save(tmp_path / "job", Candidate("Be good."), 0, {}, name="text")
    assert "holds a text, not a policy" in program("play", f"job/{text}").err
    assert program("play", "nothing-here").code == 2
    assert "ends in .gif" in program("play", f"job/{checkpoint}", "--output", "a.mp4").err
    said = tmp_path / "job" / checkpoint / "parts" / "policy.json"
    said.write_text(said.read_text().replace('"weights":"', '"weights":"0'))
    ran = program("play", f"job/{checkpoint}")
    assert ran.code == 2 and "does not hold the weights" in ran.err
