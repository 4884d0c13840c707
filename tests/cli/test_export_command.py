"""sharpen export: what was learned, in a form that works without sharpen, and says where it came from."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sharpen.bench.export import without_markers
from sharpen.bench.layout import find_run
from sharpen.models.scripted_rules import rules
from sharpen.testing.http import FakeEndpoint, answer_with

Program = Callable[..., Any]
SCRIPTED = ("--model", "scripted/rules", "--optimizer", "scripted/rules", "--gate", "strict")


def job() -> Path:
    return find_run("latest", Path("runs")).jobs()[0]


def head_and_body(path: Path) -> tuple[dict[str, Any], str]:
    _, head, body = path.read_text().split("---\n", 2)
    return yaml.safe_load(head), body


def cut_after(kind: str, step: int) -> None:
    """Make the job one that was killed just after this event."""
    path = job() / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    told = [json.loads(line) for line in lines]
    end = next(n for n, line in enumerate(told) if line["type"] == kind and line["step"] == step)
    path.write_text("".join(lines[: end + 1]))


def test_a_skill_folder_has_the_text_and_says_where_it_came_from(trained: Program) -> None:
    ran = trained("export", "latest")
    assert (ran.code, ran.err) == (0, "")
    head, body = head_and_body(Path("exported/codebook/SKILL.md"))
    best = (job() / "checkpoints" / "best" / "parts" / "SKILL.md").read_text()
    assert body.strip() == without_markers(best).strip()
    assert (head["name"], head["description"]) == ("codebook", "Answer each message with the code word of its kind.")
    facts = head["metadata"]
    assert all(isinstance(value, str) for value in facts.values())
    assert facts["sharpen-job"] == job().name
    results = json.loads((job() / "results.json").read_text())
    assert f"{results['best']['confirmed']['value']:.3f}" in facts["sharpen-val"]
    assert f"{results['test']['best']['mean']:.3f}" in facts["sharpen-test"]
    assert str(Path.cwd()) not in Path("exported/codebook/SKILL.md").read_text()


def test_front_matter_is_kept_and_completed_and_markers_are_taken_out(program: Program) -> None:
    start = Path("start")
    start.mkdir()
    (start / "SKILL.md").write_text(
        "---\nname: code-words\nlicense: MIT\nmetadata: {team: red}\n---\nSay the word of the kind.\n\n"
        "<!-- PROTECTED:house START -->\nNever shout.\n<!-- PROTECTED:house END -->\n\nSee also notes.md.\n"
    )
    (start / "notes.md").write_text("Kinds have numbers.\n")
    (start / "more").mkdir()
    (start / "more" / "faq.md").write_text("No questions yet.\n")
    assert program("train", "codebook", *SCRIPTED, "--steps", "1", "--limit", "20", "--skill", "start", "-q").code == 0
    ran = program("export", "latest", "--to", "out", "--which", "step_0000", "--json")
    assert [Path(name) for name in ran.json["files"]] == [
        Path("out/code-words/SKILL.md"), Path("out/code-words/more/faq.md"), Path("out/code-words/notes.md"),
    ]  # fmt: skip
    head, body = head_and_body(Path("out/code-words/SKILL.md"))
    assert (head["name"], head["license"], head["metadata"]["team"]) == ("code-words", "MIT", "red")
    assert head["description"]
    assert "<!--" not in body
    assert "Never shout." in body
    assert "[more/faq.md](more/faq.md)" in body
    assert "(notes.md)" not in body, "the text names it already"
    assert Path("out/code-words/notes.md").read_text() == "Kinds have numbers.\n"


def test_an_empty_region_leaves_no_gap() -> None:
    empty = "<!-- SLOW_UPDATE_START -->\n<!-- SLOW_UPDATE_END -->"
    inside = "<!-- PROTECTED:a START -->Three.<!-- PROTECTED:a END -->"
    assert without_markers(f"One.\n\n{empty}\n\nTwo. {inside}\n") == "One.\n\nTwo. Three.\n"
    assert without_markers("Plain <!-- remark -->\n\n\n\ntext") == "Plain <!-- remark -->\n\n\n\ntext"


def sent(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in ("seed", "stream")}


@pytest.mark.parametrize("render", ["system", "turns", "completion"])
def test_the_python_file_sends_what_the_rollouts_sent(program: Program, render: str) -> None:
    with FakeEndpoint(answer_with(rules)).in_thread() as server:
        model = ("--model", f"{server.url}#m", "--render", render, "--optimizer", "scripted/rules")
        params = "trainer.params.proposers=[examples]"
        steps = ("--gate", "force", "--steps", "2", "--limit", "12", "-q")
        assert program("train", "codebook", params, *model, *steps).code == 0
        asked = [sent(body) for body in server.bodies]
        assert program("export", "latest", "--as", "python", "--which", "final", "--name", "code-words").code == 0
        last = asked[-1]["messages"][-1]["content"] if render != "completion" else asked[-1]["prompt"]
        question = re.findall(r"kind-\d\d: [a-z ]+", last)[-1]
        said = runpy.run_path("exported/code_words.py")["answer"](question)
        body = sent(server.bodies[-1])
    assert body in asked
    assert "kind-" in str(body["prompt"] if render == "completion" else body["messages"][:-1]), "nothing was learned"
    assert said == answer_with(rules)(body).strip()


def test_the_python_file_runs_as_a_program_of_its_own(trained: Program) -> None:
    assert trained("export", "latest", "--as", "python").code == 0
    command = [sys.executable, "exported/codebook.py", "kind-01: hello"]
    with FakeEndpoint(lambda body: f" {body['model']} ").in_thread() as server:
        there = {**os.environ, "OPENAI_MODEL": "mine", "OPENAI_BASE_URL": server.url}
        done = subprocess.run(command, env=there, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr


def test_the_python_file_fills_in_the_fields_of_a_template(program: Program) -> None:
    rows = [{"id": str(n), "place": f"box {n}", "input": f"what is in it {n}", "answer": "ruby"} for n in range(12)]
    Path("boxes.json").write_text(json.dumps(rows))
    with FakeEndpoint(lambda body: "ruby").in_thread() as server:
        template = "task.template='{place}: {input}?'"
        assert program("train", "boxes.json", template, "--model", f"{server.url}#m", "--steps", "1", "-q").code == 0
        asked = [sent(body) for body in server.bodies]
        assert program("export", "latest", "--as", "python").code == 0
        assert runpy.run_path("exported/boxes.py")["answer"](**rows[0]) == "ruby"
        assert sent(server.bodies[-1]) in asked
        assert server.bodies[-1]["messages"][-1]["content"] == "box 0: what is in it 0?"


def test_a_prompt_is_the_text_alone_with_its_origin_beside_it(trained: Program) -> None:
    assert trained("export", "latest", "--as", "prompt").code == 0
    best = (job() / "checkpoints" / "best" / "parts" / "SKILL.md").read_text()
    assert Path("exported/codebook.prompt.txt").read_text() == best
    assert json.loads(Path("exported/codebook.prompt.json").read_text())["job"] == job().name


def test_of_a_job_that_is_not_at_its_end_the_best_so_far_is_exported(trained: Program) -> None:
    cut_after("step_done", 2)
    (step,) = {json.loads(line)["best_step"] for line in (job() / "events.jsonl").read_text().splitlines()[-1:]}
    ran = trained("export", str(job()))
    assert (ran.code, "best so far" in ran.err) == (0, True)
    head, body = head_and_body(Path("exported/codebook/SKILL.md"))
    saved = (job() / "checkpoints" / f"step_{step:04d}" / "parts" / "SKILL.md").read_text()
    assert body.strip() == without_markers(saved).strip()
    assert "had not ended" in head["metadata"]["sharpen-checkpoint"]
    assert "confirmed (" not in head["metadata"].get("sharpen-val", "")


def test_a_failed_run_that_learned_nothing_is_not_exported_as_if_it_had(trained: Program) -> None:
    good = job()
    with FakeEndpoint(key="right").in_thread() as server:
        failed = trained("train", "codebook", "--model", f"{server.url}#m", "--limit", "12", "-q")
    assert failed.code == 1
    assert job() != good
    done = trained("export", "latest", "--to", "out")
    assert done.code == 2 and not Path("out").exists()
    assert "has nothing to export: it is not at its end (" in done.err
    assert f"Jobs with a best: {good}" in done.err
    resume = re.search(r"`sharpen resume (\S+)` carries it on", done.err) or re.search(
        r"resume (\S+)` carries", done.err
    )
    assert resume is not None and Path(resume[1]) == job().parents[1]
    assert trained("export", "latest", "--which", "step_0000", "--to", "out").code == 0
    assert trained("export", str(good), "--to", "other", "--json").json["trained"] is True


def test_where_nothing_was_learned_the_export_says_so(program: Program) -> None:
    assert program("train", "codebook", "--model", "scripted/echo", "--steps", "1", "--limit", "10", "-q").code == 0
    ran = program("export", "latest")
    assert (ran.code, "text training began with" in ran.err) == (0, True)


def test_nothing_is_written_over_unless_asked(trained: Program) -> None:
    assert trained("export", "latest").code == 0
    path = Path("exported/codebook/SKILL.md")
    path.write_text("mine")
    ran = trained("export", "latest")
    assert (ran.code, "--force" in ran.err, path.read_text()) == (2, True, "mine")
    assert trained("export", "latest", "--force").code == 0
    assert path.read_text() != "mine"


REFUSED = [
    (("nowhere",), "no run 'nowhere'"),
    (("latest", "--which", "step_9"), "there are: step_0000"),
    (("latest", "--as", "poem"), "poem"),
    (("latest", "--name", "Code Words"), "'code-words'"),
    (("latest", "--name", "a--b"), "'a-b'"),
    (("latest", "--name", "x" * 65), "at most 64"),
    *((("latest", "--as", form, "--name", "../up"), "cannot be the name") for form in ("skill", "prompt", "python")),
    (("latest", "--description", "x" * 1025), "1025 characters"),
    (("latest", "--description", " "), "must be a text"),
]


def test_what_cannot_be_is_refused_in_words(trained: Program) -> None:
    for arguments, said in REFUSED:
        ran = trained("export", *arguments)
        assert (ran.code, said in ran.err) == (2, True), ran.err
        assert not Path("exported").exists()


def test_a_run_that_has_not_begun_has_nothing_to_export(trained: Program) -> None:
    (job() / "events.jsonl").write_text("")
    assert trained("export", "latest").code == 2
    (job() / "events.jsonl").unlink()
    ran = trained("export", "latest")
    assert (ran.code, "nothing has happened yet" in ran.err) == (2, True)
