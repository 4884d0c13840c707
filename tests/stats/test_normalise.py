"""Normalised scores: the ends of the scale, names as people write them, and protocols that are not mixed up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.stats.errors import BadData
from sharpen.stats.normalise import Reference, look_up, names


@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4), st.sampled_from([1.0, 100.0]))
def test_random_is_nought_and_the_reference_is_the_scale(random: float, reference: float, scale: float) -> None:
    if abs(random - reference) < 1e-6:
        return
    found = Reference(random, reference, scale)
    assert found.of(random) == 0.0
    assert found.of(reference) == pytest.approx(scale)
    assert found.of((random + reference) / 2) == pytest.approx(scale / 2, abs=1e-6 * scale)


@pytest.mark.parametrize(
    ("name", "score", "expected"),
    # D4RL's own scale: 100 is its expert. 3234.3 and 12135 are the experts' returns on hopper and halfcheetah.
    [("hopper", 3234.3, 100.0), ("hopper", -20.272305, 0.0), ("halfcheetah", 12135.0, 100.0), ("kitchen", 1.0, 25.0)],
)
def test_d4rl_scores_are_per_cent_of_the_expert(name: str, score: float, expected: float) -> None:
    assert look_up("d4rl", name, scale=100.0).of(score) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["ms_pacman", "ALE/MsPacman-v5", "MsPacmanNoFrameskip-v4", "MsPacman", "Ms Pacman"])
def test_a_game_is_found_however_its_name_is_written(name: str) -> None:
    found = look_up("atari57", name)
    assert (found.random, found.reference) == (307.3, 6951.6)
    assert (found.protocol, found.source) == ("no-op starts 30 min", "Mnih 2015 and Wang 2016")


@pytest.mark.parametrize(
    ("name", "top"),
    [("hopper-medium-replay-v2", 3234.3), ("maze2d-umaze-dense-v1", 193.66285642), ("maze2d-umaze-v1", 161.86)],
)
def test_a_variant_has_the_reference_of_its_kind(name: str, top: float) -> None:
    assert look_up("d4rl", name).reference == top


def test_the_tables_have_what_they_are_named_for() -> None:
    assert len(names("atari57")) == 57
    assert len(names("atari57", "atari100k")) == 26
    assert all(look_up("classic", name) for name in names("classic"))


def test_protocols_are_told_apart() -> None:
    usual, starts = look_up("atari57", "pong"), look_up("atari57", "pong", protocol="human starts")
    assert (usual.random, usual.reference) == (-20.7, 14.6)
    assert (starts.random, starts.reference) == (-18.0, 15.5)


def test_names_that_are_not_there_are_helped() -> None:
    with pytest.raises(BadData, match=r"no reference for 'Qbrt' \(did you mean qbert\?\)"):
        look_up("atari57", "Qbrt")
    with pytest.raises(BadData, match="no table of references 'atari'; there are atari57"):
        look_up("atari", "pong")
    with pytest.raises(BadData, match="no scores by the protocol 'mine'"):
        look_up("atari57", "pong", protocol="mine")
    with pytest.raises(BadData, match="nothing to divide by"):
        Reference(1.0, 1.0)
