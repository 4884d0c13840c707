"""A film shows the episode that was played, whole, in a file of bounded size."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("PIL")
pytest.importorskip("pygame")

from PIL import Image
from small_environments import Fresh, environment, played

from sharpen.core.errors import UsageError
from sharpen.tasks.gym import film


def test_a_film_shows_the_episode_that_is_played_without_a_camera(fresh: Fresh, tmp_path: Path) -> None:
    task = environment("Pendulum-v1", max_steps=30)
    policy, item = fresh(task), task.episodes(3)[2]
    made = film.film(task.making, policy, item, tmp_path / "a.gif")
    assert made.played.total == played(task, policy, [item])[0].hard
    assert made.pictures == 31
    with Image.open(tmp_path / "a.gif") as shown:
        assert shown.format == "GIF" and shown.n_frames > 20 and shown.width <= film.WIDEST


def test_a_long_episode_is_shown_whole_and_faster() -> None:
    reel = film.Reel(25.0)
    for step in range(10 * film.LONGEST):
        reel.take(lambda step=step: step)  # type: ignore[misc]
    assert film.LONGEST // 2 <= len(reel.pictures) <= film.LONGEST
    assert reel.pictures == list(range(0, 10 * film.LONGEST, 16))
    assert reel.speed == 16


@pytest.mark.parametrize("name", ["film.mp4", "film"])
def test_another_format_is_refused_before_anything_is_played(name: str) -> None:
    with pytest.raises(UsageError, match=r"ends in \.gif"):
        film.check(Path(name))
