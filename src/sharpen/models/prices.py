"""What a model's tokens cost, as far as it is known.

The built-in table (`prices.yaml`) is small and ages; the file named by `$SHARPEN_PRICES` goes before it and can price any
model by its full name (`http://host:8000/v1#qwen*` too). A model in neither has no price at all: its cost is unknown,
which is not the same as nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from sharpen.core.chat import Request
from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest
from sharpen.models.base import Model

ENVIRONMENT = "SHARPEN_PRICES"
_BUILT_IN = Path(__file__).with_name("prices.yaml")
_FIELDS = ("input", "cached", "output")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` is for prompt tokens the endpoint had ready."""

    input: float
    cached: float
    output: float

    def cost(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
        fresh = prompt_tokens - cached_tokens
        return (fresh * self.input + cached_tokens * self.cached + completion_tokens * self.output) / _MILLION


FREE = Price(0.0, 0.0, 0.0)


def lookup(name: str) -> Price | None:
    """The price of the model that is asked for by `name`, or None where nobody has told."""
    own = os.environ.get(ENVIRONMENT)
    for path in ([Path(own)] if own else []) + [_BUILT_IN]:
        for pattern, price in _table(path).items():
            if fnmatchcase(name, pattern):
                return price
    return None


def price_of(model: Model) -> Price | None:
    """The price of a model that is open; settings in its name do not matter."""
    if model.bound(Request(prompt=""))[1] == 0.0:
        return FREE
    return lookup(_plain(model.name))


def advice(names: Sequence[str]) -> str:
    """What to do to have these models' prices known."""
    rows = ", ".join(f"'{_plain(name)}': {{input: 0.5, output: 1.5}}" for name in dict.fromkeys(names))
    file = os.environ.get(ENVIRONMENT)
    where = f"add to {file}" if file else f"write to a file, and name the file in {ENVIRONMENT}"
    return f"to see the money, {where}: models: {{{rows}}} with your prices, in dollars per million tokens"


def _plain(name: str) -> str:
    """A model's name without settings behind a `?`; one before the `#` belongs to the address."""
    address, mark, model = name.rpartition("#")
    return f"{address}{mark}{model.partition('?')[0]}"


@lru_cache(maxsize=8)
def _table(path: Path) -> Mapping[str, Price]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no such price file: {path} (named by ${ENVIRONMENT})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the price file {path}: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    models = content.get("models") if isinstance(content, Mapping) else None
    if not isinstance(models, Mapping):
        raise UsageError(f"{path}: expected a mapping `models:` from model names to prices")
    return {str(name): _price(path, str(name), row) for name, row in models.items()}


def _price(path: Path, name: str, row: Json) -> Price:
    if not isinstance(row, Mapping):
        raise UsageError(f"{path}: models.{name}: expected {{input: ..., cached: ..., output: ...}}, got {row!r}")
    for key in row:
        if key not in _FIELDS:
            raise UsageError(f"{path}: models.{name}: unknown key {key!r}{nearest(str(key), _FIELDS)}")
    for key in ("input", "output"):
        if key not in row:
            raise UsageError(f"{path}: models.{name}: {key!r} is missing (US dollars per million tokens)")
    for key, value in row.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise UsageError(f"{path}: models.{name}.{key}: expected a number of at least 0, got {value!r}")
    # Where no discount for cached tokens is given, none is assumed.
    return Price(float(row["input"]), float(row.get("cached", row["input"])), float(row["output"]))
