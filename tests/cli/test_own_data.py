"""Own data, skills and classes at the command line: where files are looked for, what is said when something is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

SCRIPTED = ("--model", "scripted/rules", "--steps", "1", "-q")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a configuration, data, a metric, a skill and a class beside it."""
    home = tmp_path / "home"
    home.mkdir()
    rows = [{"q": {"text": f"kind-{n % 3}: {n}"}, "a": "red"} for n in range(30)]
    (home / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "score.py").write_text("def score(answer, item):\n    return answer == item.reference, 'no'\n")
    (home / "start.md").write_text("- kind-1: red\n")
    (home / "data.yaml").write_text(
        "task: {name: data.jsonl, metric: 'score.py:score', skill: start.md, fields: {input: q.text, answer: a}}\n"
    )
    (home / "mine.py").write_text(
        "from sharpen.tasks.codebook import Codebook\n\nclass Mine(Codebook):\n    name = 'mine'\n    sizes = (20, 20, 20)\n"
    )
    (home / "class.yaml").write_text("task: mine.py:Mine\n")
    (home / "codebook").mkdir()
    (home / "named.yaml").write_text("task: {name: codebook, limit: 20}\n")
    return home


@pytest.mark.parametrize(("config", "task"), [("data", "data"), ("class", "mine"), ("named", "codebook")])
@pytest.mark.parametrize("inside", [True, False])
def test_files_are_found_beside_the_configuration_wherever_one_stands(
    program: Program, home: Path, monkeypatch: pytest.MonkeyPatch, config: str, task: str, inside: bool
) -> None:
    if inside:
        monkeypatch.chdir(home)
    trained = program("train", str(home / f"{config}.yaml"), *SCRIPTED, "--json")
    assert trained.code == 0, trained.err
    assert trained.json["task"] == task
    if config == "data":
        assert 0.1 < trained.json["test"]["initial"]["mean"] < 0.7, "the skill and the metric are those beside it"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("codebook", "--skill", "gone.md"), "no skill or checkpoint at gone.md (looked for in"),
        (("codebook", "--skill", "blank.md"), "the skill blank.md is empty"),
        (("codebook", "--skill", "blank"), "the skill blank is empty"),
        (("home/mine.py:Mien",), "has no 'Mien' (did you mean 'Mine'?); it has Mine"),
        (("home/mine.py",), "home/mine.py: name the class too, as in home/mine.py:Class"),
        (("home/data.jsonl",), "no column 'input' for the input; the columns are 'q', 'a'. task.fields says which is"),
        (("home/gone.py:Mine",), "no such file: home/gone.py (looked for in"),
        (("home/needs.py:Mine",), "home/needs.py imports 'nowhere_to_be_found', which is not installed here"),
        (("home/score.py:score",), "does not take these settings: missing a required argument: 'answer'"),
        (("home/split",), "no data for val; expected val.jsonl or val/"),
        (
            ("home/few.csv", "--ratio", "8:1:1"),
            "3 items split by 8:1:1 leave val and test empty; give at least 7 items, or",
        ),
    ],
)
def test_what_is_missing_is_said_before_anything_runs(
    program: Program, home: Path, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "blank").mkdir()
    for blank in ("blank.md", "blank/SKILL.md"):
        (tmp_path / blank).write_text(" \n")
    (home / "needs.py").write_text("import nowhere_to_be_found\n")
    (home / "few.csv").write_text("input,answer\na,x\nb,x\nc,x\n")
    for split in ("train", "test"):
        (home / "split" / split).mkdir(parents=True)
        (home / "split" / split / "x.csv").write_text(f"input,answer\n{split},x\n")
    done = program("train", *arguments, *SCRIPTED)
    assert done.code == 2 and says in done.err
    assert not (tmp_path / "runs").exists()
