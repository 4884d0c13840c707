"""Items that belong together count as one in error bars, wherever items are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharpen.bench.comparison.assembly import Wish, compare_all
from sharpen.bench.comparison.measure import Measure
from sharpen.bench.evidence.nouns import Arm, Run
from sharpen.core.candidate import Candidate
from sharpen.core.item import Item, groups_of
from sharpen.engine.evaluation import Evaluation
from sharpen.stats.summary import summarise
from sharpen.tasks.datafile import Reading, read
from sharpen.trainers.finish import paired_gain


def test_a_column_names_groups_only_where_the_settings_say_so(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(
        "".join(json.dumps({"input": f"q{n}", "answer": "a", "group": f"d{n // 2}"}) + "\n" for n in range(4))
    )
    plain = [row.item for row in read(path, Reading({}))]
    assert groups_of(plain) is None and plain[0].inputs["group"] == "d0"
    grouped = [row.item for row in read(path, Reading(fields={"group": "group"}))]
    assert [item.group for item in grouped] == ["d0", "d0", "d1", "d1"]
    assert "group" not in grouped[0].inputs


def evaluation(items: list[Item], scores: list[float]) -> Evaluation:
    return Evaluation(Candidate({"prompt": str(scores)}), items, scores, scores, {}, lambda: None)  # type: ignore[arg-type, return-value]


def test_eight_questions_about_two_documents_prove_nothing() -> None:
    scores = [0.5, 0.4, 0.45, 0.55, 0.6, 0.5, 0.52, 0.48]
    for group, verdict in ((lambda n: "", "better"), (lambda n: f"document {n // 4}", "can't tell")):
        items = [Item(str(n), {"input": n}, group=group(n)) for n in range(8)]
        assert paired_gain(evaluation(items, scores), evaluation(items, [0.1] * 8)).verdict == verdict


def test_the_interval_of_a_score_widens_where_items_go_together() -> None:
    scores = [float(n // 4 % 2) for n in range(40)]
    alone, grouped = summarise(scores), summarise(scores, groups=[n // 4 for n in range(40)])
    assert alone.low is not None and grouped.low is not None and grouped.low < alone.low - 0.1
    assert summarise(scores, groups=["one"] * 40).row()[1:3] == [0.0, 1.0]


@pytest.mark.parametrize("grouped", [False, True])
def test_compare_counts_items_by_their_group_and_says_so(grouped: bool) -> None:
    groups = {f"i{n}": f"d{n // 4}" for n in range(16)} if grouped else {}
    old, new = (
        Arm(name, (Run("r", "here", "t", 0, finals={"test": by}, items={f"i{n}": by + n % 3 / 20 for n in range(16)},
                       groups=groups),))
        for name, by in (("a", 0.2), ("b", 0.6))
    )  # fmt: skip
    new = Arm("b", (Run("r", "here", "t", 0, finals={"test": 0.6}, groups=groups,
                        items={f"i{n}": 0.6 + n % 5 / 20 for n in range(16)}),))  # fmt: skip
    (found,) = compare_all([(old, new)], Wish(Measure("test", "test"), over="items"))
    assert found.verdict == ("can't tell" if grouped else "better")
    assert any("16 items are counted by their 4 groups" in warning for warning in found.warnings) == grouped
