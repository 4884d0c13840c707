"""Published hyperparameters by algorithm and environment, from `presets.yaml`, whose head names the source. Pure but for
reading that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import yaml

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest
from sharpen.trainers.rl.params import AUTO, NONE

ATARI = "atari"


def names(algorithm: str) -> list[str]:
    """The presets there are for an algorithm."""
    return list(_table()[algorithm])


def find(algorithm: str, environment: str, wanted: str = AUTO) -> tuple[str, Mapping[str, Json]]:
    """The preset's name and its values; an empty name where there is none, or none was wanted."""
    presets = _table()[algorithm]
    name = _fitting(environment) if wanted == AUTO else wanted
    if name in presets:
        return name, presets[name]
    if wanted in (AUTO, NONE):
        return "", {}
    known = (AUTO, NONE, *presets)
    raise UsageError(
        f"unknown preset {wanted!r} for {algorithm}{nearest(wanted, known)}; there are: {', '.join(known)}"
    )


def _fitting(environment: str) -> str:
    return ATARI if environment.startswith("ALE/") or "NoFrameskip-v" in environment else environment


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Json]]]:
    text = resources.files("sharpen.trainers.rl").joinpath("presets.yaml").read_text(encoding="utf-8")
    table: Mapping[str, Mapping[str, Mapping[str, Json]]] = yaml.safe_load(text)
    return table
