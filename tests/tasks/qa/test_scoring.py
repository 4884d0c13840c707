"""What counts as right: the final answer alone, whatever stands around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.item import Item
from sharpen.tasks.metrics import Score
from sharpen.tasks.qa import extracting, latex, scoring

OPTIONS = ("Paris", "London", "A river in France", "New London")


def score(name: str, answer: str, reference: object, **inputs: object) -> Score:
    return scoring.named(name)(answer, Item("1", {"input": "?", **inputs}, reference))


def chosen(answer: str) -> str | None:
    return extracting.option(answer, ("A", "B", "C", "D"), OPTIONS)


@pytest.mark.parametrize(
    ("answer", "wanted", "hard", "soft"),
    [
        ("the Eiffel Tower.", "Eiffel tower", 1, 1.0),
        ("It is tall. It is old.\nAnswer: **Eiffel Tower**", "The Eiffel Tower", 1, 1.0),
        ("Eiffel Tower, Big Ben, the Louvre or the Kremlin", "Eiffel Tower", 0, 2 * 2 / (2 + 7)),
        ("Eiffel Tower\nAnswer: Big Ben", "Eiffel Tower", 0, 0.0),
        ("The answer to the question is the Eiffel Tower", "Eiffel Tower", 1, 1.0),
        ("Answer:\nEiffel Tower", "Eiffel Tower", 1, 1.0),
        ("Answer: Tower", ["Louvre", "Eiffel Tower"], 0, 2 / 3),
        ("yes, it was", "yes", 0, 0.0),
        ("Answer: no", "yes", 0, 0.0),
        ("", "yes", 0, 0.0),
        ("Answer:", "yes", 0, 0.0),
    ],
)
def test_text_is_compared_by_its_final_answer(answer: str, wanted: object, hard: int, soft: float) -> None:
    found = score("text", answer, wanted)
    assert (found.hard, round(found.soft, 6)) == (hard, round(soft, 6))
    assert bool(found.feedback) == (not hard)


def test_more_words_never_help() -> None:
    scores = [score("text", "Answer: Big Ben" + " and more" * n, "Big Ben").soft for n in range(6)]
    assert scores == sorted(scores, reverse=True) and scores[0] == 1.0 > scores[1]


@pytest.mark.parametrize(
    ("answer", "wanted", "hard", "soft"),
    [
        ("Answer: Ash and Lowe", [["Lowe", "Ash"]], 1, 1.0),
        ("Lowe, Ash", [["Lowe", "Ash"]], 1, 1.0),
        ("Lowe", [["Lowe", "Ash"]], 0, 0.5),
        ("Lowe, Ash, Birch, Elm", [["Lowe", "Ash"]], 0, 0.5),
        ("7", ["7", "7 points"], 1, 1.0),
        ("8 points", ["7 points"], 0, 0.0),
        ("7 goals", ["7 points"], 0, 0.5),
    ],
)
def test_drop_compares_parts_and_wants_the_number(answer: str, wanted: object, hard: int, soft: float) -> None:
    found = score("spans", answer, wanted)
    assert (found.hard, found.soft) == (hard, soft)


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        ("18", "18", True),
        ("She has 3 and 5, so 3+5=8.\n#### 8", "8", True),
        ("The answer is $1,234.00.", "1234", True),
        ("The answer is 3 + 4 = 7", "7", True),
        ("The answer is 18 eggs at 2 dollars", "18", True),
        ("First 18, then 20.", "18", False),
        ("Answer: 1/2", "0.5", True),
        ("-5", "5", False),
        ("Answer: −5", "-5", True),
        ("\\boxed{42}, since 6 times 7 is 43 less 1", "42", True),
        ("eighteen", "18", False),
    ],
)
def test_numbers(answer: str, wanted: str, right: bool) -> None:
    found = score("number", answer, wanted)
    assert found.hard == found.soft == float(right)


@pytest.mark.parametrize(
    ("given_", "wanted", "same"),
    [
        (r"\frac{5}{6}", r"\dfrac56", True),
        (r"\frac{1}{2}", "0.5", True),
        (r"5{,}040", "5040", True),
        ("5,040", "5040", True),
        (r"70^\circ", "70", True),
        (r"70^{\circ}", "70", True),
        (r"\$12", "12", True),
        (r"50\%", "50", True),
        (r"12\text{ cm}", "12", True),
        (r"\text{even}", "even", True),
        ("x = 7", "7", True),
        (r"\left( -2, 2 \right)", "(-2,2)", True),
        ("(-2,2]", "(-2,2)", False),
        (r"(\frac{1}{2},3)", "(0.5,3)", True),
        ("(1,2)", "(2,1)", False),
        (r"9\pi", "9pi", True),
        (r"5\sqrt{3}", r"5 \sqrt 3", True),
        (r"\sqrt{75}", r"5\sqrt{3}", True),
        (r"\frac{\sqrt{3}}{2}", r"\frac{\sqrt{3}}{2}", True),
        ("7", "8", False),
        ("", "", False),
        ("1,2", "12", False),
    ],
)
def test_mathematical_answers(given_: str, wanted: str, same: bool) -> None:
    assert latex.same(given_, wanted) is same


def test_math_takes_the_last_box() -> None:
    assert score("boxed", r"First \boxed{3}, no: \boxed{\frac{1}{2}} it is", r"\frac12").hard == 1
    assert score("boxed", "Answer: 0.5", r"\frac12").hard == 1
    assert score("boxed", r"\boxed{\frac{1}{", r"\frac12").hard == 0


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("A", "A"),
        ("b", "B"),
        ("(C)", "C"),
        ("Answer: B", "B"),
        ("**Answer: B) London**", "B"),
        ("The answer is (D), because the new one is meant.", "D"),
        ("Paris", "A"),
        ("The answer is London.", "B"),
        ("It is New London", "D"),
        ("A river in France", "C"),
        ("\\boxed{C}", "C"),
        ("I think about A and B.\nB", "B"),
        ("First A looked right. The answer is A. No: the answer is B.", "B"),
        ("The answer is A or B", None),
        ("(A) or (B)", None),
        ("(A) London", None),
        ("Paris or London", None),
        ("A dog barks", None),
        ("I cannot say", None),
        ("E", None),
        ("", None),
    ],
)
def test_an_option_is_taken_only_where_the_answer_settles_on_it(answer: str, label: str | None) -> None:
    assert chosen(answer) == label


def test_naming_all_options_scores_nothing() -> None:
    inputs = {"choices": list(OPTIONS), "labels": list("ABCD")}
    assert score("choice", "(A) (B) (C) (D)", "A", **inputs).hard == 0
    assert score("choice", "A, B, C, D", "D", **inputs).hard == 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Yes.", True),
        ("no", False),
        ("There is no doubt about it.\nAnswer: yes", True),
        ("Answer: **No**, since candles need air", False),
        ("true", True),
        ("yes and no", True),
        ("Some say yes, some say no", None),
        ("maybe", None),
    ],
)
def test_yes_or_no(answer: str, said: bool | None) -> None:
    assert extracting.yes_or_no(answer) is said


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        ("The answer is: (B)", "(B)", True),
        ("The final answer is b.", "(B)", True),
        ("(b)", "B", True),
        ("So... The answer is 4.0", "4", True),
        ("The answer is: fig, pear", "fig,pear", True),
        ("the answer is [a]", "a", True),
        ("The answer is it's", "its", True),
        ("The answer is who?", "who", True),
        ("The answer is $\\boxed{\\text{yes}}$", "yes", True),
        ("The answer is (A)", "(B)", False),
        ("The answer is fig pear", "pear fig", False),
    ],
)
def test_big_bench_rules(answer: str, wanted: str, right: bool) -> None:
    assert score("fuzzy", answer, wanted).hard == float(right)


@given(st.sampled_from(["text", "spans", "number", "boxed", "yes_no", "fuzzy", "choice"]), st.text(max_size=60))
def test_no_answer_breaks_a_scorer(name: str, answer: str) -> None:
    found = score(name, answer, "17", choices=["a", "b"], labels=["A", "B"])
    assert 0 <= found.hard <= found.soft <= 1
