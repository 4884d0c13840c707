"""The doctor: what it sees in data, scorer, model and judge, and that it pays for nothing twice."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench import doctor_checks, doctor_overlap
from sharpen.bench.config import load
from sharpen.bench.doctor import Diagnosis, examine
from sharpen.bench.doctor_checks import Contest, Finding, Level, Marks
from sharpen.bench.doctor_estimate import Cost, Estimate, fits
from sharpen.bench.doctor_probe import Timing, Wish
from sharpen.bench.evaluate import Files
from sharpen.bench.runner import Parts, build
from sharpen.core.chat import Request
from sharpen.core.errors import ModelError, ModelErrorKind
from sharpen.core.item import Item
from sharpen.core.task import Splits
from sharpen.engine.budget import Caps
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.stats.detectable import Noise

# -- near-duplicates

LONG = "the ferry to the northern islands leaves every morning at seven and returns after dark unless there is a storm"


def splits(train: dict[str, str], val: dict[str, str], test: dict[str, str] | None = None) -> Splits:
    def items(name: str, given: dict[str, str]) -> tuple[Item, ...]:
        return tuple(Item(f"{name}-{n}", {"input": text}, answer) for n, (text, answer) in enumerate(given.items()))

    return Splits(items("train", train), items("val", val), items("test", test or {"nothing like the others": "x"}))


def test_the_same_text_in_other_case_and_punctuation_is_found_between_splits() -> None:
    found = doctor_overlap.find(splits({"Twenty one": "21", "forty-two": "42"}, {"FORTY, two!": "42"}))
    assert [(pair.one, pair.other, pair.alike) for pair in found.pairs] == [("train-1", "val-0", 1.0)]
    assert found.touched == {"val": 1, "test": 0}


def test_a_long_text_with_one_word_changed_is_found() -> None:
    found = doctor_overlap.find(splits({LONG: "yes"}, {LONG.replace("storm", "gale"): "yes"}))
    assert [pair.other for pair in found.pairs] == ["val-0"]
    assert doctor_overlap.ALIKE <= found.pairs[0].alike < 1.0


def test_texts_alike_with_other_answers_are_no_duplicates_but_equal_ones_are_a_conflict() -> None:
    found = doctor_overlap.find(splits({LONG: "yes", "is it?": "no"}, {LONG + " at sea": "no", "Is it": "yes"}))
    assert not found.pairs
    assert found.conflicts == ("is it?",)


def test_items_of_one_template_are_no_duplicates() -> None:
    def many(name: str) -> dict[str, str]:
        text = "Look at the review with the number {} from {} and say in one word whether its writer was pleased"
        return {text.format(n, name): "yes" for n in range(40)}

    assert not doctor_overlap.find(splits(many("a"), many("b"), many("c"))).pairs


def test_duplicates_in_one_split_are_not_reported() -> None:
    assert not doctor_overlap.find(splits({LONG: "yes", LONG.upper(): "yes"}, {"other": "no"})).pairs


# -- pure checks


def test_a_scorer_that_gives_marks_to_silence_is_stopped() -> None:
    assert doctor_checks.scorer(Marks({"a": 1.0}, {"a": 1.0})).level == Level.STOP
    assert doctor_checks.scorer(Marks({"a": 1.0}, {"a": 0.0})).level == Level.OK


def test_one_wrong_mark_in_many_is_worth_a_look() -> None:
    right = {str(n): float(n > 0) for n in range(50)}
    found = doctor_checks.scorer(Marks(right, dict.fromkeys(right, 0.0)))
    assert (found.level, "1 of 50 right answers" in found.what) == (Level.WARN, True)


def test_a_score_near_1_leaves_nothing_to_gain() -> None:
    assert doctor_checks.headroom([1.0] * 20, [1.0] * 20, 0).level == Level.STOP
    assert doctor_checks.headroom([1.0, 0.0] * 10, [1.0, 0.5] * 10, 0).level == Level.OK
    assert doctor_checks.headroom([0.0] * 20, [0.0] * 20, 0).level == Level.WARN


def test_returns_without_an_upper_end_are_no_reason_to_stop() -> None:
    returns = doctor_checks.without_ceiling([18.0, 22.0, 9.0, 31.0], 0)
    assert returns.level == Level.OK and "the start scores 20.000 on 4 val items" in returns.what
    assert doctor_checks.without_ceiling([18.0], 1).level == Level.WARN
    assert doctor_checks.without_ceiling([], 3).level == Level.STOP


def test_a_test_too_small_for_a_perfect_skill_is_stopped_with_the_number_that_would_do() -> None:
    found = doctor_checks.detectable(Contest("val", 12, 0.05), 0.0, room=0.3)
    assert found.level == Level.STOP
    assert "66 would show a gain of 0.10" in found.advice
    assert doctor_checks.detectable(Contest("val", 200, 0.05), 0.0, room=0.3).level == Level.OK


def test_scores_that_are_mostly_chance_are_worth_a_look() -> None:
    half = [0.5] * 20
    assert doctor_checks.chance(Noise(0.2, 0.8, 20), half, 80).level == Level.WARN
    assert doctor_checks.chance(Noise(0.02, 0.1, 20), half, 80).level == Level.OK


def test_kappa_leaves_out_what_chance_agrees_on() -> None:
    assert doctor_checks.kappa([1, 1, 0, 0], [1, 1, 0, 0]) == 1.0
    assert doctor_checks.kappa([1, 1, 0, 0], [1, 0, 1, 0]) == 0.0
    assert doctor_checks.kappa([1, 1], [1, 1]) is None


@pytest.mark.parametrize(("calls", "level"), [(None, "ok"), (2000, "ok"), (700, "warn"), (250, "stop")])
def test_caps_are_held_against_the_estimate(calls: int | None, level: str) -> None:
    step, rest = Cost(100, 1000, None, None), Cost(100, 1000, None, None)
    estimate = Estimate(10, step, rest, rest, step.times(10) + rest + rest, step.times(20), asking=False)
    assert fits(estimate, Caps(calls=calls)).level == level


def test_how_many_go_side_by_side_is_seen_from_their_times() -> None:
    assert Timing(alone=1.0, paid=40, seconds=20.0).side_by_side(1, most=64) == 2.0
    assert Timing(alone=1.0, paid=40, seconds=1.1).side_by_side(1, most=64) == 64
    assert Timing(alone=1.0, paid=40, seconds=5.2).side_by_side(1, most=8) == 8


# -- with a task, a model and a ledger


def looked(
    folder: Path,
    name: str,
    wish: Wish | None = None,
    *,
    change: Callable[[Parts], Parts] | None = None,
    **settings: Any,
) -> Diagnosis:
    """A look at a task, in `folder`, whose ledger stays for the next one."""
    parts = build(load(None, {"task": {"name": name, **settings.pop("task", {})}, **settings}))
    parts = parts if change is None else change(parts)
    number = len(list(folder.glob(f"{parts.setup.task.name}-*")))
    files = Files(folder / f"{parts.setup.task.name}-{number}", folder / "ledger.db")
    return asyncio.run(examine(parts, wish or Wish(), files))


def finding(diagnosis: Diagnosis, check: str) -> Finding:
    return next(found for found in diagnosis.findings if found.check == check)


def target(script: Callable[[Request], str]) -> Callable[[Parts], Parts]:
    def change(parts: Parts) -> Parts:
        models = {**parts.setup.models, "target": ScriptedModel("scripted/own", script)}
        return dataclasses.replace(parts, setup=dataclasses.replace(parts.setup, models=models))

    return change


def table(folder: Path, rows: int = 100) -> str:
    path = folder / "items.jsonl"
    lines = [json.dumps({"input": f"word {n} of the list", "answer": f"w{n % 7}"}) for n in range(rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


RULES = {"target": "scripted/rules"}


def test_a_second_look_pays_nothing_and_sees_the_same(tmp_path: Path) -> None:
    first, second = (looked(tmp_path, "codebook", models=RULES) for _ in range(2))
    assert (first.go, first.paid_calls, second.paid_calls) == (True, 23, 0)
    assert [f for f in first.findings if f.check != "estimate"] == [f for f in second.findings if f.check != "estimate"]
    assert first.pace is not None and second.pace is not None and second.pace.seconds == first.pace.seconds


def test_repeats_are_made_where_answers_vary(tmp_path: Path) -> None:
    task, models = {"metric": "contains", "template": "{input} w1"}, {"target": "scripted/echo?noise=0.4"}
    made = looked(tmp_path, table(tmp_path), Wish(10, 4), models=models, task=task)
    assert made.paid_calls == 40
    assert "change their score" in finding(made, "noise").what


def test_a_broken_scorer_is_seen_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def always(answer, item):\n    return 1.0\n", encoding="utf-8")
    made = looked(tmp_path, table(tmp_path), task={"metric": f"{tmp_path}/own.py:always"}, models=RULES)
    assert (made.go, made.paid_calls) == (False, 0)
    assert finding(made, "scorer").level == Level.STOP
    assert not (tmp_path / "ledger.db").exists()


def test_right_answers_that_would_arrive_cut_short_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    lines = [json.dumps({"input": f"word {n}", "answer": f"one two three {n}"}) for n in range(60)]
    path.write_text("\n".join(lines), encoding="utf-8")
    made = looked(tmp_path, str(path), task={"max_tokens": 3}, models=RULES)
    assert finding(made, "scorer").level == Level.STOP
    assert "max_tokens" in finding(made, "scorer").advice


def test_a_model_that_is_not_as_deterministic_as_it_says_is_found_out(tmp_path: Path) -> None:
    said: dict[str, int] = {}

    def forgetful(request: Request) -> str:
        text = last_said(request)
        said[text] = said.get(text, 0) + 1
        return f"answer {said[text]}"

    made = looked(tmp_path, table(tmp_path), models=RULES, change=target(forgetful))
    assert finding(made, "noise").level == Level.WARN
    assert "3 of 3" in finding(made, "noise").what


def test_a_task_that_is_mastered_is_stopped(tmp_path: Path) -> None:
    made = looked(
        tmp_path, table(tmp_path), models=RULES, change=target(lambda r: f"w{int(last_said(r).split()[1]) % 7}")
    )
    assert not made.go
    assert finding(made, "headroom").level == Level.STOP


def test_an_attempt_that_fails_is_counted_and_stops_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    def flaky(request: Request) -> str:
        asked.append(last_said(request))
        if asked[0] == asked[-1]:
            raise ModelError(ModelErrorKind.BAD_REQUEST, "too long")
        return "w1"

    made = looked(tmp_path, table(tmp_path), models=RULES, change=target(flaky))
    assert "1 rollout failed and are left out" in " ".join(finding(made, "headroom").detail)


JUDGED = """
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.item import Item
from sharpen.core.outcome import scored
from sharpen.core.task import Splits, Task


class Judged(Task):
    name = "judged"
    calls_per_rollout = 2

    def splits(self):
        def some(name, n):
            return tuple(Item(f"{name}-{k}", {"input": f"{name} {k}"}, f"{name} {k}") for k in range(n))

        return Splits(some("train", 40), some("val", 60), some("test", 60))

    def seed(self):
        return Candidate("Repeat it.")

    async def rollout(self, item, candidate, attempt):
        asked = item.text if int(item.text.split()[-1]) % 2 else "what?"
        said = (await attempt.complete(Request(messages=(Message("user", asked),)))).text
        mark = f"{item.id} {'pass' if said == item.reference else 'fail'}"
        judged = await attempt.complete(Request(messages=(Message("user", mark),)), role="judge")
        told = (Message("user", asked), Message("assistant", said))
        return scored(item.id, judged.text.endswith("pass"), answer=said, trajectory=told)
"""


@pytest.mark.parametrize(("noise", "level"), [(0.02, Level.OK), (0.5, Level.WARN)])
def test_a_judge_is_asked_twice_about_the_same_attempts(tmp_path: Path, noise: float, level: Level) -> None:
    (tmp_path / "own.py").write_text(JUDGED, encoding="utf-8")
    models = {"target": "scripted/echo", "judge": f"scripted/echo?noise={noise}"}
    made = looked(tmp_path, f"{tmp_path}/own.py:Judged", Wish(40, 2), models=models)
    assert finding(made, "judge").level == level
    assert "of 40 attempts" in finding(made, "judge").what
    assert looked(tmp_path, f"{tmp_path}/own.py:Judged", Wish(40, 2), models=models).paid_calls == 0


def test_a_judge_that_nobody_asks_is_mentioned(tmp_path: Path) -> None:
    made = looked(tmp_path, "codebook", models={**RULES, "judge": "scripted/echo"})
    assert finding(made, "judge").level == Level.WARN
