"""train, demo and resume: what they print, what they leave, and how they end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]
SCRIPTED = ("--model", "scripted/rules", "--optimizer", "scripted/rules", "--gate", "strict")
SMALL = ("--steps", "3", "--limit", "40")


def only_run(root: Path = Path("runs")) -> Path:
    (found,) = [path for path in root.iterdir() if path.name != "eval"]
    return found


def job_of(run: Path) -> Path:
    (found,) = (run / "jobs").iterdir()
    return found


def story(job: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (job / "events.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "clock"} for line in lines]


def test_train_ends_with_everything_a_person_wants_to_know(program: Program) -> None:
    ran = program("train", "codebook", *SCRIPTED, *SMALL)
    assert ran.code == 0
    for expected in ("before", "after (best)", "95 % interval", "training never saw", "The trained skill", "- kind-",
                     "What each accepted edit brought", "rollouts", "3 steps:", "prompt tokens", "events.jsonl",
                     "sharpen resume", "sharpen eval"):  # fmt: skip
        assert expected in ran.out, expected
    assert "step 1: accepted" in ran.err


def test_every_command_that_the_report_recommends_works(program: Program) -> None:
    ran = program("train", "codebook", *SCRIPTED, *SMALL)
    recommended = ran.out[ran.out.index("What to try next") :].splitlines()[1:]
    assert len(recommended) >= 4
    for line in recommended:
        name, *arguments = line.partition("#")[0].split()
        assert name == "sharpen"
        assert program(*arguments).code == 0, line


def test_json_is_one_object_and_nothing_else(program: Program) -> None:
    ran = program("train", "codebook", *SCRIPTED, *SMALL, "--json")
    assert ran.code == 0
    assert ran.err == ""
    assert ran.json["status"] == "done"
    assert ran.json["gain"]["best"]["mean"] > 0
    assert Path(ran.json["job"], "events.jsonl").exists()


def test_quiet_is_one_line(program: Program) -> None:
    ran = program("train", "codebook", *SCRIPTED, *SMALL, "--quiet")
    assert (ran.err, ran.out.count("\n")) == ("", 1)
    assert ran.out.startswith("Better by")


def test_no_gain_is_said_plainly(program: Program) -> None:
    ran = program("train", "codebook", "--model", "scripted/echo", "--steps", "1", "--limit", "20")
    assert ran.code == 0
    assert "No gain" in ran.out


def test_steps_are_taken_exactly(program: Program) -> None:
    ran = program("train", "codebook", *SCRIPTED, "--limit", "20", "--steps", "5", "--json")
    assert [step["step"] for step in ran.json["steps"]] == [1, 2, 3, 4, 5]


def test_a_data_file_needs_no_code(program: Program, tmp_path: Path) -> None:
    rows = [{"input": f"kind-{n % 4:02}: message {n}", "answer": f"word{n % 4}"} for n in range(60)]
    Path("mail.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = program(
        "train", "mail.jsonl", "--metric", "exact_match", *SCRIPTED, "--ratio", "2:2:1", "--steps", "2", "--json"
    )
    assert ran.code == 0
    assert (ran.json["task"], ran.json["gain"]["best"]["n"]) == ("mail", 12)


def test_a_configuration_is_read_and_overridden(program: Program) -> None:
    Path("base.yaml").write_text("models: {target: scripted/rules}\nseed: 5\n")
    Path("mine.yaml").write_text(
        "_base_: base.yaml\ntask: {name: codebook, limit: 15}\ntrainer: {params: {max_steps: 1}}\n"
    )
    ran = program("train", "mine.yaml", "trainer.params.batch_size=5", "seed=6", "--json")
    assert ran.code == 0
    started = story(Path(ran.json["job"]))[0]
    assert (started["seed"], started["params"]["batch_size"], started["params"]["max_steps"]) == (6, 5, 1)


def test_the_demo_is_a_configuration_of_the_same_loop(program: Program) -> None:
    ran = program("demo", "--task", "codebook", "--model", "scripted/rules", "--seed", "2", "--json")
    assert ran.code == 0
    assert (ran.json["trainer"], ran.json["seed"]) == ("reflact", 2)


def test_resume_of_a_finished_run_says_so_and_changes_nothing(trained: Program) -> None:
    before = (job_of(only_run()) / "events.jsonl").read_bytes()
    ran = trained("resume", "latest")
    assert (ran.code, "is finished" in ran.err, "Better by" in ran.out) == (0, True, True)
    assert (job_of(only_run()) / "events.jsonl").read_bytes() == before


def test_deleted_checkpoints_of_a_finished_run_are_made_again_at_no_cost(trained: Program) -> None:
    home = job_of(only_run()) / "checkpoints"
    before = {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    told = story(home.parent)
    shutil.rmtree(home)
    assert trained("resume", "latest", "-q").code == 0
    assert {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    assert story(home.parent) == told


def test_verify_tells_the_story_again_and_pays_nothing(trained: Program) -> None:
    ran = trained("resume", only_run().name, "--verify", "--json")
    assert ran.code == 0
    assert (ran.json["identical"], ran.json["paid_calls"]) == (True, 0)
    assert ran.json["events"] == len(story(job_of(only_run())))


def test_verify_finds_a_changed_story(trained: Program) -> None:
    path = job_of(only_run()) / "events.jsonl"
    path.write_text(path.read_text().replace('"action":"accept"', '"action":"reject"', 1))
    ran = trained("resume", "latest", "--verify")
    assert ran.code == 1
    assert "not deterministic at event" in ran.err


def test_verify_without_the_ledger_does_not_pay_for_it_again(trained: Program) -> None:
    for path in only_run().glob("ledger.db*"):
        path.unlink()
    ran = trained("resume", "latest", "--verify")
    assert ran.code == 1
    assert "ledger.db is gone; going on would pay again for up to" in ran.err


def test_verify_of_an_unfinished_run_is_refused(trained: Program) -> None:
    path = job_of(only_run()) / "events.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    assert trained("resume", "latest", "--verify").code == 2


def test_a_truncated_story_is_carried_on_to_the_same_end(trained: Program) -> None:
    job = job_of(only_run())
    whole, results = story(job), json.loads((job / "results.json").read_text())
    lines = (job / "events.jsonl").read_text().splitlines(keepends=True)
    (job / "events.jsonl").write_text("".join(lines[: len(lines) // 2]) + '{"n":')
    assert trained("resume", "latest", "-q").code == 0
    assert story(job) == whole
    again = json.loads((job / "results.json").read_text())
    assert {**again, "clock": 0} == {**results, "clock": 0}


def test_a_budget_ends_a_run_with_a_score_and_more_of_it_carries_it_on(program: Program) -> None:
    whole = program("train", "codebook", *SCRIPTED, *SMALL, "--runs", "a", "--json")
    calls = whole.json["usage"]["total"]["calls"]
    capped = program("train", "codebook", *SCRIPTED, *SMALL, "--runs", "b", "--budget", f"calls={calls - 20}", "--json")
    assert (capped.code, capped.json["status"]) == (3, "budget")
    assert "best" in capped.json["test"]
    run = only_run(Path("b")).name
    ended = program("resume", run, "--runs", "b")
    assert (ended.code, "--budget" in ended.err) == (3, True)
    more = program("resume", run, "--runs", "b", "--budget", f"calls={calls + 1000}", "--json")
    assert (more.code, more.json["status"]) == (0, "done")
    assert story(job_of(only_run(Path("b")))) == story(job_of(only_run(Path("a"))))
    assert program("resume", run, "--runs", "b", "--verify").code == 0


def test_a_run_stands_on_its_own_copy_of_data_and_skill(program: Program) -> None:
    rows = [{"input": f"kind-{n % 4:02}: message {n}", "answer": f"word{n % 4}"} for n in range(60)]
    Path("mail.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("start.md").write_text("Answer with one word.\n")
    arguments = ("mail.jsonl", *SCRIPTED, "--steps", "1", "--skill", "start.md", "-q")
    assert program("train", *arguments).code == 0
    Path("mail.jsonl").unlink()
    Path("start.md").write_text("something else\n")
    assert program("resume", "latest", "--verify").code == 0
    assert program("eval", "latest", "--against", "initial", "-q").code == 0


def test_a_run_whose_parts_have_changed_is_not_carried_on_as_if_they_had_not(trained: Program) -> None:
    config = only_run() / "meta" / "config.snapshot.yaml"
    config.write_text(config.read_text().replace("seed: 0", "seed: 1"))
    ran = trained("resume", "latest")
    assert ran.code == 2
    assert "the seed is not what it was when the run began" in ran.err


def test_runs_can_be_moved(trained: Program) -> None:
    shutil.move(only_run(), "elsewhere")
    ran = trained("resume", "elsewhere", "--verify")
    assert (ran.code, "0 calls paid" in ran.out) == (0, True)


@pytest.mark.parametrize("name", ["demo", "train", "resume", "status", "eval", "list"])
def test_every_command_has_help(program: Program, name: str) -> None:
    ran = program(name, "--help")
    assert ran.code == 0
    assert f"Usage: sharpen {name}" in ran.out
