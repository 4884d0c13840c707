"""What is being trained: named text parts, immutable, known by their digest.

Weights and other things that are no text lie in files beside the parts. A part names them by their digest, so the parts
alone say which candidate it is; where its files lie does not matter to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from sharpen.core.digest import digest

MAIN_PART = "SKILL.md"


class Candidate:
    """An immutable set of named texts. `SKILL.md` is the main part, or the first by name where there is none. The parts
    stand in one order, main part first, so that candidates with the same digest look the same to whoever reads them."""

    __slots__ = ("_digest", "_files", "_parts")

    def __init__(self, parts: Mapping[str, str] | str, files: Mapping[str, Path] | None = None) -> None:
        named = {MAIN_PART: parts} if isinstance(parts, str) else dict(parts)
        if not named:
            raise ValueError("a candidate needs at least one part")
        ordered = sorted(named.items(), key=lambda part: (part[0] != MAIN_PART, part[0]))
        self._parts: Mapping[str, str] = MappingProxyType(dict(ordered))
        self._files: Mapping[str, Path] = MappingProxyType(dict(files or {}))
        self._digest = digest(named)

    @property
    def files(self) -> Mapping[str, Path]:
        """Where what is no text lies, by name; empty where there is none, or none any more."""
        return self._files

    @property
    def parts(self) -> Mapping[str, str]:
        return self._parts

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def main(self) -> str:
        """The name of the main part."""
        return next(iter(self._parts))

    @property
    def text(self) -> str:
        """The text of the main part."""
        return self._parts[self.main]

    @property
    def length(self) -> int:
        """Characters in all parts together."""
        return sum(map(len, self._parts.values()))

    def with_part(self, name: str, text: str) -> Candidate:
        return Candidate({**self._parts, name: text})

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __getitem__(self, name: str) -> str:
        return self._parts[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and other._digest == self._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"Candidate({self._digest[:12]}: {', '.join(self._parts)})"
