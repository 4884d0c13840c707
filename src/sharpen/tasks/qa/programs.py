"""Families whose answer is a program that must pass tests: HumanEval and MBPP.

The reference holds what runs the tests; the program is taken out of the answer, put together with the tests and run in the
sandbox by `sharpen.tasks.qa.code`.
"""

from __future__ import annotations

from collections.abc import Iterator

from sharpen.tasks.qa.family import Draft, Family, Row, Shape

_SKILL = "Write the Python function that is asked for. Answer with the whole function in one ```python block."
_NOTES = ("The last Python block of the answer is run against tests; imports must be in it.",)


def _humaneval(row: Row) -> Iterator[Draft]:
    checked = {
        "solution": row["prompt"] + str(row.get("canonical_solution") or ""),
        "entry": row["entry_point"],
        "before": row["prompt"],
        "setup": row["test"],
        "tests": [f"check({row['entry_point']})"],
    }
    yield Draft(row["prompt"], checked, row["task_id"])


def _mbpp(row: Row) -> Iterator[Draft]:
    text = row.get("text") or row["prompt"]
    tests = [str(test) for test in row["test_list"]]
    setup = "\n".join([*(row.get("test_imports") or ()), str(row.get("test_setup_code") or "")]).strip()
    number = int(row["task_id"])
    shown = "\n".join(tests)
    yield Draft(
        f"{text}\n\nYour function must pass these tests:\n{shown}",
        {"solution": row.get("code") or "", "entry": "", "before": "", "setup": setup, "tests": tests},
        f"mbpp-{number}",
        split=_mbpp_split(number),
    )


def _mbpp_split(number: int) -> str:
    """MBPP is published as one file; its splits are ranges of the numbers in it."""
    return "extra" if number <= 10 else "test" if number <= 510 else "val" if number <= 600 else "train"


FAMILIES = (
    Family(
        "humaneval",
        "HumanEval: complete a Python function; hidden tests decide.",
        (Shape(("task_id", "prompt", "entry_point", "test"), _humaneval),),
        "code",
        _SKILL,
        max_tokens=1024,
        notes=_NOTES,
    ),
    Family(
        "mbpp",
        "MBPP: short Python programs for beginners; the tests are shown.",
        (
            Shape(("task_id", "text", "test_list"), _mbpp),
            Shape(("task_id", "prompt", "test_list"), _mbpp),
        ),
        "code",
        _SKILL,
        max_tokens=1024,
        notes=_NOTES,
    ),
)
