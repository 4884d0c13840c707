"""Settings of a model, checked: unknown names and wrong types are the user's to fix, with one clear message each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sharpen.core.digest import Json
from sharpen.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")


def check(name: str, kind: type[T], values: Mapping[str, Json]) -> T:
    """An object of the settings dataclass `kind` from `values`, for the model called `name`."""
    from pydantic import ValidationError

    known = tuple(field.name for field in dataclasses.fields(kind))
    for key in values:
        if key not in known:
            raise UsageError(f"{name} has no setting {key!r}{nearest(key, known)}; there are {', '.join(known)}")
    try:
        made: T = _adapter(kind).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name}: {where}: {first['msg']}, got {first['input']!r}") from None
    return made


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Making one takes longer than all else that opening a model does."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
