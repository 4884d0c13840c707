"""The family reasoning-gym: names, settings, items that are the same everywhere, the data set's own score, and answers that
would run code. What needs the package is left out where it is not installed."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from sharpen.bench.config import RunConfig, load
from sharpen.bench.runner import Session, prepare
from sharpen.core.errors import UsageError
from sharpen.core.task import SPLITS, Task
from sharpen.tasks import registry
from sharpen.tasks.reasoning_gym import guard, making
from sharpen.tasks.reasoning_gym.task import final_answer
from sharpen.testing.tasks import TaskContract, attempt

HERE = importlib.util.find_spec("reasoning_gym") is not None
needs_it = pytest.mark.skipif(not HERE, reason="reasoning-gym is not installed")
EASY = {"size": 40, "max_terms": 2, "max_digits": 1, "min_digits": 1}


@needs_it
class TestChainSum(TaskContract):
    def make(self) -> Task:
        return registry.get("reasoning-gym/chain_sum", **EASY)


@needs_it
def test_items_do_not_depend_on_the_interpreters_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        making.entries.cache_clear()
        made.append(registry.get("reasoning-gym/word_ladder", size=6).splits())
    assert made[0] == made[1]


@needs_it
def test_seed_size_ratio_and_the_data_sets_own_settings_decide_the_items() -> None:
    splits = registry.get("reasoning-gym/chain_sum", **EASY, ratio="2:1:1").splits()
    assert [len(splits[name]) for name in SPLITS] == [20, 10, 10]
    assert all(len(item.text.split("=")[0].split()[-3:]) == 3 for item in splits.train)
    other = registry.get("reasoning-gym/chain_sum", **EASY, ratio="2:1:1", seed=1).splits()
    assert {item.text for item in splits.train} != {item.text for item in other.train}
    limited = registry.get("reasoning-gym/chain_sum", **EASY, limit=4).splits()
    assert [len(limited[name]) for name in SPLITS] == [4, 4, 4]


@needs_it
@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("chain_summ", {}, "no data set 'chain_summ' \\(did you mean 'chain_sum'\\?\\)"),
        ("chain_sum", {"size": 0}, "size must be a whole number of 1 or more, got 0"),
        ("chain_sum", {"ratio": "1:2"}, "ratio must be three whole numbers"),
        ("chain_sum", {**EASY, "max_termss": 3}, "unknown setting 'max_termss' \\(did you mean 'max_terms'\\?\\)"),
        ("", {}, "a family of tasks; name one of it"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        registry.get(f"reasoning-gym/{name}", **settings).splits()


@needs_it
@pytest.mark.parametrize(
    ("name", "size", "own", "says"),
    [
        ("chain_sum", 9, '{"max_terms": 1}', "max_terms must be >= min_terms"),
        ("chain_sum", 9, '{"max_terms": "many"}', "does not take"),
        ("tower_of_hanoi", 300, "{}", "gave 90 different questions; set task.size to 90 or less"),
    ],
)
def test_what_a_data_set_refuses_is_passed_on(name: str, size: int, own: str, says: str) -> None:
    problem, made = making._make(name, 0, size, own)
    assert says in problem and not made


@needs_it
def test_the_data_sets_own_scorer_gives_part_of_the_score_for_part_of_the_answer() -> None:
    task = registry.get("reasoning-gym/chain_sum", **EASY)
    item = task.splits().train[0]
    assert attempt(task, item, f"I add them up.\nAnswer: {item.reference}").hard == 1.0
    wrong = attempt(task, item, f"It is {item.reference}, I think")
    assert wrong.hard == 0.0 and wrong.soft is not None and 0 < wrong.soft < 1 and wrong.feedback


@needs_it
def test_an_answer_that_would_run_code_is_not_evaluated(tmp_path: Path) -> None:
    """The control shows that the scorer alone would have run it."""
    task = registry.get("reasoning-gym/spiral_matrix", size=10)
    item = task.splits().train[0]
    trace = tmp_path / "trace"
    code = f"[open({str(trace)!r}, 'w').close()]"
    outcome = attempt(task, item, f"<answer>{code}</answer>")
    assert outcome.hard == 0.0 and "not evaluated" in outcome.feedback
    assert not trace.exists()
    source = making.dataset("spiral_matrix", 0, 10, "{}")
    source.score_answer(code, source[0])
    assert trace.exists()


@pytest.mark.parametrize(
    "answer",
    ["12", "-3.5", "[[1, 2], [3, 4]]", "(3 + 4) * 2 - 1/5", "3*x**2 + sin(2*x) + C", "1 2 3", "_ _ Q _\n_ Q _ _", "ABBA",
     "['A', 'B']", "60*x**7 - x*y"],
)  # fmt: skip
def test_plain_answers_may_be_evaluated(answer: str) -> None:
    assert guard.harmless(answer)


@pytest.mark.parametrize(
    "answer",
    ["__import__('os').getcwd()", "().__class__", "exit()", "(exec)(chr(112))", "[x for x in range(9)]", "9**9**9",
     "2**(9*9*9*9)", "((9**50)**50)**50", "10**99", "1000000000!", "sqrt('exit()')", "['exit()']", "lambda: 0",
     "(lambda: exit())()", "f'{exit()}'", "x.y", "factorial(10)", "sin(x, evaluate=open)", "9" * 40, "1+" * 3000 + "1"],
)  # fmt: skip
def test_answers_that_could_do_more_may_not_be_evaluated(answer: str) -> None:
    assert not guard.harmless(answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("42", "42"),
        ("First 6 times 7.\n**Answer:** 42", "42"),
        ("Answer: 41\nNo.\nFinal answer: 42", "42"),
        ("<think>Answer: 1</think><answer>\n42\n</answer>", "42"),
        ("Answer:\n1 2\n3 4", "1 2\n3 4"),
        ("The answer lies in the question", "The answer lies in the question"),
    ],
)
def test_the_final_answer_is_found_in_a_longer_reply(text: str, answer: str) -> None:
    assert final_answer(text) == answer


def test_without_the_package_the_list_and_the_error_say_what_to_install() -> None:
    code = (
        "import sys; sys.modules['reasoning_gym'] = None\n"
        "import importlib.util; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'reasoning_gym' else real(name, *a)\n"
        "from sharpen.cli.app import run\n"
        "from sharpen.tasks import registry; print(registry._described_family('reasoning-gym'))\n"
        "sys.exit(run(['train', 'reasoning-gym/chain_sum']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "pip install 'sharpen[reasoning-gym]'" in done.stderr
    assert "reasoning-gym is not installed" in done.stdout


@needs_it
def test_a_training_on_a_data_set_has_a_folder_of_its_own_and_the_settings_of_the_command(tmp_path: Path) -> None:
    config: RunConfig = load(
        None,
        {
            "task": {"name": "reasoning-gym/chain_sum", "size": 40},
            "models": {"target": "scripted/echo"},
            "trainer": "noop",
        },
        ("task.params.max_terms=2", "task.params.max_digits=1", "task.params.min_digits=1"),
    )
    folder, parts = prepare(config, tmp_path)
    assert folder.path.parent == tmp_path and folder.path.name.startswith("reasoning-gym-chain_sum-noop-")
    assert parts.setup.task.splits() == registry.get("reasoning-gym/chain_sum", **EASY).splits()
    assert asyncio.run(Session(parts, folder).run()) == "done"
