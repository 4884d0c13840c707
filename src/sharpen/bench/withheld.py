"""Secrets that stand in a study's own settings: kept out of its files, and handed to its jobs all the same.

A job's process reads its configuration from a file, and no file holds a secret. So a value that has one is replaced by a
numbered sign there, and the values themselves go to the processes in one environment variable. A configuration whose
secrets are nowhere to be had is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from sharpen.core.errors import UsageError
from sharpen.core.redact import BLANK, names_secret, redact, redact_json

VARIABLE = "SHARPEN_WITHHELD_SECRETS"
_SIGN = re.compile(r"\[withheld ([0-9]+)\]")


@dataclass
class Withheld:
    """The values that were kept out of files, in the order they were met."""

    values: list[str] = field(default_factory=list)

    def hide(self, settings: str) -> str:
        """YAML as it may be written: a sign in the place of every value that has a secret in it."""
        return _changed(settings, self._without)

    def hand_over(self) -> None:
        """Let processes that are started from now on know the values."""
        if self.values:
            os.environ[VARIABLE] = json.dumps(self.values)

    def _without(self, found: Any, *, named: bool = False) -> Any:
        if isinstance(found, Mapping):
            return {key: self._without(value, named=named or names_secret(str(key))) for key, value in found.items()}
        if isinstance(found, list):
            return [self._without(value, named=named) for value in found]
        if isinstance(found, str) and found and (named or redact(found) != found):
            if found not in self.values:
                self.values.append(found)
            return f"[withheld {self.values.index(found)}]"
        return found


def blanked(settings: str) -> str:
    """YAML for people to read: without secrets, and without signs for them."""
    return _changed(settings, redact_json)


def restored(found: Any, where: str) -> Any:
    """Settings with the values that were withheld from them."""
    handed = os.environ.get(VARIABLE)
    return _restored(found, [] if handed is None else json.loads(handed), where, ())


def _restored(found: Any, values: list[str], where: str, place: tuple[str, ...]) -> Any:
    if isinstance(found, Mapping):
        return {key: _restored(value, values, where, (*place, str(key))) for key, value in found.items()}
    if isinstance(found, list):
        return [_restored(value, values, where, (*place, str(n))) for n, value in enumerate(found)]
    if not isinstance(found, str):
        return found
    sign = _SIGN.fullmatch(found)
    if sign is not None and int(sign[1]) < len(values):
        return values[int(sign[1])]
    if sign is not None or BLANK in found:
        raise UsageError(
            f"{where}: {'.'.join(place)} was a secret, and no file of a run keeps one; start again from your own "
            "configuration, or let the task read it from an environment variable"
        )
    return found


def _changed(settings: str, change: Callable[[Any], Any]) -> str:
    """YAML after a change to what it says; as it stands where that changes nothing. It is always read: YAML folds and
    quotes in more ways than one can look for."""
    before = yaml.load(settings, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    after = change(before)
    return settings if after == before else yaml.safe_dump(after, sort_keys=False, allow_unicode=True)
