"""Questions fit the optimizer's context: nothing is dropped unsaid, and what cannot fit says so."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharpen.trainers.reflact.fit import fit, shorten
from sharpen.trainers.reflact.prompts import block

LONG = ("attempts", "memory")
SAID = re.compile(r" \[\.\.\. (\d+) characters left out \.\.\.\] ")
SKIPPED = re.compile(r"\[\.\.\. (\d+) messages left out \.\.\.\]")
texts = st.builds(lambda word, times: word * times, st.text(min_size=1, max_size=4), st.integers(0, 900))
messages = st.tuples(st.sampled_from(["user", "assistant"]), texts).map(list)
attempts = st.fixed_dictionaries(
    {
        "item": st.text(max_size=6),
        "answer": texts,
        "score": st.floats(0, 1),
        "trajectory": st.lists(messages, max_size=7),
    }
)
materials = st.fixed_dictionaries(
    {"skill": texts, "attempts": st.lists(attempts, max_size=4), "memory": st.fixed_dictionaries({"steps": texts})}
)


def size(data: Any) -> int:
    return len(block(data))


def same_or_said(before: Any, after: Any) -> None:
    """Whatever is missing from `after` is counted in it, at its place."""
    if isinstance(before, str):
        said = SAID.search(after) if after != before else None
        if after != before:
            assert said is not None, f"{before[:40]!r} was shortened without a word"
            kept = len(after) - len(said[0])
            assert kept + int(said[1]) == len(before) and len(after) < len(before)
            assert before.startswith(after[: said.start()]) and before.endswith(after[said.end() :])
    elif isinstance(before, dict):
        assert before.keys() == after.keys()
        for key in before:
            told = [SKIPPED.fullmatch(message[1]) for message in after[key]] if key == "trajectory" else []
            if any(told):
                assert [int(one[1]) for one in told if one] == [len(before[key]) - 3] and len(after[key]) == 4
                same_or_said([before[key][0], *before[key][-2:]], [after[key][0], *after[key][-2:]])
            else:
                same_or_said(before[key], after[key])
    elif isinstance(before, list):
        assert len(before) == len(after), "no attempt and no message is dropped"
        for one, other in zip(before, after, strict=True):
            same_or_said(one, other)
    else:
        assert before == after


@settings(max_examples=150, deadline=None)
@given(materials, st.integers(0, 8_000))
@example({"skill": "", "attempts": [{"item": str(n), "answer": "a" * 170} for n in range(9)], "memory": {}}, 1700)
@example({"skill": "", "attempts": [{"item": "x", "answer": "", "trajectory": [["user", "a"]] * 5}], "memory": {}}, 10)
def test_it_is_never_longer_than_allowed_unless_it_says_so_and_nothing_is_dropped_unsaid(
    data: dict[str, Any], most: int
) -> None:
    fitted = fit(data, most, long=LONG)
    assert fitted.fits == (size(fitted.data) <= most)
    same_or_said(data, fitted.data)
    assert fitted.data["skill"] == data["skill"], "what may not be shortened stays whole"
    assert [a["item"] for a in fitted.data["attempts"]] == [a["item"] for a in data["attempts"]]
    assert fitted.left_out == size(data) - size(fitted.data)
    assert (fitted.left_out > 0) == (fitted.data != data)


@given(materials)
def test_what_fits_is_left_alone(data: dict[str, Any]) -> None:
    fitted = fit(data, size(data), long=LONG)
    assert (fitted.data, fitted.left_out, fitted.fits) == (data, 0, True)


@settings(deadline=None)
@given(materials, st.integers(0, 8_000))
def test_more_room_leaves_out_no_more(data: dict[str, Any], most: int) -> None:
    assert fit(data, most + 500, long=LONG).left_out <= fit(data, most, long=LONG).left_out


@given(st.text(max_size=400), st.integers(1, 200))
def test_a_shortened_text_keeps_both_ends_and_counts_its_middle(text: str, most: int) -> None:
    short = shorten(text, most)
    same_or_said(text, short)
    assert len(short) <= len(text)


def test_a_long_context_is_cut_only_as_far_as_needed() -> None:
    data = {"attempts": [{"item": "1", "answer": "a" * 6000}, {"item": "2", "answer": "short " * 20}]}
    fitted = fit(data, 5000, long=LONG)
    assert fitted.fits and size(fitted.data) > 3000
    assert fitted.data["attempts"][1] == data["attempts"][1], "the longest text is cut, the short one stays"
