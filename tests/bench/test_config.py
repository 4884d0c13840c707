"""Configurations: bases, overrides, and errors that name the file, the key and the nearest valid one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from sharpen.bench.config import dump, load, validated
from sharpen.core.errors import UsageError
from sharpen.trainers.reflact.params import ReflACTParams

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_a_name_is_enough() -> None:
    config = load(None, {"task": "codebook"})
    assert config.task.name == "codebook" and config.trainer.name == "reflact" and config.seed == 0


def test_settings_win_over_the_file_and_overrides_over_both(write: Write) -> None:
    path = write("a.yaml", "task: codebook\nseed: 1\nworkers: 2\nbudget: {calls: 10, tokens: 20}\n")
    config = load(path, {"seed": 3, "budget": {"tokens": 30}}, ["seed=4", "task.limit=5", "trainer.params.epochs=2"])
    assert (config.seed, config.workers) == (4, 2)
    assert (config.budget.calls, config.budget.tokens, config.task.limit) == (10, 30, 5)
    assert config.task.name == "codebook" and config.trainer.params == {"epochs": 2}


def test_a_base_is_started_from(write: Write) -> None:
    write("base.yaml", "task: codebook\nseed: 1\nmodels: {target: scripted/rules, render: turns}\n")
    path = write("sub/a.yaml", "_base_: ../base.yaml\nseed: 2\nmodels: {target: scripted/echo}\n")
    config = load(path)
    assert (config.seed, config.models.target, config.models.render) == (2, "scripted/echo", "turns")


def test_of_several_bases_the_later_one_wins(write: Write) -> None:
    write("one.yaml", "task: {name: codebook, limit: 3}\nseed: 1\n")
    write("two.yaml", "seed: 2\ntask: {limit: 4}\n")
    write("three.yaml", "_base_: two.yaml\nworkers: 7\n")
    config = load(write("a.yaml", "_base_: [one.yaml, three.yaml]\n"))
    assert (config.task.name, config.task.limit, config.seed, config.workers) == ("codebook", 4, 2, 7)


def test_a_circle_of_bases_is_named(write: Write) -> None:
    write("b.yaml", "_base_: a.yaml\n")
    path = write("a.yaml", "_base_: b.yaml\n")
    with pytest.raises(UsageError, match=r"_base_ leads back to itself: a\.yaml -> b\.yaml -> a\.yaml"):
        load(path)


@pytest.mark.parametrize("base", ["5", "null", "[a.yaml, 7]", "{a: b}"])
def test_a_base_that_is_no_path_is_named(write: Write, base: str) -> None:
    write("a.yaml", "seed: 1\n")
    with pytest.raises(UsageError, match=r"c\.yaml: _base_ "):
        load(write("c.yaml", f"_base_: {base}\ntask: codebook\n"))


@pytest.mark.parametrize(
    "text,words",
    [
        ("task: codebook\nsede: 1\n", r"a\.yaml: unknown key 'sede' \(did you mean 'seed'\?\); known here: task, "),
        ("task: {name: x, limits: 3}\n", r"unknown key 'task\.limits' \(did you mean 'limit'\?\)"),
        ("task: codebook\nbudget: {call: 3}\n", r"unknown key 'budget\.call' \(did you mean 'calls'\?\)"),
        ("seed: 1\n", r"a\.yaml: 'task' is missing"),
        ("task: {limit: 3}\n", r"a\.yaml: 'task\.name' is missing"),
        ("task: codebook\nseed: many\n", r"a\.yaml: seed: .*integer.*, got 'many'"),
        ("task: codebook\nworkers: 0\n", r"a\.yaml: workers: .*greater than or equal to 1, got 0"),
        ("task: codebook\nbudget: {money: -1}\n", r"budget\.money: .*, got -1"),
        ("task: codebook\nmodels: {render: loud}\n", r"models\.render: .*'turns'.*, got 'loud'"),
        ("task: [codebook]\n", r"a\.yaml: task: "),
        ("- codebook\n", r"a\.yaml holds a list; a configuration is a mapping"),
        ("task: {name: 'x\n", r"cannot read .*a\.yaml: "),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(write: Write, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(write("a.yaml", text))


def test_several_errors_are_told_together(write: Write) -> None:
    with pytest.raises(UsageError) as caught:
        load(write("a.yaml", "task: codebook\nseed: x\nworkers: y\n"))
    assert len(str(caught.value).splitlines()) == 2


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no configuration file .*nothing\.yaml"):
        load(tmp_path / "nothing.yaml")


@pytest.mark.parametrize("override", ["seed", "=3", ""])
def test_a_broken_override_is_named(override: str) -> None:
    with pytest.raises(UsageError, match=r"is not an override; write key\.key=value"):
        load(None, {"task": "codebook"}, [override])


def test_an_override_that_is_not_yaml_is_named() -> None:
    with pytest.raises(UsageError, match="not YAML"):
        load(None, {"task": "codebook"}, ["seed={"])


def test_an_override_may_hold_an_equals_sign() -> None:
    assert load(None, {"task": "x"}, ["models.target=scripted/rules?noise=0.1"]).models.target.endswith("noise=0.1")


def test_errors_without_a_file_name_the_command_line() -> None:
    with pytest.raises(UsageError, match="the command line: unknown key 'sed'"):
        load(None, {"task": "codebook"}, ["sed=1"])


def test_what_is_dumped_loads_as_the_same(write: Write) -> None:
    config = load(None, {"task": {"name": "ß.jsonl", "fields": {"input": "q"}}, "trainer": {"params": {"epochs": 2}}})
    assert load(write("snapshot.yaml", dump(config, ReflACTParams(epochs=2)))) == config
    assert yaml.safe_load(dump(config, ReflACTParams(epochs=2)))["task"]["name"] == "ß.jsonl"


def test_parameters_of_a_trainer_are_checked_in_the_same_words() -> None:
    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid")
        epochs: int = 1

    with pytest.raises(
        UsageError, match=r"trainer x: unknown key 'epoch' \(did you mean 'epochs'\?\); known here: epochs"
    ):
        validated(Params, {"epoch": 2}, "trainer x")
    with pytest.raises(UsageError, match=r"trainer x: epochs: .*, got 'two'"):
        validated(Params, {"epochs": "two"}, "trainer x")
