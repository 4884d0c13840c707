"""The report of `sharpen doctor`: a line per check, what there is to say about it below, and the last word."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.text import Text

from sharpen.bench.doctor import Diagnosis
from sharpen.bench.doctor_checks import Finding, Level
from sharpen.report import text

_MARKS = {Level.OK: ("ok", "green"), Level.WARN: ("look", "yellow"), Level.STOP: ("stop", "red")}
_MARK_WIDTH = 6
_WIDTH = 118


def blocks(diagnosis: Diagnosis) -> Iterator[Text]:
    width = 2 + max(len(finding.check) for finding in diagnosis.findings)
    for finding in diagnosis.findings:
        yield _finding(finding, width)
    paid = text.plural(diagnosis.paid_calls, "call")
    yield Text(f"\n{paid} made for this; what an earlier look paid for is not paid for again", style="dim")
    yield Text(verdict(diagnosis), style="bold green" if diagnosis.go else "bold red")


def verdict(diagnosis: Diagnosis) -> str:
    """The last word: go, or what to change first."""
    if not diagnosis.go:
        stops = [finding for finding in diagnosis.findings if finding.level == Level.STOP]
        return "not yet: " + " ".join(f"{n}) {finding.advice}." for n, finding in enumerate(stops, 1))
    looks = [finding.check for finding in diagnosis.findings if finding.level == Level.WARN]
    return f"go; look at: {', '.join(looks)}" if looks else "go"


def _finding(finding: Finding, width: int) -> Text:
    mark, style = _MARKS[finding.level]
    indent = " " * (_MARK_WIDTH + width)
    made = Text()
    made.append(mark.ljust(_MARK_WIDTH), style=style)
    made.append(finding.check.ljust(width))
    made.append(_wrapped(finding.what, indent))
    for line in finding.detail:
        made.append(f"\n{indent}{_wrapped(line, indent)}", style="dim")
    if finding.advice:
        made.append(f"\n{indent}{_wrapped(f'-> {finding.advice}', indent + '   ')}", style=style)
    return made


def _wrapped(words: str, indent: str) -> str:
    return f"\n{indent}".join(textwrap.wrap(words, _WIDTH - len(indent), break_on_hyphens=False))
