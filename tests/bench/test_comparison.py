"""Comparisons of arms whose numbers are known: who is paired, what the rows say, what is adjusted, and what is warned of."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from sharpen.bench.comparison.assembly import Compared, Verdict, Wish, compare_all
from sharpen.bench.comparison.matchups import matchups
from sharpen.bench.comparison.measure import Measure, choose
from sharpen.bench.comparison.pairing import parse
from sharpen.bench.comparison.planning import Pilot, least, pilot_of, plans, spreads_of
from sharpen.bench.comparison.spread import spreads
from sharpen.bench.evidence.nouns import Arm, Cost, Run
from sharpen.bench.evidence.stories import parameters_in
from sharpen.core.errors import UsageError
from sharpen.report import comparison, comparison_files, pictures
from sharpen.report.page import svg
from sharpen.stats.curves import Curve

REWARD = Measure("reward", "final")


def run(seed: int | None, value: float, *, task: str = "t", name: str = "", steps: int = 1, **more: object) -> Run:
    curve = Curve(tuple(float(n) for n in range(steps)), tuple(value * (n + 1) / steps for n in range(steps)), "reward")
    return Run(name or f"r{seed}", "here", task, seed, {"reward": curve}, **more)  # type: ignore[arg-type]


def arm(name: str, values: dict[int, float], task: str = "t") -> Arm:
    return Arm(name, tuple(run(seed, value, task=task) for seed, value in values.items()))


def compared(old: Arm, new: Arm, pairs: str = "auto", measure: Measure = REWARD, **wish: object) -> Compared:
    (found,) = compare_all([(old, new)], Wish(measure, parse(pairs), **wish))  # type: ignore[arg-type]
    return found


NOISY = {0: 0.10, 1: 0.52, 2: 0.31, 3: 0.77, 4: 0.45, 5: 0.66, 6: 0.24, 7: 0.59}


def shifted(by: float) -> dict[int, float]:
    return {seed: value + by + 0.01 * (seed % 3) for seed, value in NOISY.items()}


class TestPairing:
    def test_pairing_by_seed_finds_what_independent_groups_can_not(self) -> None:
        old, new = arm("a", NOISY), arm("b", shifted(0.05))
        together, apart = compared(old, new), compared(old, new, "none")
        assert together.rows[0].paired and not apart.rows[0].paired
        assert together.rows[0].effect == pytest.approx(apart.rows[0].effect)
        assert (together.verdict, apart.verdict) == (Verdict.BETTER, Verdict.OPEN)
        assert together.p == 2 / 2**8

    def test_the_order_of_runs_does_not_matter(self) -> None:
        backwards = dict(reversed(shifted(0.05).items()))
        assert (
            compared(arm("a", NOISY), arm("b", backwards)).rows
            == compared(arm("a", NOISY), arm("b", shifted(0.05))).rows
        )

    def test_seeds_that_only_one_arm_has_are_left_out_and_told(self) -> None:
        found = compared(arm("a", NOISY), arm("b", {**{s: v for s, v in shifted(0.05).items() if s < 6}, 40: 9.0}))
        assert found.rows[0].n == 6
        assert any("6, 7 only in a" in warning for warning in found.warnings)
        assert any("40 only in b" in warning for warning in found.warnings)

    def test_a_seed_twice_in_an_arm_is_refused(self) -> None:
        twice = Arm("b", (*arm("b", shifted(0.1)).runs, run(3, 0.9, name="again")))
        with pytest.raises(UsageError, match="b has the seed 3 twice on t: r3 and again"):
            compared(arm("a", NOISY), twice)

    def test_pairs_can_be_named(self) -> None:
        old = Arm("a", tuple(run(None, value, name=f"a{n}") for n, value in NOISY.items()))
        new = Arm("b", tuple(run(None, value, name=f"b{n}") for n, value in shifted(0.05).items()))
        named = compared(old, new, ",".join(f"a{n}=b{n}" for n in NOISY))
        assert named.rows[0].effect == pytest.approx(compared(arm("a", NOISY), arm("b", shifted(0.05))).rows[0].effect)
        assert named.rows[0].paired
        with pytest.raises(UsageError, match="no run 'b99'"):
            compared(old, new, "a0=b99")
        with pytest.raises(UsageError, match="in two pairs"):
            compared(old, new, "a0=b0,a1=b0")


class TestVerdict:
    def test_fewer_than_six_pairs_are_never_enough_and_it_says_how_many_more(self) -> None:
        few = {seed: value for seed, value in NOISY.items() if seed < 4}
        found = compared(arm("a", few), arm("b", {s: v + 0.3 + s / 100 for s, v in few.items()}))
        assert found.verdict == Verdict.OPEN
        assert found.rows[0].more == 2
        assert any("4 pairs can't come below" in warning for warning in found.warnings)
        assert comparison.sentence(found).startswith("Too few seeds to say whether b is better than a")
        assert "It takes 6 seeds." in comparison.sentence(found)

    def test_lower_is_better_turns_the_verdict_around(self) -> None:
        old, new = arm("a", NOISY), arm("b", shifted(0.2))
        assert compared(old, new).verdict == Verdict.BETTER
        assert compared(old, new, measure=Measure("reward", "final", lower=True)).verdict == Verdict.WORSE

    def test_equality_needs_a_margin(self) -> None:
        old = arm("a", NOISY)
        new = arm("b", {seed: value + 0.002 * (-1) ** seed for seed, value in NOISY.items()})
        assert compared(old, new).verdict == Verdict.OPEN
        assert compared(old, new, margin=0.05).verdict == Verdict.SAME

    def test_one_run_against_one_is_refused_with_the_difference(self) -> None:
        with pytest.raises(UsageError, match=r"differ by \+0.5, but one run says nothing"):
            compared(arm("a", {0: 0.25}), arm("b", {0: 0.75}))
        with pytest.raises(
            UsageError, match=r"1 run of a against 2 of b on t, which make one pair, differ by \+0.5, but"
        ):
            compared(arm("a", {0: 0.25}), arm("b", {0: 0.75, 1: 0.5}))

    def test_a_share_against_per_cent_is_remarked_on_since_it_may_be_right(self) -> None:
        found = compared(arm("a", NOISY), arm("b", {seed: 100 * value for seed, value in NOISY.items()}))
        assert found.verdict == Verdict.BETTER
        assert any("if one is a share and the other per cent" in warning for warning in found.warnings)

    def test_a_value_nothing_can_be_computed_from_is_named(self) -> None:
        for values in ({0: 0.1, 1: 1e300}, {0: 0.1, 1: -1e300}):
            with pytest.raises(UsageError, match=r"b on t, r1: reward is -?1e\+300"):
                compared(arm("a", NOISY), arm("b", values))
        largest = {seed: 9e69 * value for seed, value in NOISY.items()}
        with np.errstate(all="raise"):
            for pairs in ("auto", "none"):
                assert np.isfinite(compared(arm("a", largest), arm("b", NOISY), pairs).rows[0].effect)

    def test_one_value_of_each_run_is_no_curve_that_parts(self) -> None:
        assert compared(arm("a", NOISY), arm("b", shifted(5.0))).diverged == (("t", None),)
        old, new = (Arm(n, tuple(run(s, v + by, steps=4) for s, v in NOISY.items())) for n, by in (("a", 0), ("b", 5)))
        assert compared(old, new).diverged[0][1] is not None


class TestSeveral:
    def test_holm_is_over_all_tasks_of_all_arms_and_the_mean_over_tasks_decides(self) -> None:
        tasks = ("x", "y", "z")
        arms = [
            Arm(name, tuple(one for task in tasks for one in arm(name, shifted(by), task).runs))
            for name, by in (("base", 0.0), ("up", 0.1), ("same", 0.0))
        ]
        up, same = compare_all(matchups([("s", arms)], None), Wish(REWARD))
        assert up.row_tests == 6 and up.tests == 2
        assert [row.adjusted for row in up.rows] == [pytest.approx(6 * 2 / 2**8)] * 3
        assert up.pooled is not None and up.pooled.effect.value == pytest.approx(0.1)
        assert (up.verdict, same.verdict) == (Verdict.BETTER, Verdict.OPEN)

    def test_max_t_finds_what_holm_can_not_and_its_intervals_hold_together(self) -> None:
        rng = np.random.default_rng(6)
        baseline = dict(enumerate(rng.normal(0, 1, 8)))
        arms = [arm("base", baseline), *(
            arm(name, {s: 1.05 + 0.05 * float(rng.normal()) for s in baseline}) for name in "bcdefg"
        )]  # fmt: skip
        met = matchups([("s", arms)], None)
        holm, joint = compare_all(met, Wish(REWARD)), compare_all(met, Wish(REWARD, adjust="max-t"))
        assert all(a.adjusted < b.adjusted for a, b in zip(joint, holm, strict=True))  # type: ignore[operator]
        for one in joint:
            effect = one.rows[0].result.effect  # type: ignore[union-attr]
            assert (effect.low > 0) == (one.verdict == Verdict.BETTER) == (one.rows[0].verdict == "better")
        assert (
            comparison.family(joint) == "Max-t of Westfall and Young over 6 comparisons; the intervals hold together."
        )
        with pytest.raises(UsageError, match="same seeds or items of one task"):
            compare_all([*met[:1], (arms[0], arm("z", {0: 1.0, 1: 2.0, 2: 1.5}))], Wish(REWARD, adjust="max-t"))

    def test_many_warnings_of_one_kind_are_a_line_with_a_count(self) -> None:
        many = [f"r{n} of b on t is not at its end" for n in range(30)]
        shown = comparison.counted_warnings([*many, "other", *many])
        assert shown == ["r0 of b on t is not at its end (and 29 more like this; --json has them all)", "other"]

    def test_policies_of_unlike_size_are_warned_of(self) -> None:
        old, new = (Arm(n, tuple(run(s, 0.1 * s + by, parameters=size) for s in range(6)))
                    for n, by, size in (("a", 0.0, 100.0), ("b", 0.01, 5000.0)))  # fmt: skip
        assert any("parameter counts are not the same" in warning for warning in compared(old, new).warnings)
        assert parameters_in({"policy.parameters": 12, "policy.trained_parameters": 10}) == 10.0
        assert parameters_in({}) is None

    def test_a_radar_is_drawn_of_anybodys_scores_on_three_tasks(self) -> None:
        arms = [Arm(n, tuple(r for t in "xyz" for r in arm(n, {s: v / 2 + by for s, v in NOISY.items()}, t).runs))
                for n, by in (("a", 0.0), ("b", 0.1))]  # fmt: skip
        found = compare_all(matchups([("s", arms)], None), Wish(REWARD))
        assert "Means by task" in svg.on_light(pictures.compared(found, arms))

    def test_a_family_too_large_for_its_pairs_is_warned_of(self) -> None:
        six = {seed: value for seed, value in NOISY.items() if seed < 6}
        arms = [arm("base", six), *(arm(name, {s: v + 0.5 + s / 100 for s, v in six.items()}) for name in ("b", "c"))]
        alone, both = (
            compare_all(matchups([("s", arms[:2])], None), Wish(REWARD)),
            compare_all(matchups([("s", arms)], None), Wish(REWARD)),
        )
        assert alone[0].verdict == Verdict.BETTER and both[0].verdict == Verdict.OPEN
        assert any(
            "b against base: adjusted for 2 tests, no row can come below 0.062" in warning
            for warning in both[0].warnings
        )

    def test_what_passes_before_it_leaves_a_row_its_reach(self) -> None:
        tasks, many = ("x", "y", "z"), dict(enumerate(np.linspace(0.3, 0.6, 14)))
        better = {seed: value + 0.5 + seed / 100 for seed, value in many.items()}
        base, b = (Arm(n, tuple(r for t in tasks for r in arm(n, v, t).runs)) for n, v in (("a", many), ("b", better)))
        c = arm("c", {seed: better[seed] for seed in range(6)}, "x")
        found = compare_all([(base, b), (base, c)], Wish(REWARD))
        assert found[1].verdict == Verdict.BETTER and found[1].rows[0].adjusted == pytest.approx(2**-5)
        assert not any("can come below" in warning for one in found for warning in one.warnings)
        assert comparison.family(found).startswith("Holm's rule over 4 tests in 2 comparisons. Over all tasks")

    def test_arms_without_any_spread_are_proven_by_their_number_alone(self) -> None:
        def constant(name: str, by: float, seeds: int) -> Arm:
            return Arm(name, tuple(run(s, 0.5 + 0.1 * s + by, task=task) for task in "xy" for s in range(seeds)))

        few = compared(constant("a", 0.0, 2), constant("b", 0.01, 2), margin=0.05)
        assert few.pooled is not None and few.pooled.p == pytest.approx(2 / 2**2)
        assert few.verdict == Verdict.OPEN
        assert "p = 0.500, 2 seeds, each over its tasks" in comparison.sentence(few)
        assert comparison.family([few]).endswith("runs of one seed on several tasks are averaged.")
        many = compared(constant("a", 0.0, 6), constant("b", 0.01, 6))
        assert many.verdict == Verdict.BETTER and many.p == pytest.approx(2 / 2**6)
        flat = [Arm(n, tuple(run(s, v, task=t) for t in "xy" for s in range(2))) for n, v in (("a", 0.5), ("b", 0.6))]
        apart = compared(*flat, pairs="none")
        assert apart.p == pytest.approx(1 / 3) and apart.verdict == Verdict.OPEN
        assert "2 against 2 seeds, each over its tasks" in comparison.sentence(apart)

    @pytest.mark.parametrize("pairs", ["auto", "none"])
    def test_tasks_of_one_seed_are_not_taken_as_independent(self, pairs: str) -> None:
        rng, trials, false = np.random.default_rng(3), 25, 0
        for _ in range(trials):
            shared = rng.normal(size=(2, 6))  # what a seed does to an arm on every task
            arms = [
                Arm(name, tuple(run(s, float(own[s] + 0.3 * rng.normal()), task=t) for t in "xyz" for s in range(6)))
                for name, own in zip("ab", shared, strict=True)
            ]
            false += compared(*arms, pairs=pairs, resamples=999).verdict != Verdict.OPEN
        # As if they were independent, 36 % were false.
        assert false / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)

    def test_seeds_that_ran_on_some_of_the_tasks_count_with_what_they_have(self) -> None:
        rng = np.random.default_rng(2)
        full = {t: dict(enumerate(rng.normal(0, 1, 9))) for t in "xy"}
        arms = [
            Arm(name, tuple(run(s, v + by + 0.1 * s, task=t) for t, own in full.items() for s, v in own.items()
                            if (t, s) != ("y", 8)))
            for name, by in (("a", 0.0), ("b", 2.0))
        ]  # fmt: skip
        found = compared(*arms)
        assert found.pooled is not None and found.pooled.seeds == (9,) and found.verdict == Verdict.BETTER
        assert found.pooled.effect.value == pytest.approx(np.mean([row.effect for row in found.rows]))

    def test_every_row_has_a_verdict_of_its_own(self) -> None:
        up, flat = (
            {s: v + 0.5 + 0.01 * s for s, v in NOISY.items()},
            {s: v - 0.01 * (-1) ** s for s, v in NOISY.items()},
        )
        old = Arm("a", (*arm("a", NOISY, "x").runs, *arm("a", NOISY, "y").runs))
        found = compared(old, Arm("b", (*arm("b", up, "x").runs, *arm("b", flat, "y").runs)))
        assert [row.verdict for row in found.rows] == ["better", "can't tell"]
        table = list(csv.DictReader(io.StringIO(comparison_files.as_csv([found]))))
        assert [row["verdict"] for row in table] == ["better", "can't tell", found.verdict]

    @pytest.mark.parametrize(
        ("side", "verdict"), [("better", "better"), ("worse", "can't tell"), ("both", "can't tell")]
    )
    def test_one_side_alone_takes_half_the_p(self, side: str, verdict: str) -> None:
        five = {s: v for s, v in NOISY.items() if s < 5}
        new = arm("b", {s: v + 0.5 + 0.01 * s for s, v in five.items()})
        found = compared(arm("a", five), new, side=side)
        assert found.verdict == verdict
        assert found.p == pytest.approx({"better": 1 / 2**5, "worse": 1 - 1 / 2**5, "both": 2 / 2**5}[side])
        effect = found.rows[0].result.effect  # type: ignore[union-attr]
        assert side != "better" or effect.low > 0
        assert ("one-sided" in comparison.sentence(found)) == (side != "both")

    def test_the_interval_over_tasks_is_that_of_independent_means(self) -> None:
        rng = np.random.default_rng(1)
        old = [arm("a", dict(enumerate(rng.normal(0, 1, 9))), task) for task in "xy"]
        new = [arm("b", dict(enumerate(rng.normal(1, 1, 9))), task) for task in "xy"]
        # No seed of one task is a seed of the other.
        old[1], new[1] = (
            Arm(one.name, tuple(replace(r, seed=(r.seed or 0) + 100) for r in one.runs)) for one in (old[1], new[1])
        )
        found = compared(*(Arm(name, (*one.runs, *two.runs)) for name, (one, two) in (("a", old), ("b", new))))
        differences = [
            np.array(
                [
                    n.curves["reward"].values[0] - o.curves["reward"].values[0]
                    for o, n in zip(a.runs, b.runs, strict=True)
                ]
            )
            for a, b in zip(old, new, strict=True)
        ]
        error = np.sqrt(sum(d.var(ddof=1) / 9 for d in differences)) / 2
        assert found.pooled is not None
        effect = found.pooled.effect
        assert effect.value == pytest.approx(np.mean([d.mean() for d in differences]))
        assert 2.0 < effect.half_width / error < 2.4

    def test_arms_of_two_sources_meet_by_name(self) -> None:
        first = [arm("a", NOISY), arm("b", NOISY)]
        met = matchups([("one", first), ("two", [arm("b", NOISY), arm("c", NOISY)])], None)
        assert [(old.name, new.name) for old, new in met] == [("one@b", "two@b")]
        with pytest.raises(UsageError, match=r"has 2 arms .* name one as one@a"):
            matchups([("one", first), ("two", [arm("b", NOISY)])], None)


class TestWhatElseDiffers:
    def test_unlike_versions_commits_parameters_and_broken_runs_are_warned_of(self) -> None:
        old = Arm("a", tuple(run(s, v, version="1", commit="abc", parameters=100.0) for s, v in NOISY.items()))
        new = Arm("b", (*(run(s, v + 0.1, version="2", commit="def", parameters=150.0) for s, v in NOISY.items()),
                        run(99, 0.1, name="broken", lacks="failed: no disk", steps=1)))  # fmt: skip
        said = " ".join(compared(old, new).warnings)
        for words in (
            "versions are not the same",
            "git commits",
            "parameter counts",
            "broken of b on t failed: no disk",
        ):
            assert words in said

    def test_curves_of_unequal_length_are_compared_over_what_both_cover(self) -> None:
        old = Arm("a", tuple(run(s, v, steps=10) for s, v in NOISY.items()))
        new = Arm("b", tuple(run(s, 2 * v, steps=20) for s, v in NOISY.items()))
        found = compared(old, new, measure=Measure("reward", "final"))
        assert found.rows[0].effect == pytest.approx(0.0)
        assert any("compared over 0 to 9" in warning for warning in found.warnings)

    def test_items_that_flipped_cost_and_settings_are_told(self) -> None:
        old = Arm("a", (run(0, 0, finals={"test": 0.4}, items={"p": 1.0, "q": 0.0, "r": 1.0, "s": 0.0, "t": 0.0},
                            settings={"lr": 0.1, "k": 1}),))  # fmt: skip
        new = Arm("b", (run(0, 0, finals={"test": 0.6}, items={"p": 0.0, "q": 1.0, "r": 1.0, "s": 1.0, "t": 0.0},
                            settings={"lr": 0.2, "k": 1}, cost=Cost(calls=50), gain=0.1),))  # fmt: skip
        found = compared(old, new, measure=Measure("test", "test"))
        (flips,) = found.flips
        assert ([one[0] for one in flips.better], [one[0] for one in flips.worse], flips.same) == (["q", "s"], ["p"], 2)
        assert found.rows[0].over == "items" and found.rows[0].n == 5
        assert [(s.name, s.old, s.new) for s in found.settings] == [("lr", "0.1", "0.2")]
        assert found.costs[1].per_point is not None and found.costs[1].per_point.calls == pytest.approx(5.0)

    def test_the_files_hold_what_was_found(self) -> None:
        found = [compared(arm("a<b>", NOISY), arm("b", shifted(0.1)))]
        page = comparison_files.as_page(found)
        assert "a&lt;b&gt;" in page and "<b>" not in page and "<script" not in page
        rows = comparison_files.as_csv(found).splitlines()
        assert len(rows) == 2 and len(rows[0].split(",")) == len(
            rows[1].replace('"reward, last value"', "x").split(",")
        )
        assert comparison_files.as_json(found)["comparisons"][0]["verdict"] == "better"


def test_the_metric_must_be_chosen_where_there_are_several_and_must_be_there() -> None:
    two = Arm("a", (Run("r", "here", curves={"x": Curve((0,), (1,)), "y": Curve((0,), (1,))}),))
    with pytest.raises(UsageError, match="2 metrics; choose one with --metric: x, y"):
        choose([two])
    with pytest.raises(UsageError, match="no metric 'z'"):
        choose([two], metric="z")


def test_plans_use_the_upper_limit_and_never_fewer_runs_than_a_test_needs() -> None:
    pilot = Pilot("p", (0.10, 0.12, 0.09, 0.15, 0.11), paired=True)
    spreads = spreads_of(pilot, None)
    assert spreads[0][1] > spreads[1][1]
    careful, seen = plans(spreads, pilot, paired=True, effect=5.0, n=None, target=0.8, alpha=0.05)
    assert careful.n == seen.n == least(True, 0.05) == 6
    small = plans(spreads, pilot, paired=True, effect=0.01, n=None, target=0.8, alpha=0.05)
    assert small[0].n is not None and small[1].n is not None and small[0].n > small[1].n


def test_the_spread_of_steps_counts_nobody_as_arrived_who_never_was() -> None:
    def climbing(name: str, rates: list[float]) -> Arm:
        grid = tuple(float(step) for step in range(11))
        runs = [
            Run(f"{name}{n}", "here", "", n, {"reward": Curve(grid, tuple(rate * step for step in grid), "reward")})
            for n, rate in enumerate(rates)
        ]
        return Arm(name, tuple(runs))

    measure = Measure("reward", "steps_to", threshold=1.0)
    some, none = climbing("some", [0.2, 0.25, 0.5, 0.05]), climbing("none", [0.01, 0.02, 0.03, 0.04])
    found, *others = spreads([some, none], measure, threshold=0.05, most=None, paired=False)
    assert not others and found.values == pytest.approx((5.0, 4.0, 2.0, 10.0))
    said = " ".join(found.notes)
    assert "1 of 4 runs never came to 1: mean and spread are of steps up to 10" in said
    assert "left out: none: none of 4 runs came to 1" in said
    with pytest.raises(UsageError, match="none of 4 runs came to 1"):
        pilot_of([none], measure, None, pairs=False)
    with pytest.raises(UsageError, match="none of 8 runs came to 1"):
        pilot_of([none, climbing("other", [0.01] * 4)], measure, None, pairs=True)
    assert pilot_of([none, some], measure, None, pairs=True).values == pytest.approx((-5.0, -6.0, -8.0, 0.0))
