"""Published figures of Miller 2024, "Adding Error Bars to Evals" (arXiv:2411.00640), from the inputs the paper states.

Its ratios of clustered to plain errors (DROP 3.05, MGSM 1.88) were measured on answers of models that were not published, so
they can't be computed again. What is checked is that groups of the shape and likeness which give such a ratio do give it.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from sharpen.stats import power
from sharpen.stats.clusters import Sampled, clustered, sampled

NORMAL = NormalDist()


def test_969_questions_find_three_points_with_power_08_where_the_differences_vary_by_a_third() -> None:
    # The worked example: omega^2 = 1/9, delta = 0.03, alpha = 0.05, power 0.8, many samples of each question.
    by_normal = ((NORMAL.inv_cdf(0.975) + NORMAL.inv_cdf(0.8)) ** 2 / 9) / 0.03**2
    assert round(by_normal) == 969
    # Ours takes Student's t in place of the normal distribution, which asks for two more.
    assert power.runs_needed(0.03, 1 / 3, paired=True) == 971
    assert power.power(0.03, 1 / 3, 969, paired=True) == pytest.approx(0.8, abs=0.001)
    found = power.smallest_effect(969, 1 / 3, paired=True)
    assert found == pytest.approx(0.03, abs=5e-5)


@pytest.mark.parametrize(("samples", "saved"), [(1, 0.0), (2, 1 / 3), (4, 1 / 2), (6, 5 / 9)])
def test_sampling_each_question_again_saves_what_the_paper_says(samples: int, saved: float) -> None:
    # Chances of success spread evenly over 0..1, so 1/12 between questions and 1/6 within.
    even = Sampled(0.5, 0.0, between=1 / 12, within=1 / 6, items=1)
    assert 1 - (even.error_with(samples) / even.error_with(1)) ** 2 == pytest.approx(saved)


def test_the_two_parts_of_the_variance_are_found_in_answers_of_that_kind() -> None:
    generator = np.random.Generator(np.random.PCG64(3))
    chances = generator.random(4000)
    found = sampled((generator.random((4000, 4)) < chances[:, None]).astype(float).tolist())
    assert found.between == pytest.approx(1 / 12, rel=0.08)
    assert found.within == pytest.approx(1 / 6, rel=0.04)
    assert 1 - (found.error_with(2) / found.error_with(1)) ** 2 == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(("groups", "size", "ratio"), [(250, 10, 1.88), (588, 16, 3.05)])
def test_groups_as_like_as_the_published_ratios_say_give_those_ratios(groups: int, size: int, ratio: float) -> None:
    # The squared ratio is 1 + (size - 1) * likeness. MGSM asks 250 questions in 10 languages; that a passage of DROP has 16
    # is taken for the example.
    likeness = (ratio**2 - 1) / (size - 1)
    assert 0 < likeness < 1
    generator = np.random.Generator(np.random.PCG64(4))
    shared = math.sqrt(likeness) * generator.normal(size=(groups, 1))
    values = shared + math.sqrt(1 - likeness) * generator.normal(size=(groups, size))
    found = clustered(values.ravel().tolist(), np.repeat(np.arange(groups), size).tolist())
    assert found.error / found.naive == pytest.approx(ratio, rel=0.06)
