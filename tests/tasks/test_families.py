"""Families of tasks, named before a slash, and how settings reach a task by its name."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from sharpen.bench.config import load
from sharpen.bench.runner import make_task
from sharpen.core.errors import UsageError
from sharpen.tasks import registry


def test_a_family_makes_tasks_by_the_name_behind_a_slash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = types.ModuleType("sharpen.tasks.made_up")
    made.__dict__.update(
        DESCRIPTION="Made up.",
        members=lambda: ["one", "two"],
        make=lambda name, *, deal, level=1: (name, deal.limit, level) and registry.get("codebook", limit=deal.limit),
    )
    monkeypatch.setitem(sys.modules, "sharpen.tasks.made_up", made)
    monkeypatch.setitem(registry._FAMILIES, "made-up", "made_up:make")
    assert len(registry.get("made-up/one", limit=3, level=2).splits().train) == 3
    assert "made-up/" in registry.families() and "made-up/one" not in registry.names()
    assert [entry.members for entry in registry.known("made-up*")] == [2]
    with pytest.raises(UsageError, match="'made-up' is a family of tasks; name one of it, such as made-up/one"):
        registry.get("made-up")
    with pytest.raises(UsageError, match="unknown setting 'levl'; it takes limit, split_seed, level"):
        registry.get("made-up/one", levl=2)
    with pytest.raises(UsageError, match="no such file or folder: made-upp/one \\(did you mean 'made-up'"):
        registry.get("made-upp/one")
    monkeypatch.chdir(tmp_path)
    Path("made-up").mkdir()
    Path("made-up/rows.csv").write_text("input,answer\n" + "".join(f"{n},{n}\n" for n in range(10)))
    assert registry.get("made-up/rows.csv").name == "rows", "a data file in a folder of that name is a data file"


def test_settings_of_a_named_task_come_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from sharpen.tasks import registry\n\n"
        "def make(size, data, level=1):\n"
        "    task = registry.get('codebook', limit=size)\n"
        "    task.version = f'{data} {level}'\n"
        "    return task\n"
    )
    (tmp_path / "rows.jsonl").write_text("")
    (tmp_path / "config.yaml").write_text(
        "task: {name: 'own.py:make', size: 4, data: rows.jsonl, params: {level: 3}}\n"
    )
    task = make_task(load(tmp_path / "config.yaml").task)
    assert len(task.splits().val) == 4
    assert task.version.startswith(f"{tmp_path}/rows.jsonl 3-")
