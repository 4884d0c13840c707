"""What 0 and 1 stand for in a picture of several jobs, or of differences. Pure.

A job whose results name no benchmark, or one without both ends of the scale, has no normalised values, and what is shown of
it is what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sharpen.bench.benchmark import scale_of
from sharpen.stats.normalise import Reference


def shared(found: Iterable[Mapping[str, Any]]) -> Reference | None:
    """The one scale of several jobs' results; None where one has none, or another."""
    scales = [scale_of(results.get("benchmark")) for results in found]
    return scales[0] if scales and all(one == scales[0] for one in scales) else None


def differences(normal: Reference | None) -> Reference | None:
    """The scale of differences: what is the same for both sides goes out."""
    if normal is None:
        return None
    return Reference(0.0, normal.reference - normal.random, normal.scale, normal.protocol, normal.source)
