"""Settings of a model, checked: unknown names and wrong types are the user's to fix, with one clear message each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")


def check(name: str, kind: type[T], values: Mapping[str, Json]) -> T:
    """An object of the settings dataclass `kind` from `values`, for the model called `name`."""
    from pydantic import TypeAdapter, ValidationError

    known = tuple(field.name for field in dataclasses.fields(kind))
    for key in values:
        if key not in known:
            raise UsageError(f"{name} has no setting {key!r}{nearest(key, known)}; there are {', '.join(known)}")
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name}: {where}: {first['msg']}, got {first['input']!r}") from None
