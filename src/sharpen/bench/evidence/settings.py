"""Settings of runs as flat, dotted names, and the few that mean something to a comparison; the seed in a run's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sharpen.core.digest import Json

_PARAMETERS = ("parameters", "num_parameters", "n_parameters", "num_params", "n_params", "parameter_count")

_SEED = re.compile(r"seed[_=-]?(\d{1,18})(?!\d)", re.IGNORECASE)


def seed_in(name: str) -> int | None:
    """The seed that a name tells, as `ppo-seed3` does."""
    found = _SEED.search(name)
    return int(found[1]) if found else None


def flattened(found: Mapping[str, Any], before: str = "") -> dict[str, Json]:
    """Nested settings as dotted names."""
    made: dict[str, Json] = {}
    for key, value in found.items():
        if isinstance(value, Mapping) and value:
            made |= flattened(value, f"{before}{key}.")
        else:
            made[f"{before}{key}"] = value
    return made


def parameters_of(settings: Mapping[str, Json]) -> float | None:
    """How many parameters the trained model has, where a setting tells."""
    for name, value in settings.items():
        if name.rpartition(".")[2] in _PARAMETERS and isinstance(value, int | float):
            return float(value)
    return None


def without_seed(settings: Mapping[str, Json]) -> dict[str, Json]:
    """The settings that make an arm; the seed is what its runs differ in."""
    return {name: value for name, value in settings.items() if name.rpartition(".")[2] != "seed"}
