"""`sharpen doctor` as people and programs meet it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharpen.cli import doctor, train

Program = Callable[..., Any]

CODEBOOK = ("codebook", "--model", "scripted/rules")


def test_it_takes_every_option_that_train_takes() -> None:
    names = {parameter.name for parameter in train.command.params}
    assert names <= {parameter.name for parameter in doctor.command.params}


def test_a_sane_task_gets_a_go_and_a_line_per_check(program: Program) -> None:
    done = program("doctor", *CODEBOOK)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("go")] == ["go; look at: headroom"]
    for check in ("scorer", "overlap", "start", "judge", "balance", "headroom", "noise", "gain on val", "estimate"):
        assert any(line[:5].strip() in ("ok", "look", "stop") and line[6:].startswith(check) for line in lines), check
    assert max(map(len, lines)) <= 120


def test_what_stands_in_the_way_is_said_and_makes_exit_code_1(program: Program) -> None:
    done = program("doctor", *CODEBOOK, "--limit", "4", "-q")
    assert done.code == 1
    assert done.out.startswith("not yet: 1) give val more items")
    assert done.out.count("\n") == 1


def test_programs_get_one_object(program: Program) -> None:
    done = program("doctor", *CODEBOOK, "--items", "5", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["go"] is True
    assert done.json["paid_calls"] == 8
    assert {"check", "level", "what", "detail", "advice"} == set(done.json["findings"][0])


def test_a_training_stays_below_the_most_that_was_estimated(program: Program) -> None:
    models = ("--model", "scripted/rules?noise=0.1", "--optimizer", "scripted/rules", "--steps", "3")
    estimate = program("doctor", "codebook", *models, "--json").json["estimate"]
    used = program("train", "codebook", *models, "--json").json["usage"]["total"]["calls"]
    assert used <= estimate["most"]["calls"]
    assert used / 2.5 <= estimate["about"]["calls"] <= used * 2.5


def test_asking_for_the_impossible_is_exit_code_2(program: Program) -> None:
    assert program("doctor", "codebok", "--model", "scripted/rules").code == 2
    assert program("doctor", *CODEBOOK, "--items", "0").code == 2
    assert program("doctor", *CODEBOOK, "trainer.params.epocs=1").code == 2


def test_the_doctor_stays_within_the_caps(program: Program) -> None:
    done = program(
        "doctor", "codebook", "--model", "scripted/rules?noise=0.1", "--repeats", "50", "--budget", "calls=700"
    )
    assert done.code == 3
    assert "700 calls" in done.err
