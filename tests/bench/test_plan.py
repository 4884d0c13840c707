"""Plans: what is fixed, what counts as the family, and how a look's bar is shared out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.comparison.assembly import Verdict, Wish, compare_all
from sharpen.bench.comparison.measure import Measure
from sharpen.bench.comparison.planned import apart, hold
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.bench.plan import Lock, Plan, fix, load, lock_of, locked
from sharpen.core.errors import UsageError

TEXT = "metric: test\nsummary: test\nbaseline: a\narms: [b, c]\ntasks: [x, y]\nseeds: 6\n"


def plan_of(**more: Any) -> Plan:
    return Plan(
        **{"metric": "test", "summary": "test", "baseline": "a", "arms": ["b"], "tasks": ["x"], "seeds": 8, **more}
    )


def arm(name: str, by: float, tasks: tuple[str, ...] = ("x",), seeds: int = 8, began: float | None = 2.0) -> Arm:
    runs = [
        Run(
            f"{name}-{task}-{seed}",
            "",
            task,
            seed,
            finals={"test": 0.4 + seed % 3 / 50 + by * (1 + seed / 40)},
            began=began,
        )
        for task in tasks
        for seed in range(seeds)
    ]
    return Arm(name, tuple(runs))


def held(plan: Plan, *arms: Arm, at: float = 1.0, taken: tuple[int, ...] = ()) -> Any:
    met = apart(plan, [(arms[0], one) for one in arms[1:]])
    wish = Wish(Measure("test", "test"), alpha=plan.alpha)
    return hold(
        plan, Lock(plan.digest, at, None, plan.model_dump(mode="json")), compare_all(met, wish), met, wish, taken
    )


def test_a_lock_stays_and_a_changed_plan_is_refused_with_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(TEXT)
    plan, lock, fresh = fix(path)
    assert fresh and lock_of(path) == tmp_path / "plan.lock.json" and lock.digest == plan.digest
    path.write_text("# a remark changes nothing\n" + TEXT)
    assert fix(path) == (plan, lock, False)
    path.write_text(TEXT.replace("seeds: 6", "seeds: 7"))
    with pytest.raises(UsageError, match=r"changed since \(seeds 6 then, 7 now\)"):
        fix(path)


def test_a_lock_that_was_tampered_with_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(TEXT)
    fix(path)
    content = json.loads(lock_of(path).read_text())
    content["plan"]["seeds"] = 7
    lock_of(path).write_text(json.dumps(content))
    with pytest.raises(UsageError, match="damaged"):
        locked(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("arms: [a]", "the baseline 'a' is among the arms"),
        ("looks: [3, 5]", "the last one 6"),
        ("family: [d]", "'d' is no ARM or ARM on TASK"),
        ("family: [b on z]", "names a task that the plan does not"),
        ("family: some", "must be 'all' or a list"),
        ("summary: steps_to", "needs a value to reach"),
        ("marign: 0.1", "did you mean 'margin'"),
        ("tasks: [x, x]", "'x' is there twice"),
        ("window: yesterday", "yesterday"),
    ],
)
def test_a_plan_that_does_not_fit_together_says_where(tmp_path: Path, change: str, says: str) -> None:
    key = change.partition(":")[0]
    kept = [line for line in TEXT.splitlines() if not line.startswith(f"{key}:")]
    path = tmp_path / "plan.yaml"
    path.write_text("\n".join([*kept, change]) + "\n")
    with pytest.raises(UsageError, match=says.replace("(", r"\(")):
        load(path)


def test_what_was_planned_is_judged_and_nothing_else_is() -> None:
    found = held(plan_of(), arm("a", 0.0, ("x", "y")), arm("b", 0.1, ("x", "y")), arm("c", 0.1))
    assert found.deviations == ("the arm c was not planned", "the task y was not planned")
    marks = {(one.new, row.task): (one.exploratory, row.exploratory) for one in found.compared for row in one.rows}
    assert marks == {("b", "x"): (False, False), ("b", "y"): (True, True), ("c", "x"): (True, True)}
    planned = next(one for one in found.compared if not one.exploratory)
    assert planned.verdict == Verdict.BETTER and planned.adjusted == planned.p, "nothing unplanned is adjusted for"


def test_a_planned_test_that_is_missing_still_counts_in_the_family() -> None:
    both = plan_of(arms=["b", "c"])
    found = held(both, arm("a", 0.0), arm("b", 0.1))
    assert found.deviations == ("the arm c was planned and is not here",)
    (one,) = found.compared
    assert one.adjusted == pytest.approx(2 * one.p)


def test_what_is_out_of_reach_in_another_family_is_not_said_of_the_planned_one() -> None:
    plan = plan_of(tasks=["x", "y", "z"], seeds=6, family=["b on x"])
    arms = [arm(name, by, ("x", "y", "z"), 6) for name, by in (("a", 0.0), ("b", 0.2))]
    (loose,) = compare_all([(arms[0], arms[1])], Wish(Measure("test", "test")))
    (one,) = held(plan, *arms).compared
    assert any("no row can come below" in warning for warning in loose.warnings)
    assert one.rows[0].adjusted == pytest.approx(2**-5)
    assert not any("no row can come below" in warning for warning in one.warnings)


def test_a_family_of_verdicts_leaves_single_tasks_exploratory() -> None:
    found = held(plan_of(tasks=["x", "y"], family=["b"]), arm("a", 0.0, ("x", "y")), arm("b", 0.1, ("x", "y")))
    (one,) = found.compared
    assert not one.exploratory and all(row.exploratory for row in one.rows)


@pytest.mark.parametrize(
    ("more", "arms", "at", "says"),
    [
        ({}, (arm("a", 0.0), arm("b", 0.1)), 3.0, "16 of 16 runs began before the plan was locked"),
        ({"looks": [4, 6, 9], "seeds": 9}, (arm("a", 0.0), arm("b", 0.1)), 1.0, "a look at 8 seeds was not planned"),
        ({"over": "items"}, (arm("a", 0.0), arm("b", 0.1)), 1.0, "compared over seeds, and not over items"),
    ],
)
def test_what_breaks_the_promise_makes_all_of_it_exploratory(
    more: dict[str, Any], arms: tuple[Arm, Arm], at: float, says: str
) -> None:
    found = held(plan_of(**more), *arms, at=at)
    assert any(says in deviation for deviation in found.deviations)
    assert all(one.exploratory and all(row.exploratory for row in one.rows) for one in found.compared)


def test_a_look_has_a_lower_bar_than_alpha_and_an_early_unplanned_one_is_remembered() -> None:
    early = plan_of(looks=[8, 10], seeds=10)
    found = held(early, arm("a", 0.0), arm("b", 0.1), taken=(3, 8))
    assert 0.01 < found.look.level < 0.04 and found.number == 0
    assert found.compared[0].verdict == Verdict.BETTER
    assert found.deviations == ("somebody looked at 3 seeds before, which was not planned",)
    # p = 2 / 2**7 passes a bar of 0.05, and not that of this look
    seven = plan_of(looks=[7, 16], seeds=16)
    assert held(seven, arm("a", 0.0, seeds=7), arm("b", 0.1, seeds=7)).compared[0].verdict == Verdict.OPEN
    assert held(plan_of(seeds=7), arm("a", 0.0, seeds=7), arm("b", 0.1, seeds=7)).compared[0].verdict == Verdict.BETTER


def test_runs_nobody_knows_the_time_of_are_said_to_be_unchecked() -> None:
    found = held(plan_of(), arm("a", 0.0, began=None), arm("b", 0.1))
    assert found.as_planned and found.unchecked == (
        "when 8 of 16 runs began is not known, so not whether the plan is older",
    )
