"""Rows of a Parquet file as JSON values. Needs pyarrow (the extra `parquet`), which is imported when a file is read.

Texts, numbers, booleans, lists and structs are taken as they are. What JSON has no value for (times, bytes, decimals, NaN)
is refused with the row and the column, since how to write it as text is the owner's choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from sharpen.core.digest import Json
from sharpen.core.errors import MissingRequirement, UsageError


def rows(path: Path) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Each row's fields with where it stands."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingRequirement(
            f"{path}: Parquet files need the Python package pyarrow; install it with pip install 'sharpen[parquet]', "
            "or save the data as JSONL or CSV"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches():
                for values in batch.to_pylist():
                    number += 1
                    where = f"{path}, row {number}"
                    for column, value in values.items():
                        _check(value, where, column)
                    yield where, values
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except pyarrow.ArrowInvalid as error:
        raise UsageError(f"{path}: not a Parquet file: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def _check(value: object, where: str, column: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where}: {column!r} holds {value}, which is not a JSON value; use null for what is missing")
    if isinstance(value, dict):
        for inner in value.values():
            _check(inner, where, column)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, where, column)
    elif not (value is None or isinstance(value, str | int | float)):
        raise UsageError(f"{where}: {column!r} holds a {type(value).__name__}; save the column as text or numbers")
