"""A candidate as other packages know it: a text by name for each part; and the way back, with what may not be refused.

Signs stand for protected regions, which are put back by us exactly as they were. A text that comes back must not be empty,
must be of its part's kind, must keep to the length, and must not give val or test items away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.skill import kinds
from sharpen.skill.leaks import Leak, LeakIndex
from sharpen.skill.protected import masked, restored


@dataclass(frozen=True)
class Version:
    """A candidate that was written outside. `refusal` names why it is not measured: no_rewrite or leak; None when it may
    be. `problem` says what is wrong with a text that can't be used."""

    candidate: Candidate
    source: str
    leaks: tuple[Leak, ...] = ()
    problem: str = ""

    @property
    def refusal(self) -> str | None:
        if self.problem:
            return "no_rewrite"
        return "leak" if self.leaks else None

    def record(self, parent: int) -> dict[str, Json]:
        return {
            "parent": parent,
            "candidate": self.candidate.digest,
            "source": self.source,
            "reason": self.problem,
            "changes": 1,
            "refusal": self.refusal,
        }


class Texts:
    """The way out and back for one training, which starts from `initial`."""

    def __init__(self, initial: Candidate, leaks: LeakIndex, max_length: int, source: str) -> None:
        self._initial = initial
        self._leaks = leaks
        self._max_length = max(max_length, initial.length)
        self._source = source
        self._known: dict[tuple[tuple[str, str], ...], Version] = {}

    def out(self) -> dict[str, str]:
        """The initial candidate as texts by name."""
        return {name: masked(text) for name, text in self._initial.parts.items()}

    def back(self, texts: Mapping[str, str]) -> Version:
        """The candidate these texts are; parts that are not named stay as they were in the beginning."""
        key = tuple(sorted(texts.items()))
        if key not in self._known:
            self._known[key] = self._read(texts)
        return self._known[key]

    def _read(self, texts: Mapping[str, str]) -> Version:
        before = self.out()
        parts = dict(self._initial.parts)
        for name, text in texts.items():
            if text == before[name]:
                continue
            parts[name] = restored(text, self._initial[name])
            problem = "the text is empty" if not text.strip() else kinds.problem(name, parts[name])
            if problem:
                return Version(self._initial, self._source, problem=f"{name}: {problem}")
        candidate = Candidate(parts)
        if candidate.length > self._max_length:
            problem = f"{candidate.length} characters are more than {self._max_length}"
            return Version(self._initial, self._source, problem=problem)
        return Version(candidate, self._source, tuple(self._leaks.find(self._initial, candidate)))
