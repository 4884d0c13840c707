"""Without the packages environments need, everything else works, and what is lacking is named with how to get it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from sharpen.core.errors import UsageError
from sharpen.tasks import gym, registry


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    real = importlib.util.find_spec

    def hide(package: str) -> None:
        def found(name: str, *more: Any) -> Any:
            return None if name == package else real(name, *more)

        monkeypatch.setattr(importlib.util, "find_spec", found)

    return hide


def test_an_environment_says_what_to_install(without: Callable[[str], None]) -> None:
    without("gymnasium")
    with pytest.raises(UsageError, match=r"pip install 'sharpen\[rl\]'"):
        registry.get("CartPole-v1")
    (row,) = registry.known("*-v*")
    assert row.name == gym.ROW and "sharpen[rl]" in row.missing[0]


def test_atari_says_what_to_install(without: Callable[[str], None]) -> None:
    pytest.importorskip("gymnasium")
    without("ale_py")
    with pytest.raises(UsageError, match=r"pip install 'sharpen\[atari\]'"):
        registry.get("ALE/Pong-v5")


def test_a_policy_cannot_train_without_torch_and_the_task_says_so(without: Callable[[str], None]) -> None:
    pytest.importorskip("gymnasium")
    without("torch")
    assert "torch: pip install 'sharpen[rl]'" in registry.get("CartPole-v1").requirements.missing()


def test_listing_tasks_loads_none_of_it() -> None:
    code = (
        "import sys\nfrom sharpen.tasks import registry\nassert registry.known('ENV*')\n"
        "assert not {'gymnasium', 'torch', 'stable_baselines3', 'ale_py', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
