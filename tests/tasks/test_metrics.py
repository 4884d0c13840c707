"""What each metric counts as right, what it says about what is wrong, and how it refuses what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.tasks import matching, metrics
from sharpen.tasks.metrics import Score


def score(metric: str, answer: str, reference: object, **inputs: object) -> Score:
    return metrics.get(metric)(answer, Item("i", {"input": "?", **inputs}, reference))


@pytest.mark.parametrize(
    ("metric", "answer", "reference"),
    [
        ("exact_match", " 42.\n", "42"),
        ("exact_match", '"Paris"', "paris"),
        ("exact_match", "**New   York**", "New York"),
        ("exact_match", "ﬁne", "fine"),
        ("exact_match", "colour", ["color", "colour"]),
        ("exact_match", "42", 42),
        ("contains", "I think it is Paris, France.", "paris"),
        ("f1", "The cat sat!", "a cat sat"),
        ("numeric", "12 + 5 = 17", "17"),
        ("numeric", "about 1,234.5 metres", 1234.5),
        ("numeric", "−3", "-3"),
        ("numeric", "it weighs 12kg", 12),
        ("numeric", "$5", 5),
        ("numeric", "The answer is 17.", 17),
        ("numeric?tolerance=0.01", "100.9", "100"),
        ("json_equal", '{"b": 2, "a": 1.0}', {"a": 1, "b": 2}),
        ("json_equal", 'Here you are:\n```json\n{"a": [1, 2]}\n```', '{"a": [1, 2]}'),
        ("json_equal", 'It is {"a": null} I think', {"a": None}),
        ("choice?labels=red,green", "I would say green.", "green"),
        ("choice?labels=red,light red", "light red", "light red"),
        ("choice?labels=red,green", "Not red. The answer is: green", "green"),
        ("choice?labels=A,B,C", "(B)", "B"),
        ("choice?labels=A,B,C", "A dog barks, so the answer is **C**.", "C"),
        ("choice?labels=red,green", "The answer is green\nand not red.", "green"),
        ("choice", "weather, of course", "weather"),
        ("choice?labels=正面,负面", "答案是正面", "正面"),
        ("choice?labels=+,*", "*", "*"),
        ("contains", "答えは東京です。", "東京"),
        ("contains", "a * b", "*"),
        ("contains", "It ends here.", "."),
        ("exact_match", " * ", "*"),
        ("f1", "the", "The"),
        ("f1", "!", "!"),
        ("numeric", "minus: –3", "–3"),
        ("numeric", "1,234.5", "about 1,234.5 kg"),
        ("numeric", "50", "50%"),
        ("numeric", "-1000", "−1e3"),
        ("numeric", "5", ["five", "5"]),
        ("regex", "order #123 shipped", r"#\d{3}\b"),
    ],
)
def test_right_answers(metric: str, answer: str, reference: object) -> None:
    assert score(metric, answer, reference) == Score(1.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "answer", "reference", "says"),
    [
        (
            "exact_match",
            "It is forty-two, I think, or maybe more",
            "42",
            "expected a number, got a sentence of 8 words",
        ),
        ("exact_match", "the answer is 42 of course", "42", "among other words"),
        ("exact_match", "43", "42", "wrong value"),
        ("exact_match", "", "42", "got nothing"),
        ("exact_match", "4 March 2021", "2021-03-04", "of the form 0000-00-00"),
        ("contains", "Parisian life", "Paris", "does not occur"),
        ("numeric", "many", "3", "expected a number, got the word 'many'"),
        ("numeric", "4", "3", "too large"),
        ("numeric?tolerance=0.01", "102", "100", "too large"),
        ("json_equal", "sum is 4", {"sum": 4}, "expected JSON, got"),
        (
            "json_equal",
            '{"sum": 5, "note": "x"}',
            {"sum": 4, "unit": "m"},
            "missing 'unit'; unexpected 'note'; wrong value in 'sum'",
        ),
        ("json_equal", '{"sum": true}', {"sum": 1}, "wrong value in 'sum'"),
        ("json_equal", "[4]", {"sum": 4}, "expected a JSON object, got a JSON list"),
        ("choice?labels=red,green", "red or green", "green", "expected one label"),
        ("choice?labels=red,green", "red", "green", "wrong label"),
        ("choice?labels=A,B", "a dog", "A", "expected one label"),
        ("regex", "nothing here", r"#\d+", "pattern is not found"),
        ("exact_match", "", ".", "got nothing"),
        ("exact_match", "**", "*", "got the word '**'"),
        ("exact_match", "`", "*", "wrong value"),
        ("f1", "", "The", "got nothing"),
        ("f1", "a", "The", "0% word overlap"),
        ("f1", "?", "!", "0% word overlap"),
        ("contains", "", "*", "does not occur"),
        ("choice?labels=+,*", "", "*", "expected one label"),
        ("json_equal", "[" * 9000 + "]" * 9000, {"a": 1}, "expected JSON, got the word"),
        ("json_equal", '{"a":' * 4000, {"a": 1}, "expected JSON, got the word"),
        ("json_equal", "9" * 5000, {"a": 1}, "expected JSON, got the number"),
        ("exact_match", "[" * 9000, "42", "expected a number, got the word"),
        ("numeric", "1e999", "3", "expected a number, got the number 1e999"),
    ],
)
def test_wrong_answers_come_with_a_reason(metric: str, answer: str, reference: object, says: str) -> None:
    result = score(metric, answer, reference)
    assert result.hard == 0.0 and 0.0 <= result.soft < 1.0
    assert says in result.feedback


def test_soft_scores_are_finer_than_hard_ones() -> None:
    assert score("exact_match", "New Jersey", "New York").soft == 0.5
    assert score("f1", "cat sat", "cat sat on mat") == Score(
        2 / 3, 2 / 3, "67% word overlap with the expected answer; got 2 words"
    )
    assert score("json_equal", '{"a": 1, "b": 3}', {"a": 1, "b": 2}).soft == 0.5
    assert 0 < score("numeric", "90", "100").soft < score("numeric", "99", "100").soft < 1


def test_choices_of_the_item_come_before_those_of_the_metric() -> None:
    assert score("choice?labels=x,y", "blue it is", "blue", choices=["blue", "grey"]).hard == 1.0


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("exactmatch", "did you mean 'exact_match'"),
        ("numeric?tolerance=big", "tolerance must be a number"),
        ("numeric?tolerance=-1", "tolerance must be a number"),
        ("numeric?tolerence=1", "did you mean 'tolerance'"),
        ("f1?x=1", "takes no settings"),
        ("nowhere.py:f", "no such file"),
        ("sharpen.nowhere:f", "no Python module"),
        ("sharpen.core.digest:digset", "did you mean 'digest'"),
        ("sharpen.core.candidate:MAIN_PART", "not a function"),
    ],
)
def test_unknown_metrics_and_settings_are_named(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        metrics.get(spec)


@pytest.mark.parametrize(
    ("metric", "reference"),
    [
        *(("numeric", text) for text in ("many", "1/2", "1 000", "1'000", "12,5", "1.000.000", "2024-01-15", "10-20")),
        *(("numeric", text) for text in ("0x10", "3½", "-$5", "1e999", True, ["5", "1/2"])),
        ("json_equal", "not json"),
        ("json_equal", "[" * 9000),
        ("regex", "(unclosed"),
        ("regex", "a{99999999999}"),
        ("regex", ["x", "(unclosed"]),
        ("f1", None),
        ("f1", []),
    ],
)
def test_a_reference_the_metric_cannot_use_names_the_item(metric: str, reference: object) -> None:
    with pytest.raises(UsageError, match="item 'i'"):
        score(metric, "x", reference)


def test_identity_tells_settings_apart() -> None:
    specs = ["numeric", "numeric?tolerance=0.1", "exact_match", "choice?labels=a,b", "choice"]
    assert len({metrics.get(spec).identity for spec in specs}) == len(specs)
    assert metrics.get("choice", labels=("a", "b")).identity == metrics.get("choice?labels=a,b").identity
    assert metrics.get("choice", labels=("a,b",)).identity != metrics.get("choice", labels=("a", "b")).identity


def test_a_label_of_the_data_may_hold_a_comma() -> None:
    metric = metrics.get("choice", labels=("No, never", "Yes, definitely"))
    assert metric("I say: yes, definitely.", Item("i", {"input": "?"}, "Yes, definitely")).hard == 1.0
    assert metric("No, never", Item("i", {"input": "?"}, "Yes, definitely")).hard == 0.0


RETURNS = """
import enum
def bool_(answer, item): return answer == item.reference
def float_(answer, item): return 0.25
def pair(answer, item): return 0.5, "half"
def mapping(answer, item): return {"score": 1, "soft": 0.5, "feedback": "f"}
def text(answer, item): return "1.0"
def nothing(answer, item): return None
def large(answer, item): return 2
def nan(answer, item): return float("nan")
def typo(answer, item): return {"score": 1, "feedbak": "f"}
def no_score(answer, item): return {"soft": 1}
async def later(answer, item): return 1.0
"""


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(RETURNS)
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bool_", Score(1.0, 1.0)),
        ("float_", Score(0.25, 0.25)),
        ("pair", Score(0.5, 0.5, "half")),
        ("mapping", Score(1.0, 0.5, "f")),
    ],
)
def test_own_functions_may_return_what_suits_them(functions: Path, name: str, expected: Score) -> None:
    assert score(f"{functions}:{name}", "x", "x") == expected


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("name", ["text", "nothing", "large", "nan", "typo", "no_score", "later"])
def test_a_wrong_return_value_names_the_function_and_the_item(functions: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"mine.py:{name}' on item 'i'"):
        score(f"{functions}:{name}", "x", "x")


def test_an_edited_function_has_another_identity(functions: Path) -> None:
    before = metrics.get(f"{functions}:pair").identity
    functions.write_text(RETURNS + "\n# changed\n")
    assert metrics.get(f"{functions}:pair").identity != before


def test_a_function_from_a_module_works_too() -> None:
    assert metrics.get("sharpen.core.digest:digest").name == "digest"


def test_a_syntax_error_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ndef f(:\n")
    with pytest.raises(UsageError, match="line 2"):
        metrics.get(f"{tmp_path}/bad.py:f")


texts = st.text(max_size=60)


@given(texts)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = matching.normalised(text)
    assert matching.normalised(once) == once


PIECES = (
    *(
        "[" * 9000,
        "]" * 9000,
        '{"a":' * 9000,
        "[",
        "]",
        "{",
        "}",
        '"',
        ":",
        ",",
        "9" * 5000,
        "1e999",
        "NaN",
        "Infinity",
    ),
    *(
        "-",
        "–",
        ".",
        "0",
        "½",
        "²",
        "٣",
        "\ud800",
        "\x00",
        "```",
        "```json\n",
        "\n",
        "a",
        "b",
        "answer is ",
        "(",
        "*",
        " ",
    ),
)
hostile = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
REFERENCES: dict[str, object] = {"numeric": "3", "json_equal": {"a": [1]}, "regex": r"\d+|b", "choice": "a"}


@example("json_equal", "[" * 9000)
@example("exact_match", "[" * 9000)
@settings(max_examples=60)
@given(st.sampled_from(metrics.names()), texts | hostile)
def test_no_answer_whatever_makes_a_metric_fail(metric: str, answer: str) -> None:
    result = score(metric, answer, REFERENCES.get(metric, "a *b* 12"))
    assert 0.0 <= result.hard <= 1.0 and 0.0 <= result.soft <= 1.0
    assert (result.hard == 1.0) or result.feedback


@given(st.sampled_from(["exact_match", "contains", "f1", "choice?labels=a,b"]), texts, texts)
def test_scores_lie_between_nought_and_one_and_wrong_ones_have_feedback(
    metric: str, answer: str, reference: str
) -> None:
    result = score(metric, answer, reference)
    assert 0.0 <= result.hard <= 1.0 and 0.0 <= result.soft <= 1.0
    assert (result.hard == 1.0) or result.feedback


written = st.text(min_size=1, max_size=20).filter(str.strip) | st.sampled_from(
    [*"*.`'\"!", "the", "a", "**", "A.", "東京"]
)


@given(st.sampled_from(["exact_match", "contains", "f1", "choice"]), written)
def test_the_reference_itself_is_right_and_nothing_is_not(metric: str, reference: str) -> None:
    scorer, item = metrics.get(metric, labels=(reference,)), Item("i", {"input": "?"}, reference)
    assert scorer(reference, item).hard == 1.0
    assert scorer("", item).hard == 0.0


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_numbers_are_read_as_they_are_written(number: float) -> None:
    assert matching.last_number(f"the answer is {number!r}.") == number
    assert matching.last_number(f"{int(number):,}") == int(number)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_json_equality_is_symmetric_and_overlap_agrees(a: object, b: object) -> None:
    assert matching.same_json(a, a)
    assert matching.same_json(a, b) == matching.same_json(b, a)
    assert (matching.json_overlap(a, b) == 1.0) == matching.same_json(a, b)
    assert matching.same_json(a, b) or matching.json_difference(a, b)
