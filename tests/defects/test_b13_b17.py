"""Defects B13 to B17 that trainers of this kind are known for, each with a test that shows what is right here instead."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import pytest

from sharpen.bench.config import load
from sharpen.bench.runner import Session, build, prepare
from sharpen.cli.app import run
from sharpen.core.errors import UsageError
from sharpen.gates.sequential import Sequential
from sharpen.gates.strict import Strict
from sharpen.testing.simulator import Scenario, simulate_decisions


@pytest.mark.parametrize("split", ["tset", "all", "valid_unseen", "", "Test"])
def test_b13_b14_an_unknown_split_is_an_error_and_never_another_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], split: str
) -> None:
    """B13, B14: `sharpen eval` names the splits there are, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    code = run(["eval", "initial", "--task", "codebook", "--model", "scripted/rules", "--split", split])
    said = capfd.readouterr()
    assert code == 2 and said.out == ""
    assert said.err.strip() == f"sharpen: unknown split {split!r}; the splits are train, val, test"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("items,share", [(17, 0.4), (40, 0.6)])
def test_b15_a_candidate_that_changes_nothing_passes_at_most_as_often_as_alpha_says(items: int, share: float) -> None:
    """B15: items that succeed by chance alone, an incumbent with a lucky score or not; the peers' gate beside it."""
    noise = Scenario((share,) * items, (share,) * items)
    runs = 150
    gate = Sequential()
    most = gate.alpha + 2.6 * math.sqrt(gate.alpha * (1 - gate.alpha) / runs)
    assert simulate_decisions(gate, noise, runs=runs, seed=15).rate <= most
    assert simulate_decisions(gate, noise, runs=runs, seed=16, lucky=4).rate <= most
    assert simulate_decisions(Strict(), noise, runs=runs, seed=15).rate > 0.3, "the simulation can tell"


@pytest.mark.parametrize(
    "settings,says",
    [
        ({"trainer": {"params": {"edit_budgt": 9}}}, r"unknown key 'edit_budgt' \(did you mean 'edit_budget'\?\)"),
        ({"trainer": {"params": {"gate_params": {"alhpa": 0.1}}}}, r"'alhpa' \(did you mean 'alpha'\?\)"),
        ({"trainer": {"name": "reflakt"}}, r"'reflakt' \(did you mean 'reflact'\?\)"),
        ({"modles": {}}, r"unknown key 'modles' \(did you mean 'models'\?\)"),
        ({"models": {"targte": "scripted/rules"}}, r"'models.targte' \(did you mean 'target'\?\)"),
        ({"budget": {"cals": 3}}, r"'budget.cals' \(did you mean 'calls'\?\)"),
        ({"task": {"name": "codebook", "limt": 3}}, r"'task.limt' \(did you mean 'limit'\?\)"),
    ],
)
def test_b16_a_key_with_a_typing_error_is_an_error_with_a_suggestion(settings: dict[str, object], says: str) -> None:
    """B16: at every level of a configuration, before anything runs."""
    scripted = {"models": {"target": "scripted/rules"}}
    with pytest.raises(UsageError, match=says):
        build(load(None, {"task": "codebook", **scripted, **settings}))


def test_b17_ids_are_names_and_never_paths(tmp_path: Path) -> None:
    """B17: whatever stands in a data file's ids, a training writes into its own folder alone."""
    ids = [
        "../../escape",
        "/tmp/escape",
        "..",
        ".",
        "a/b",
        "a\\b",
        "con",
        "C:\\x",
        "nul\u2028",
        "~",
        "$HOME",
        "x" * 300,
    ]
    words = ["red", "blue", "green"]
    rows = [
        {"id": f"{ids[n % 12]}{n // 12 or ''}", "input": f"question {n}", "answer": words[n % 3]} for n in range(36)
    ]
    data = tmp_path / "inside" / "data.jsonl"
    data.parent.mkdir()
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = set(tmp_path.rglob("*"))
    models = {"target": "scripted/echo", "optimizer": "scripted/rules"}
    params = {"epochs": 1, "batch_size": 6, "screen_items": 4}
    config = load(None, {"task": str(data), "models": models, "trainer": {"params": params}})
    folder, parts = prepare(config, tmp_path / "inside" / "runs")
    assert asyncio.run(Session(parts, folder).run()) == "done"
    written = set(tmp_path.rglob("*")) - before
    home = tmp_path / "inside" / "runs"
    assert written and all(path == home or home in path.parents for path in written)
    assert not [path for path in written if "escape" in path.name] and not Path("/tmp/escape").exists()
    told = (Session(parts, folder).job_folder / "events.jsonl").read_text()
    assert "../../escape" in told, "the id itself is kept"
