"""Finding tasks by name, by data and by class; tasks made from data hold to the same contract as built-in ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sharpen.core.errors import UsageError
from sharpen.core.task import Task
from sharpen.tasks import registry
from sharpen.tasks.datatask import DataTask
from sharpen.testing.tasks import FakeAttempt, TaskContract, attempt


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path)


def write(folder: Path, **more: object) -> Path:
    path = folder / "data.jsonl"
    rows = [{"input": f"colour of {n}", "answer": ["red", "green"][n % 2], **more} for n in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TestDataTask(TaskContract):
    @pytest.fixture(autouse=True)
    def _data(self, tmp_path: Path) -> None:
        self.path = write(tmp_path)

    def make(self) -> Task:
        return registry.get(str(self.path), metric="choice", description="Say the colour.")


def test_a_data_file_needs_no_code(data: Path) -> None:
    task = registry.get(str(data), metric="exact_match")
    splits = task.splits()
    assert task.name == "data"
    assert (len(splits.train), len(splits.val), len(splits.test)) == (9, 9, 12)
    assert attempt(task, splits.val[0], str(splits.val[0].reference)).hard == 1.0


def test_settings_of_a_data_task(data: Path) -> None:
    task = registry.get(str(data), ratio="2:1:7", split_seed=4, limit=2, max_tokens=5, stop=["\n"], skill="Name it.")
    assert {len(task.splits()[name]) for name in ("train", "val", "test")} == {2}
    fake = FakeAttempt("red")
    import asyncio

    asyncio.run(task.rollout(task.splits().val[0], task.seed(), fake))
    assert (fake.requests[0].max_tokens, fake.requests[0].stop) == (5, ("\n",))
    assert task.seed().text == "Name it.\n"


def test_labels_for_choice_come_from_the_data(data: Path) -> None:
    task = registry.get(str(data), metric="choice")
    item = next(item for item in task.splits().test if item.reference == "green")
    assert attempt(task, item, "It must be green, I guess.").hard == 1.0
    assert attempt(task, item, "red or green").hard == 0.0


def test_the_version_follows_the_scoring_and_not_the_data(data: Path, tmp_path: Path) -> None:
    usual = registry.get(str(data)).version
    assert registry.get(str(data), limit=3, ratio="1:1:1").version == usual
    others = {registry.get(str(data), **s).version for s in ({"metric": "f1"}, {"max_tokens": 9}, {"stop": ["x"]})}
    assert len({usual, *others}) == 4


def test_a_template_makes_the_question_from_the_fields(tmp_path: Path) -> None:
    path = tmp_path / "qa.csv"
    rows = [f"text {n},what is it {n}?,answer {n}" for n in range(9)]
    path.write_text("context,question,answer\n" + "\n".join(rows))
    task = registry.get(str(path), template="{context} / {question}")
    item = task.splits().train[0]
    assert isinstance(task, DataTask) and task.ask(item) == f"{item.inputs['context']} / {item.inputs['question']}"
    example = task.example(item)
    assert example is not None and example[0] == task.ask(item)


def test_splits_are_written_out_and_make_the_same_task(data: Path, tmp_path: Path) -> None:
    task = registry.get(str(data), split_seed=2)
    assert isinstance(task, DataTask)
    task.write(tmp_path / "out")
    assert registry.get(str(tmp_path / "out")).splits() == task.splits()


def test_a_skill_can_be_a_file(data: Path, tmp_path: Path) -> None:
    (tmp_path / "start.md").write_text("# Colours\n")
    assert registry.get(str(data), skill=str(tmp_path / "start.md")).seed().text == "# Colours\n"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"metrik": "f1"}, "unknown setting 'metrik'.*did you mean 'metric'"),
        ({"metric": "exact"}, "unknown metric 'exact'"),
        ({"metric": "numeric"}, "metric numeric needs a number as the answer"),
        ({"ratio": "1:2"}, "ratio must be"),
        ({"limit": 0}, "limit must be"),
        ({"metric": 3}, "metric must be a text"),
        ({"max_tokens": "many"}, "max_tokens must be a whole number"),
        ({"fields": "input=question"}, "no column 'question'"),
        ({"template": "{inptu}"}, "no field 'inptu'.*did you mean 'input'"),
        ({"template": "{"}, "template '{'"),
        ({"template": "{}"}, "must name its fields"),
        ({"skill": "missing.md"}, "cannot read the skill missing.md"),
        ({"skill": "  "}, "skill to start from is empty"),
    ],
)
def test_wrong_settings_are_met_before_anything_runs(data: Path, settings: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        registry.get(str(data), **settings)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("number-word", "did you mean 'number-words'"),
        ("missing.jsonl", "no such file or folder"),
        ("some/where", "no such file or folder"),
        ("nowhere.py:Task", "no such file"),
        ("sharpen.core.digest:digest", "not a Task|does not take"),
    ],
)
def test_unknown_tasks(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        registry.get(name)


def test_built_in_tasks_take_a_limit_and_nothing_unknown() -> None:
    assert len(registry.get("codebook", limit=5).splits().test) == 5
    with pytest.raises(UsageError, match="did you mean 'limit'"):
        registry.get("codebook", limt=5)


def test_a_task_of_ones_own_is_a_class_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "shout.py").write_text(
        "from sharpen.tasks.textual import TextTask, item\n\n"
        "class Shout(TextTask):\n"
        "    name = 'shout'\n"
        "    skill = 'Write the word in capitals.'\n\n"
        "    def items(self):\n"
        "        return [item(word, word.upper()) for word in 'a b c d e f'.split()]\n"
    )
    task = registry.get(f"{tmp_path}/shout.py:Shout")
    assert task.name == "shout" and len(task.splits().test) == 2
    assert len(registry.get(f"{tmp_path}/shout.py:Shout", limit=1).splits().test) == 1
    with pytest.raises(UsageError, match="unknown setting 'metric'"):
        registry.get(f"{tmp_path}/shout.py:Shout", metric="f1")


def test_a_function_of_ones_own_takes_the_settings_it_names(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(
        "from sharpen.tasks.codebook import Codebook\n\ndef make(level):\n    return Codebook() if level else level\n"
    )
    assert registry.get(f"{tmp_path}/make.py:make", level=1).name == "codebook"
    with pytest.raises(UsageError, match="does not take these settings: missing a required argument: 'level'"):
        registry.get(f"{tmp_path}/make.py:make")
    with pytest.raises(UsageError, match="gave int, not a Task"):
        registry.get(f"{tmp_path}/make.py:make", level=0)


def test_the_list_of_tasks_has_sizes_and_descriptions() -> None:
    known = {entry.name: entry for entry in registry.known()}
    assert set(known) >= {"number-words", "sentiment-2", "codebook", "keys-and-doors"}
    assert len(known) >= 11
    assert all(entry.description for entry in known.values())
    assert all(known[name].sizes == {"train": 80, "val": 80, "test": 120} for name in ("number-words", "codebook"))


def test_the_list_of_tasks_can_be_narrowed_down() -> None:
    assert [entry.name for entry in registry.known("*-param")] == ["numeric-param", "multi-param", "code-param"]
    assert [entry.name for entry in registry.known("code*")] == ["codebook", "code-param"]
    assert registry.known("no-such-*") == []


def test_a_pattern_with_a_slash_is_about_the_names_of_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    family = SimpleNamespace(DESCRIPTION="Puzzles.", members=lambda: ["chain_sum", "chess", "word_sum"])
    monkeypatch.setattr(registry, "_FAMILIES", {"puzzles": "puzzles:make"})
    monkeypatch.setattr(registry, "_family_module", lambda name: family)
    assert [entry.name for entry in registry.known("puzzles/*_sum")] == ["puzzles/chain_sum", "puzzles/word_sum"]
    assert [entry.members for entry in registry.known("puzz*")] == [3]


def test_looking_for_one_task_loads_no_other_and_nothing_heavy() -> None:
    code = (
        "import sys; from sharpen.tasks import registry; registry.get('codebook').splits();"
        "print([m for m in sys.modules if m.startswith('sharpen.tasks.families.') or m in ('numpy', 'openai', 'pydantic')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
