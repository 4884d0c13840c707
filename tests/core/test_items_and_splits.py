"""Items by content, splits that are checked, scores that are scores, costs that stay unknown, errors with kinds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.errors import (
    FATAL,
    HEALS,
    BudgetExhausted,
    ModelError,
    ModelErrorKind,
    SharpenError,
    UsageError,
    nearest,
)
from sharpen.core.item import Item
from sharpen.core.outcome import Failure, FailureKind, Outcome, scored
from sharpen.core.task import Requirements, Splits
from sharpen.core.usage import NOTHING, Usage


def item(name: str, text: str | None = None) -> Item:
    return Item(name, {"input": text or name}, "answer")


def test_the_digest_tells_every_field_apart() -> None:
    base = Item("a", {"input": "x"}, "y", "t")
    others = [
        Item("b", {"input": "x"}, "y", "t"),
        Item("a", {"input": "z"}, "y", "t"),
        Item("a", {"input": "x"}, "z", "t"),
        Item("a", {"input": "x"}, "y", "u"),
        Item("a", {"question": "x"}, "y", "t"),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == 6
    assert Item("a", {"input": "x"}, "y", "t").digest == base.digest


def test_the_text_of_an_item_is_its_input_or_all_its_fields() -> None:
    assert Item("a", {"input": 7}).text == "7"
    assert Item("a", {"place": "Rome", "year": 80}).text == "place: Rome\nyear: 80"


@pytest.mark.parametrize(
    "train,val,test,message",
    [
        ("ab", "b", "c", "item id 'b' occurs in train and in val"),
        ("a", "b", "a", "item id 'a' occurs in train and in test"),
        ("aa", "b", "c", "item id 'a' occurs twice in train"),
    ],
)
def test_an_id_may_occur_once(train: str, val: str, test: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Splits(tuple(map(item, train)), tuple(map(item, val)), tuple(map(item, test)))


def test_the_same_content_under_another_id_may_not_stand_in_two_splits() -> None:
    with pytest.raises(UsageError, match="item 'b' of test has the same content as one in train"):
        Splits((item("a", "same"),), (item("c"),), (item("b", "same"),))


def test_an_unknown_split_is_named_with_the_known_ones() -> None:
    splits = Splits((item("a"),), (item("b"),), (item("c"),))
    assert splits["val"][0].id == "b"
    with pytest.raises(UsageError, match="unknown split 'valid'; the splits are train, val, test"):
        splits["valid"]


@pytest.mark.parametrize("hard,soft", [(-0.1, None), (1.1, None), (math.nan, None), (0.5, 2.0), (0.5, math.nan)])
def test_a_score_outside_the_scale_is_refused(hard: float, soft: float | None) -> None:
    with pytest.raises(ValueError, match="item 'x'"):
        scored("x", hard, soft=soft)


def test_soft_is_hard_where_it_is_not_given() -> None:
    assert (scored("x", True).hard, scored("x", True).soft) == (1.0, 1.0)
    assert scored("x", 0, soft=0.25).soft == 0.25


def test_a_failure_has_no_score() -> None:
    failed = Outcome("x", None, None, failure=Failure(FailureKind.TIMEOUT, "late"))
    assert not failed.scored and failed.hard is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "3"])
def test_a_measure_that_is_no_finite_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match=f"measure 'length' of item 'x' must be a finite number, got {value!r}"):
        scored("x", 1, measures={"size": 2.0, "length": value})


def test_measures_are_kept_beside_the_score_as_numbers() -> None:
    assert scored("x", 0, measures={"length": 3, "ok": True}).measures == {"length": 3.0, "ok": 1.0}
    assert scored("x", 0).measures == {}


counts = st.integers(0, 10**6)
usages = st.builds(Usage, counts, counts, counts, counts, st.none() | st.integers(0, 1000).map(float))


@given(st.lists(usages, max_size=8))
def test_sums_add_up_and_unknown_money_stays_unknown(parts: list[Usage]) -> None:
    total = sum(parts, NOTHING)
    assert total.calls == sum(part.calls for part in parts)
    assert total.tokens == sum(part.prompt_tokens + part.completion_tokens for part in parts)
    known = [part.money for part in parts if part.money is not None]
    assert total.money == (sum(known) if len(known) == len(parts) else None)


@given(usages)
def test_usage_survives_storing_and_telling(usage: Usage) -> None:
    assert Usage(*usage.row()) == usage  # type: ignore[arg-type]
    told = Usage.from_told(usage.told())
    assert (told.calls, told.tokens, told.money) == (usage.calls, usage.tokens, usage.money)


def test_every_kind_of_model_error_either_heals_or_does_not() -> None:
    assert {"auth", "not_found", "bad_request"}.isdisjoint(HEALS)
    assert set(HEALS) == {"rate_limited", "unavailable", "timeout", "unreachable"}
    assert set(FATAL) == {"auth", "not_found", "unreachable"}
    error = ModelError(ModelErrorKind.RATE_LIMITED, "slow down", retry_after=2.5)
    assert (error.kind, error.retry_after, str(error), error.exit_code) == ("rate_limited", 2.5, "slow down", 1)


def test_exit_codes_follow_the_kind_of_error() -> None:
    assert (SharpenError.exit_code, UsageError.exit_code, BudgetExhausted.exit_code) == (1, 2, 3)


def test_a_near_miss_is_suggested_and_a_far_one_is_not() -> None:
    assert nearest("epoch", ["epochs", "batch_size"]) == " (did you mean 'epochs'?)"
    assert nearest("zzz", ["epochs", "batch_size"]) == ""


def test_what_a_task_needs_and_lacks_is_named() -> None:
    needs = Requirements(packages=("json", "no_such_package"), programs=("sh", "no-such-program"))
    assert needs.missing() == ["Python package no_such_package", "program no-such-program"]
