"""Where a rising function reaches a value: quantiles from a distribution function, by doubling and halving."""

from __future__ import annotations

from collections.abc import Callable

_HALVINGS = 200


def reached(rising: Callable[[float], float], wanted: float, reach: float) -> float:
    """The x >= 0 with `rising(x) = wanted`. `reach` is where the search begins; it goes on beyond that as far as needed."""
    low, high = 0.0, reach
    while rising(high) < wanted:
        low, high = high, 4.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def check_share(p: float) -> None:
    if not 0.0 < p < 1.0:
        raise ValueError(f"a quantile needs a share between 0 and 1, got {p}")
