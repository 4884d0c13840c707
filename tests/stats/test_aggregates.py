"""Aggregates over many tasks: rliable's values and intervals, a published table, and runs of unequal number."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.stats.aggregates import Scores, aggregate
from sharpen.stats.errors import BadData
from sharpen.stats.normalise import look_up, names
from sharpen.stats.profiles import improvement, profile

NEW = {
    "a": [1.11, 1.15, 1.18, 0.35, 1.21],
    "b": [1.32, 2.47, 0.63, 0.51, 0.99],
    "c": [0.94, 0.82, 1.09, 0.37, 0.24],
    "d": [0.65, 0.76, 1.68, 0.96, 0.8],
    "e": [0.84, 1.48, 0.49, 0.52, 1.07],
    "f": [0.61, 1.37, 0.84, 1.3, 1.18],
}
OLD = {
    "a": [0.4, 0.98, 0.48, 0.68, 0.89],
    "b": [0.75, 1.7, 1.05, 3.32, 1.51],
    "c": [0.56, 0.7, 2.26, 1.58, 0.96],
    "d": [0.62, 0.94, 0.4, 0.49, 1.49],
    "e": [1.89, 1.07, 1.67, 1.05, 2.37],
    "f": [0.62, 1.04, 1.07, 1.41, 0.67],
}
RLIABLE = {
    "iqm": (0.938125, 0.7825, 1.08125),
    "median": (0.985, 0.795, 1.133),
    "mean": (0.9643333333, 0.818, 1.119),
    "gap": (0.1893333333, 0.1133333, 0.270675),
}
PUBLISHED = {
    "SimPLe": (0.443, 0.144),
    "OTRainbow": (0.264, 0.204),
    "CURL": (0.381, 0.175),
    "DrQ": (0.357, 0.268),
    "SPR": (0.704, 0.415),
    "MuZero": (0.562, 0.227),
    "EfficientZero": (1.943, 1.090),
}
tables = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.lists(st.integers(-20, 40).map(lambda k: k / 10), min_size=1, max_size=6),
    min_size=1,
)


@pytest.mark.parametrize("name", RLIABLE)
def test_values_and_intervals_are_those_of_rliable(name: str) -> None:
    # rliable 1.2.0, stratified bootstrap of 20,000 resamples.
    value, low, high = RLIABLE[name]
    found = aggregate(Scores(NEW), resamples=20_000)[name]
    assert found.value == pytest.approx(value, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.04 * (high - low))


def test_improvement_and_profile_are_those_of_rliable() -> None:
    # rliable 1.2.0, 3,000 and 5,000 resamples.
    wins = improvement(Scores(NEW), Scores(OLD), resamples=20_000)
    assert wins.value == pytest.approx(0.4633333333, abs=1e-9)
    assert (wins.low, wins.high) == pytest.approx((0.33, 0.5933333), abs=0.015)
    shares = profile(Scores(NEW), [0.5, 1.0, 1.5, 2.0], resamples=20_000)
    assert shares.shares == pytest.approx([0.8666666667, 0.4333333333, 0.0666666667, 0.0333333333])
    assert shares.low == pytest.approx([0.7666667, 0.2666667, 0.0, 0.0], abs=1 / 29)
    assert shares.high == pytest.approx([0.9666667, 0.6, 0.1666667, 0.1], abs=1 / 29)


@pytest.mark.parametrize("method", PUBLISHED)
def test_the_published_aggregates_of_atari_100k_come_out(method: str) -> None:
    text = (Path(__file__).parent / "data" / "atari100k.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    assert len(rows) == len(names("atari57", "atari100k")) == 26
    scores = {row["game"]: [look_up("atari57", f"ALE/{row['game']}-v5").of(float(row[method]))] for row in rows}
    found = aggregate(Scores(scores), ("mean", "median"), resamples=10)
    # The printed scores are rounded, so that the last digit may differ by one.
    assert (found["mean"].value, found["median"].value) == pytest.approx(PUBLISHED[method], abs=0.0011)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_values_are_what_their_definitions_say(table: dict[str, list[float]]) -> None:
    found = aggregate(Scores(table), resamples=2)
    pooled = [score for row in table.values() for score in row]
    task_means = [np.mean(row) for row in table.values()]
    assert found["iqm"].value == pytest.approx(stats.trim_mean(pooled, 0.25))
    assert found["mean"].value == pytest.approx(np.mean(task_means))
    assert found["median"].value == pytest.approx(np.median(task_means))
    assert found["gap"].value == pytest.approx(np.mean([1 - np.minimum(row, 1).mean() for row in table.values()]))


def test_moving_all_scores_moves_everything_but_the_gap() -> None:
    before = aggregate(Scores(NEW), resamples=500)
    after = aggregate(Scores({task: [2 * s + 3 for s in row] for task, row in NEW.items()}), resamples=500)
    for name in ("iqm", "median", "mean"):
        ends = [2 * before[name].low + 3, 2 * before[name].high + 3]
        assert [after[name].low, after[name].high] == pytest.approx(ends)


def test_runs_are_drawn_within_their_task() -> None:
    steady = Scores({"a": [0.0] * 4, "b": [1.0] * 4})
    found = aggregate(steady, resamples=500)["mean"]
    assert (found.low, found.value, found.high) == (0.5, 0.5, 0.5)
    wider = aggregate(steady, resamples=2_000, tasks_too=True)["mean"]
    assert (wider.low, wider.high) == (0.0, 1.0)


def test_unequal_numbers_of_runs_agree_with_equal_ones_in_the_limit() -> None:
    uneven = {**NEW, "a": NEW["a"] * 2}
    even, odd = aggregate(Scores(NEW), resamples=4_000)["mean"], aggregate(Scores(uneven), resamples=4_000)["mean"]
    assert odd.value == pytest.approx(even.value)
    assert odd.high - odd.low == pytest.approx(even.high - even.low, rel=0.15)


def test_asking_for_fewer_statistics_changes_none_of_them() -> None:
    alone = aggregate(Scores(NEW), ("iqm",), resamples=300, seed=2)
    assert alone == {"iqm": aggregate(Scores(NEW), resamples=300, seed=2)["iqm"]}


def test_bad_scores_are_named() -> None:
    with pytest.raises(BadData, match="the arm has no scores"):
        Scores({})
    with pytest.raises(BadData, match="0 runs of PPO on pong"):
        Scores({"pong": []}, "PPO")
    with pytest.raises(BadData, match="number 2 of the runs of PPO on pong is nan"):
        Scores({"pong": [1.0, float("nan")]}, "PPO")
    with pytest.raises(BadData, match="no statistic 'best'; there are iqm, median, mean, gap"):
        aggregate(Scores(NEW), ("best",))
    with pytest.raises(BadData, match="same number of runs on every task"):
        aggregate(Scores({"a": [1.0], "b": [1.0, 2.0]}), tasks_too=True)
