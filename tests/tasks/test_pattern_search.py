"""Regular expressions on answers: the same as Python's own, and never without end."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.cli.app import run
from sharpen.core.errors import ScoringTimeout, UsageError
from sharpen.core.item import Item
from sharpen.tasks import metrics
from sharpen.tasks.pattern_search import BadPattern, PatternSearcher

ENDLESS = r"^(a+)+$"
SHARED = PatternSearcher()


@pytest.fixture(scope="module")
def searcher() -> PatternSearcher:
    return PatternSearcher(seconds=0.3)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(max_examples=60)
@given(st.from_regex(r"[a-c.*+?|()\[\]{}1-3\\wd^$]{0,8}", fullmatch=True), st.text("abc12 \n\u0660\x00", max_size=12))
def test_an_answer_is_the_one_python_gives(pattern: str, text: str) -> None:
    try:
        expected: object = re.search(pattern, text) is not None
    except re.error:
        expected = BadPattern
    try:
        seen: object = SHARED.finds_any([pattern], text)
    except BadPattern:
        seen = BadPattern
    assert seen == expected


def test_a_search_without_end_is_ended_and_the_next_one_works(searcher: PatternSearcher) -> None:
    with pytest.raises(ScoringTimeout, match=r"more than 0\.3 s in an answer of 41 characters"):
        searcher.finds_any([ENDLESS], "a" * 40 + "b")
    assert searcher.finds_any([ENDLESS], "aaa")


def test_a_pattern_that_takes_memory_without_end_is_refused(searcher: PatternSearcher) -> None:
    with pytest.raises((BadPattern, ScoringTimeout)):
        searcher.finds_any(["(?:" * 3 + "a" + "{1,5000})" * 3 + "|" + "(" * 50_000], "a")
    assert searcher.finds_any(["a"], "a")


def test_threads_and_forked_processes_get_their_own_answers(searcher: PatternSearcher) -> None:
    assert searcher.finds_any(["a"], "a")
    wrong: list[int] = []

    def search(number: int) -> None:
        wrong.extend(n for n in range(50) if searcher.finds_any([f"^{n}$"], str(number)) != (n == number))

    threads = [threading.Thread(target=search, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        own = PatternSearcher()
        os._exit(0 if own.finds_any(["b"], "b") and not searcher_in_child(searcher) else 1)
    for thread in threads:
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not wrong


def searcher_in_child(searcher: PatternSearcher) -> bool:
    """In a forked process: what the parent's process would answer must not be read here."""
    searcher._lock = threading.Lock()  # a thread of the parent may have held it
    return searcher.finds_any(["x"], "y")


def test_one_item_whose_pattern_never_ends_fails_and_the_others_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sharpen.tasks.pattern_search.PatternSearcher.__init__.__defaults__", (0.1,))
    endless = r"^(\w?){50}(\w?){50}(\w?){50}!$"  # on the word "unknown", which is what the script answers
    rows = [
        {
            "input": f"{split} {number}",
            "answer": endless if number == 3 and split == "test" else "unknown",
            "split": split,
        }
        for number in range(8)
        for split in ("train", "val", "test")
    ]
    Path("data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ["train", "data.jsonl", "--model", "scripted/rules", "--trainer", "noop", "--json", "task.metric=regex"]
    assert run([*words, "max_failures=0.5"]) == 0
    test = json.loads(capfd.readouterr().out)["test"]["initial"]
    assert (test["failed"], test["n"], test["mean"]) == (1, 7, 1.0)
    events = next(tmp_path.glob("runs/*/jobs/*/events.jsonl")).read_text()
    assert "took more than 0.1 s in an answer of 7 characters" in events


def test_a_reference_whose_search_never_ends_on_nothing_is_refused_when_the_data_is_read() -> None:
    metric = metrics.get("regex")
    with pytest.raises(UsageError, match="item 'a'"):
        metrics.check(metric, Item("a", {"input": "q"}, "(" * 100_000))
