"""Fixtures of tests that need the packages environments need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from small_environments import Fresh


@pytest.fixture
def recital() -> Iterator[str]:
    """The id of an environment that gives the rewards it is told to give."""
    import gymnasium
    from small_environments import Recital

    gymnasium.register("Recital-v0", entry_point=Recital)
    yield "Recital-v0"
    del gymnasium.registry["Recital-v0"]


@pytest.fixture
def sighted() -> Iterator[str]:
    """The id of an environment that shows a picture and numbers."""
    import gymnasium
    from small_environments import Sighted

    gymnasium.register("Sighted-v0", entry_point=Sighted, max_episode_steps=4)
    yield "Sighted-v0"
    del gymnasium.registry["Sighted-v0"]


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    """Policies with fresh weights."""
    from small_environments import fresh_policy

    return partial(fresh_policy, tmp_path)
