"""`sharpen doctor` as people and programs meet it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.cli import doctor, train
from sharpen.models.scripted_rules import rules
from sharpen.testing.http import FakeEndpoint, answer_with

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


def test_the_advice_on_prices_leads_to_prices(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done as it says, it is not given again, although every answer is in the ledger from before, without a price."""
    monkeypatch.delenv("SHARPEN_PRICES", raising=False)
    with FakeEndpoint(answer_with(rules)).in_thread() as server:
        words = ("doctor", "codebook", "--limit", "30", "--model", f"{server.url}#m?temperature=0", "--json")
        first = program(*words).json
        before = next(finding for finding in first["findings"] if finding["check"] == "estimate")
        told = re.search(
            r"name the file in SHARPEN_PRICES: (models: \{'(.*)': \{input: 0.5, output: 1.5\}\})", before["advice"]
        )
        assert told is not None and told[2] == f"{server.url}#m"
        other = tmp_path / "other.yaml"
        other.write_text("models: {x: {input: 1, output: 1}}")
        monkeypatch.setenv("SHARPEN_PRICES", str(other))
        again = next(finding for finding in program(*words).json["findings"] if finding["check"] == "estimate")
        assert f"add to {other}: models: {{'{server.url}#m': " in again["advice"]
        prices = tmp_path / "prices.yaml"
        prices.write_text(told[1])
        monkeypatch.setenv("SHARPEN_PRICES", str(prices))
        second = program(*words).json
        after = next(finding for finding in second["findings"] if finding["check"] == "estimate")
        study = tmp_path / "s.yaml"
        study.write_text(
            f'tasks: [{{name: codebook, limit: 30}}]\nmodels: {{target: "{server.url}#m?temperature=0"}}\n'
        )
        foretold = program("validate", str(study), "--json").json
    assert second["paid_calls"] == 0
    assert (after["advice"], after["level"]) == ("", "ok")
    assert "dollars" in after["what"]
    assert foretold["estimate"]["most"]["money"] > 0


def test_answers_that_are_cut_off_are_counted_by_the_doctor_and_the_report(program: Program, tmp_path: Path) -> None:
    """The endpoint always says five words."""
    names = [hashlib.sha256(f"{number}".encode()).hexdigest() for number in range(60)]
    splits = ("train", "val", "test")
    rows = [{"input": name, "answer": "unknown", "split": splits[at % 3]} for at, name in enumerate(names)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with FakeEndpoint(answer_with(lambda request: "one two three four five"), cut=True).in_thread() as server:
        model = ("--model", f"{server.url}#m")
        for tokens in (2, 64):
            words = ("data.jsonl", *model, *(["task.max_tokens=2"] if tokens == 2 else []))
            findings = program("doctor", *words, "--json").json["findings"]
            length = next(finding for finding in findings if finding["check"] == "length")
            done = program("train", *words, "--trainer", "noop")
            assert f"answers up to {tokens} tokens" in done.err
            assert ("answers were cut off" in done.out) == (tokens == 2)
            assert (length["level"], bool(length["advice"])) == (("warn", True) if tokens == 2 else ("ok", False))
            assert f"answers were cut off after {tokens} tokens" in length["what"]


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
