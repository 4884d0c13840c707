"""Normalised scores, aggregates over tasks, margins either way up, steps that some never take, arms with nothing to show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sharpen.bench.comparison import references
from sharpen.bench.comparison.aggregated import Aggregated, aggregated
from sharpen.bench.comparison.assembly import Compared, Verdict, Wish, compare_all
from sharpen.bench.comparison.matchups import matchups
from sharpen.bench.comparison.measure import Measure, choose
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.bench.evidence.stories import _curves
from sharpen.core.errors import UsageError
from sharpen.report import comparison, comparison_arms, comparison_files
from sharpen.stats.aggregates import Scores, aggregate
from sharpen.stats.curves import Curve
from sharpen.stats.normalise import Reference, look_up

SCORE = Measure("reward", "final")
VAL = Measure("val", "final")
TASK = {"t": (0.5, 0.02)}
GAMES = {"Pong": (-5.0, 3.0), "Qbert": (3500.0, 200.0), "Breakout": (20.0, 2.0)}


def arm(name: str, by: float, tasks: dict[str, tuple[float, float]], seeds: int = 8, **more: object) -> Arm:
    """Scores of `mean + by * spread`, and the same noise in every arm but for a little."""
    runs = []
    for place, (task, (mean, spread)) in enumerate(tasks.items()):
        rng = np.random.default_rng(place)
        noise, own = (
            rng.normal(0, 1, seeds),
            np.random.default_rng(1000 + place + round(100 * by)).normal(0, 0.2, seeds),
        )
        for seed in range(seeds):
            value = float(mean + spread * (by + noise[seed] + own[seed]))
            curve = {name: Curve((0.0,), (value,)) for name in ("reward", "val")}
            runs.append(Run(f"{name}-{task}-{seed}", "here", task, seed, curve, **more))  # type: ignore[arg-type]
    return Arm(name, tuple(runs))


def compared(
    *arms: Arm, measure: Measure = SCORE, normalise: str | None = None, margin: float | None = None
) -> list[Compared]:
    return compare_all(matchups([("s", list(arms))], None), wish(measure, normalise, margin))


def wish(measure: Measure = SCORE, normalise: str | None = None, margin: float | None = None) -> Wish:
    return Wish(measure, margin=margin, normalise=None if normalise is None else references.parse(normalise))


def whole(*arms: Arm, measure: Measure = SCORE, normalise: str | None = None) -> Aggregated:
    found = aggregated(matchups([("s", list(arms))], None), wish(measure, normalise))
    assert found is not None
    return found


class TestNormalised:
    def test_a_table_is_looked_up_by_task_and_the_mean_of_normalised_differences_decides(self) -> None:
        (found,) = compared(arm("old", 0.0, GAMES), arm("new", 0.5, GAMES), normalise="atari57")
        over = found.pooled_normalised
        assert over is not None and found.over_tasks is over and found.p == over.p
        by_hand = [row.effect * look_up("atari57", row.task).factor for row in found.rows]
        assert over.effect.value == pytest.approx(np.mean(by_hand))
        row = found.rows[0]
        assert row.normalised is not None and row.result is not None
        assert row.normalised.old.value == pytest.approx(look_up("atari57", "Pong").of(row.result.old.value))
        assert row.normalised.effect.low == pytest.approx(row.result.effect.low / 35.3)
        assert "normalised" in comparison.sentence(found)

    def test_a_run_that_carries_its_benchmark_needs_no_option(self) -> None:
        own = Reference(-20.7, 14.6, 100.0, "ours")
        task = {"Pong": GAMES["Pong"]}
        (found,) = compared(arm("old", 0.0, task, reference=own), arm("new", 0.5, task, reference=own), measure=VAL)
        row = found.rows[0]
        assert row.normalised is not None
        assert row.normalised.effect.value == pytest.approx(100 * row.effect / 35.3)
        aggregates = whole(arm("old", 0.0, task, reference=own), arm("new", 0.5, task, reference=own), measure=VAL)
        assert aggregates.scale == 100.0
        stats = aggregates.normalised[0].statistics
        assert stats["mean"].value + stats["gap"].value == pytest.approx(100.0)

    def test_a_lower_end_above_the_upper_one_is_right_where_less_is_better_and_wrong_elsewhere(self) -> None:
        task = {"t": (5.0, 0.5)}
        less = replace(SCORE, lower=True)
        (found,) = compared(arm("old", 0.0, task), arm("new", -1.0, task), measure=less, normalise="10:0")
        row = found.rows[0]
        assert found.verdict == Verdict.BETTER and row.normalised is not None
        assert row.effect < 0 < row.normalised.effect.low < row.normalised.effect.value < row.normalised.effect.high
        with pytest.raises(
            UsageError, match="reference score 0 is worse than the random score 10, where more is better"
        ):
            compared(arm("old", 0.0, task), arm("new", -1.0, task), normalise="10:0")

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            ("3:3", "both 3: nothing to divide by"),
            ("3:x", "LOW:HIGH"),
            ("0:inf", "LOW:HIGH"),
            ("d4rl", "no reference for 'Pong'"),
            ("atari", "no table of references 'atari'"),
        ],
    )
    def test_references_that_can_not_be_used_say_why(self, given: str, complaint: str) -> None:
        with pytest.raises(UsageError, match=complaint):
            compared(arm("old", 0.0, GAMES), arm("new", 0.5, GAMES), normalise=given)

    def test_mixed_protocols_and_missing_or_unlike_references_are_warned_of(self) -> None:
        def with_own(name: str, by: float, *, second: Reference | None) -> Arm:
            one = arm(name, by, {"x": (5.0, 1.0)}, reference=Reference(0.0, 10.0, 1.0, "no-op starts"))
            other = arm(name, by, {"y": (5.0, 1.0)}, reference=second)
            return Arm(name, (*one.runs, *other.runs))

        mixed = Reference(0.0, 10.0, 1.0, "human starts")
        (found,) = compared(with_own("a", 0.0, second=mixed), with_own("b", 0.5, second=mixed), measure=VAL)
        assert any("by 2 protocols" in warning and "human starts: y" in warning for warning in found.warnings)
        assert found.pooled_normalised is not None
        (lacking,) = compared(with_own("a", 0.0, second=None), with_own("b", 0.5, second=None), measure=VAL)
        assert lacking.pooled_normalised is None and lacking.rows[0].normalised is not None
        assert any("no reference for y" in warning for warning in lacking.warnings)
        (unlike,) = compared(
            with_own("a", 0.0, second=mixed), with_own("b", 0.5, second=replace(mixed, reference=9.0)), measure=VAL
        )
        assert any("not all runs on y have the same reference" in warning for warning in unlike.warnings)

    def test_tasks_of_quite_different_sizes_are_warned_of_where_nothing_normalises_them(self) -> None:
        (raw,) = compared(arm("old", 0.0, GAMES), arm("new", 0.5, GAMES))
        (scaled,) = compared(arm("old", 0.0, GAMES), arm("new", 0.5, GAMES), normalise="atari57")
        assert any("Qbert rules the mean over tasks" in warning for warning in raw.warnings)
        assert not any("rules the mean" in warning for warning in scaled.warnings)

    def test_a_run_s_own_reference_is_for_its_score_and_for_nothing_else(self) -> None:
        task, own = {"t": (5.0, 0.5)}, Reference(0.0, 10.0)
        arms = arm("old", 0.0, task, reference=own), arm("new", 1.0, task, reference=own)
        assert compared(*arms, measure=VAL)[0].rows[0].normalised is not None
        assert compared(*arms, measure=SCORE)[0].rows[0].normalised is None

    def test_less_is_better_where_the_runs_say_so_of_their_score(self) -> None:
        own = arm("a", 0.0, {"t": (5.0, 0.5)}, lower=True)
        assert choose([own]).lower and choose([own], metric="val").lower
        assert not choose([own], metric="reward").lower


def test_what_a_policy_s_evaluations_measured_are_curves_beside_its_score() -> None:
    def row(step: int, mean: float) -> dict[str, object]:
        metrics = {"eval_return_mean": mean, "eval_length_mean": 10 * step, "eval_success_mean": None}
        return {"step": step, "current_score": mean, "best_score": mean, "batch_score": None, "metrics": metrics}

    found = _curves([row(1, 0.5), row(2, 0.7)], "r")
    assert set(found) == {"val", "best", "eval/return_mean", "eval/length_mean"}
    assert (found["eval/length_mean"].steps, found["eval/length_mean"].values) == ((1, 2), (10, 20))


class TestAggregates:
    def test_they_are_those_of_the_library_over_all_runs(self) -> None:
        arms = [arm("old", 0.0, GAMES), arm("new", 0.5, GAMES, seeds=6), arm("third", 0.1, GAMES)]
        found = whole(*arms, normalise="atari57")
        assert found.runs == {"old": 24, "new": 18, "third": 24}
        scores = {
            game: look_up("atari57", game).of_all([run.curves["reward"].values[0] for run in arms[1].on(game)])
            for game in GAMES
        }
        plain = aggregate(Scores(scores), resamples=10_000)
        for name in ("mean", "median", "iqm", "gap"):
            assert found.normalised[1].statistics[name].value == pytest.approx(plain[name].value)
            assert found.normalised[1].statistics[name].low == pytest.approx(plain[name].low)
        assert "gap" not in found.raw[0].statistics, "raw scores of games have no goal"
        assert [(win.old, win.new) for win in found.wins] == [("old", "new"), ("old", "third")]
        assert found.wins[0].probability.value > found.wins[1].probability.value > 0.4
        assert all(sum(shares) == pytest.approx(1.0) for shares in found.ranks.values())
        assert found.ranks["new"][0] > found.ranks["old"][0]

    def test_one_task_takes_three_runs_in_each_arm_and_its_median_is_that_of_runs(self) -> None:
        task = {"t": (0.5, 0.05)}
        pairs = matchups([("s", [arm("a", 0.0, task, 2), arm("b", 0.5, task, 2)])], None)
        assert aggregated(pairs, wish()) is None
        found = whole(arm("a", 0.0, task, 7), arm("b", 0.5, task, 7))
        values = [run.curves["reward"].values[0] for run in arm("a", 0.0, task, 7).runs]
        assert found.raw[0].statistics["median"].value == pytest.approx(np.median(values))
        assert found.raw[0].statistics["gap"].value == pytest.approx(1 - np.mean(values)), "scores in 0..1 have a goal"
        assert not found.ranks

    def test_where_less_is_better_the_lower_arm_wins_and_no_gap_is_told(self) -> None:
        task = {"t": (0.5, 0.05)}
        found = whole(arm("a", 0.0, task), arm("b", -1.5, task), measure=replace(SCORE, lower=True))
        assert found.wins[0].probability.value > 0.8
        assert "gap" not in found.raw[0].statistics

    def test_the_reports_hold_them(self) -> None:
        arms = arm("old", 0.0, GAMES), arm("new", 0.5, GAMES), arm("third", 0.1, GAMES)
        made, over = compared(*arms, normalise="atari57"), whole(*arms, normalise="atari57")
        titles = {title: table for title, table, _ in comparison_arms.sections(made, over)}
        assert list(titles) == ["Normalised", "Over 3 tasks, normalised"]
        assert titles["Over 3 tasks, normalised"][0] == ("arm", "runs", "mean", "median", "IQM", "gap to 1")
        rows = [line.split(",") for line in comparison_files.as_csv(made, over).replace('"', "").splitlines()]
        assert sum("iqm" in row for row in rows) == 4 and sum("improvement" in row for row in rows) == 2
        assert comparison_files.as_json(made, over)["aggregates"]["ranks"]["new"]
        assert "no-op starts 30 min" in comparison_files.as_page(made, "", over)


class TestMargins:
    def test_not_worse_is_shown_for_metrics_of_which_less_is_better(self) -> None:
        less = replace(SCORE, lower=True)
        # On average 0.004 lower, but not in every pair: no difference is shown, and +0.003 is out of reach.
        moves = (-0.009, -0.006, -0.008, 0.001, 0.002, -0.004)
        arms = [
            Arm(name, tuple(Run(f"{name}{n}", "", "t", n, {"reward": Curve((0.0,), (0.5 + by * move,))})
                            for n, move in enumerate(moves)))
            for name, by in (("a", 0.0), ("b", 1.0))
        ]  # fmt: skip
        (lower,) = compared(*arms, measure=less, margin=0.003)
        (higher,) = compared(*arms, margin=0.003)
        assert (lower.verdict, higher.verdict) == (Verdict.NOT_WORSE, Verdict.OPEN)
        assert comparison.sentence(lower).startswith("b is not worse than a by more than 0.003 on t")

    def test_several_tasks_are_held_against_a_margin_together(self) -> None:
        two = {"x": (0.5, 0.02), "y": (0.7, 0.02)}
        (open_one,) = compared(arm("a", 0.0, two), arm("b", 0.05, two))
        (same,) = compared(arm("a", 0.0, two), arm("b", 0.05, two), margin=0.02)
        assert (open_one.verdict, same.verdict) == (Verdict.OPEN, Verdict.SAME)
        assert comparison.sentence(same).startswith("b and a are the same within 0.02 over 2 tasks")
        assert same.margin is not None and same.pooled is not None and same.margin is same.pooled.margin

    def test_with_references_the_margin_of_several_tasks_is_a_normalised_one(self) -> None:
        two = {"x": (500.0, 20.0), "y": (700.0, 20.0)}
        arms = arm("a", 0.0, two), arm("b", 0.05, two)
        assert compared(*arms, margin=0.02)[0].verdict == Verdict.OPEN
        assert compared(*arms, margin=0.02, normalise="0:1000")[0].verdict == Verdict.SAME

    def test_several_comparisons_share_the_error(self) -> None:
        base, near = arm("a", 0.0, TASK, 6), arm("b", -0.12, TASK, 6)
        margin = next(m for m in np.arange(0.001, 0.02, 0.0001) if _alone(base, near, float(m)) == Verdict.SAME)
        others = [replace(near, name=name) for name in ("b", "c", "d", "e")]
        found = compared(base, *others, margin=float(margin))
        assert len(found) == 4 and all(one.verdict != Verdict.SAME for one in found)


def _alone(base: Arm, near: Arm, margin: float) -> Verdict:
    return compared(base, near, margin=margin)[0].verdict


class TestNothingToShow:
    def broken(self, name: str) -> Arm:
        return Arm(name, tuple(Run(f"{name}{n}", "here", "t", n, lacks="failed: no disk") for n in range(3)))

    def test_an_arm_without_a_run_is_named_with_the_reason_and_the_rest_is_compared(self) -> None:
        (found,) = compared(arm("a", 0.0, TASK), self.broken("b"), arm("c", 1.0, TASK))
        assert (found.old, found.new, found.verdict) == ("a", "c", Verdict.BETTER)
        assert any(
            "b is left out: none of its runs can be used (b0 and 2 more: failed: no disk)" in one
            for one in found.warnings
        )

    def test_the_next_arm_stands_in_for_a_baseline_without_a_run(self) -> None:
        (found,) = compared(self.broken("a"), arm("b", 0.0, TASK), arm("c", 1.0, TASK))
        assert (found.old, found.new) == ("b", "c")
        assert any("compared with b instead" in warning for warning in found.warnings)

    def test_it_stops_where_fewer_than_two_are_left(self) -> None:
        with pytest.raises(UsageError, match=r"only a is left. b is left out: .*b0 and 2 more: failed: no disk"):
            compared(arm("a", 0.0, TASK), self.broken("b"))
        with pytest.raises(UsageError, match="none is left"):
            compared(self.broken("a"), self.broken("b"))

    def test_a_task_an_arm_has_no_run_on_is_left_out_alone(self) -> None:
        two = {"t": (0.5, 0.05), "u": (0.5, 0.05)}
        half = Arm("b", (*arm("b", 1.0, TASK).runs, Run("lost", "here", "u", 0, lacks="failed: no disk")))
        (found,) = compared(arm("a", 0.0, two), half)
        assert [row.task for row in found.rows] == ["t"]
        assert any("no run of b on u can be used: lost failed: no disk" in warning for warning in found.warnings)

    def test_an_arm_with_a_single_run_does_not_keep_the_others_from_being_compared(self) -> None:
        (found,) = compared(arm("a", 0.0, TASK), arm("b", 1.0, TASK, seeds=1), arm("c", 1.0, TASK))
        assert found.new == "c"
        assert any("b is left out" in warning and "one run says nothing" in warning for warning in found.warnings)


class TestTimes:
    def climbing(self, name: str, rates: list[float], steps: int = 10) -> Arm:
        grid = tuple(float(n) for n in range(steps + 1))
        return Arm(
            name,
            tuple(
                Run(f"{name}{n}", "here", "", n, {"reward": Curve(grid, tuple(rate * step for step in grid))})
                for n, rate in enumerate(rates)
            ),
        )

    MEASURE = Measure("reward", "steps_to", threshold=1.0)

    def test_runs_that_never_get_there_are_modelled(self) -> None:
        slow, fast = [0.05, 0.06, 0.07, 0.08, 0.11, 0.12], [0.2, 0.21, 0.25, 0.3, 0.09, 0.4]
        (found,) = compared(self.climbing("slow", slow), self.climbing("fast", fast), measure=self.MEASURE)
        row = found.rows[0]
        assert row.result is not None and row.times is not None
        assert (row.times.old.reached, row.times.new.reached, row.times.until) == (2, 5, 10.0)
        assert row.times.old.median is None and row.times.new.median == pytest.approx(4.0)
        cut = [np.mean([min(1 / rate, 10.0) for rate in rates]) for rates in (slow, fast)]
        assert row.effect == pytest.approx(cut[1] - cut[0])
        assert row.times.new.restricted_mean is not None
        assert row.times.new.restricted_mean.value == pytest.approx(cut[1])
        assert row.result.test.method == "log-rank, exact swaps within pairs"
        assert any("5 of 12 runs never came to 1" in warning for warning in found.warnings)
        assert "restricted means" in row.result.effect.method

    def test_where_all_get_there_the_steps_are_compared_as_they_are(self) -> None:
        rates = [0.2, 0.25, 0.3, 0.35, 0.4, 0.5]
        (found,) = compared(
            self.climbing("a", rates), self.climbing("b", [1.2 * rate for rate in rates]), measure=self.MEASURE
        )
        assert found.verdict == Verdict.BETTER and found.rows[0].result is not None
        assert found.rows[0].result.test.method == "sign flips and skew-corrected t"
        assert not any("never" in warning for warning in found.warnings)

    def test_where_nobody_gets_there_nothing_is_claimed(self) -> None:
        (found,) = compared(self.climbing("a", [0.01] * 6), self.climbing("b", [0.02] * 6), measure=self.MEASURE)
        assert (found.verdict, found.p) == (Verdict.OPEN, 1.0)
        assert "No difference was seen at all" in comparison.sentence(found)

    def test_the_table_says_who_got_there(self) -> None:
        found = compared(
            self.climbing("a", [0.05, 0.2, 0.3]), self.climbing("b", [0.1, 0.3, 0.4]), measure=self.MEASURE
        )
        ((title, (_, rows), _),) = comparison_arms.sections(found, None)
        assert title == "On the way"
        assert [row[1:4] for row in rows] == [["a", "2 of 3", "5"], ["b", "3 of 3", "3.33333"]]
