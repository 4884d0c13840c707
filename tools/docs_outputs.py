"""The outputs that the README and the docs show are those that their commands have: run them, and compare or rewrite.

    make docs-outputs                       rewrite every page
    make docs-outputs-slow                  the same, also where the embedded model takes minutes
    python tools/docs_outputs.py --check    say what differs, change nothing
    python tools/docs_outputs.py docs/doctor.md README.md

Lines with `$ ` in ```console blocks are commands; they run in the order they stand in, in a folder of the page's own. A mark
above a block says what else to do with it: `<!-- file: NAME -->` writes it to that file, `<!-- not run: WHY -->` leaves it
out (with `--slow` not where the reason is that it takes minutes), `<!-- output differs: WHY -->` runs and rewrites it and
compares nothing. What stands below a command is its output. `...` stands for lines that are left out; between two of them
stand lines that follow each other. Times, stamps of runs, ports and the width of columns do not count.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LEFT_OUT = "..."
SLOW = "takes minutes"
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>not run|file|output differs): (?P<note>[^>]*?) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
STANDS_FOR = {"make demo": "sharpen demo"}
"""What a command does that also makes an environment; the lines `== ...` it begins with are kept."""
_PROGRESS = re.compile(r"^  .*(so far, (about|time left)|\d/\d+ · )")
_ANYTHING = [
    (re.compile(r"-\d{8}-\d{6}(-\d+)?"), "-STAMP"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?\b"), "DATE"),
    (re.compile(r"\b\d+:\d\d(:\d\d)?\b"), "TIME"),
    (re.compile(r"\b(under )?[\d,.]+ (ms|s|min|h|d)\b( ago)?"), "TIME"),
    (re.compile(r"\b[\d.]+ (seconds?|minutes?)\b"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
    (re.compile(r"\b[0-9a-f]{7,40}\b(?= *[-+]?dirty)"), "COMMIT"),
    (re.compile(r", at git commit [0-9a-f]+"), ""),
    (re.compile(r"/tmp/\S+?/(?=runs|exported|plots|\w+\.)"), ""),
]


@dataclass(frozen=True)
class Block:
    kind: str
    mark: str
    note: str
    body: str
    start: int
    """Where its body begins in the page."""

    @property
    def commands(self) -> list[str]:
        return [command.text for command in self.parts]

    @property
    def parts(self) -> list[Command]:
        return list(_commands(self.body, self.start))


@dataclass(frozen=True)
class Command:
    """A command as it stands on a page, with the output below it and where that stands."""

    text: str
    shown: list[str]
    start: int
    end: int


@dataclass(frozen=True)
class Ran:
    command: Command
    code: int
    lines: list[str] = field(repr=False)
    compared: bool = True
    """Whether the output is the same everywhere."""


def blocks(page: Path) -> list[Block]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(m["kind"], m["mark"] or "", m["note"] or "", m["body"], m.start("body")) for m in found]


def _commands(body: str, start: int) -> Iterator[Command]:
    at, text, shown, first = start, "", [], start
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            if text:
                yield Command(text, shown, first, at)
            text, shown, first = line[2:].rstrip("\n"), [], at + len(line)
        else:
            shown.append(line.rstrip("\n"))
        at += len(line)
    if text:
        yield Command(text, shown, first, at)


def run_page(page: Path, folder: Path, *, slow: bool = False) -> Iterator[Ran]:
    """Carry out a page's commands in a folder, one after the other."""
    for block in blocks(page):
        if block.mark == "file":
            (folder / block.note).write_text(block.body, encoding="utf-8")
        left_out = block.mark == "not run" and not (slow and block.note.startswith(SLOW))
        if block.mark == "file" or left_out or block.kind != "console":
            continue
        for command in block.parts:
            yield replace(_run(command, folder), compared=not block.mark)


def _run(command: Command, folder: Path) -> Ran:
    program = Path(sys.executable).parent
    stands_for = STANDS_FOR.get(command.text)
    path = os.environ["PATH"] if stands_for else os.pathsep.join([str(program), os.environ["PATH"]])
    words = command.text if stands_for is None else f"{program}/{stands_for}"
    done = subprocess.run(
        ["bash", "-c", words], cwd=folder, env={**os.environ, "PATH": path}, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = done.stdout.replace(str(program), ".venv/bin").replace(f"{folder}/", "").splitlines()
    if stands_for is not None:
        lines = [line for line in command.shown if line.startswith("== ")] + lines
    return Ran(command, done.returncode, [line.rstrip() for line in lines])


def plain(lines: Sequence[str]) -> list[str]:
    """Lines without what depends on the clock, the machine and the width of columns; progress is left out."""
    timed = False
    result = []
    for line in lines:
        if _PROGRESS.match(line):
            continue
        words = line.split()
        if words and words[-1] == "seconds":
            timed = True
        elif timed and words:
            line = " ".join(words[:-1])
        elif not words:
            timed = False
        for pattern, sign in _ANYTHING:
            line = pattern.sub(sign, line)
        result.append(" ".join(line.split()))
    return result


def differences(ran: Ran) -> list[str]:
    """What a page shows of a command's output and its output does not have, in words; nothing where all is well."""
    if not ran.compared or not any(line != LEFT_OUT for line in ran.command.shown):
        return []
    whole, at = plain(ran.lines), 0
    pieces = _pieces(ran.command.shown)
    if LEFT_OUT not in ran.command.shown:
        same = plain(ran.command.shown) == whole
        return [] if same else _unified(plain(ran.command.shown), whole)
    for piece in (plain(piece) for piece in pieces):
        places = [n for n in range(at, len(whole) - len(piece) + 1) if whole[n : n + len(piece)] == piece]
        if not places:
            return _unified(piece, whole[at:])
        at = places[0] + len(piece)
    return []


def _unified(shown: Sequence[str], now: Sequence[str]) -> list[str]:
    return [line for line in difflib.unified_diff(shown, now, "shown", "now", lineterm="", n=0) if line[:2] != "@@"][
        :40
    ]


def _pieces(shown: Sequence[str]) -> list[list[str]]:
    """What stands between the signs that lines were left out."""
    pieces: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return [piece for piece in pieces if piece]


def rewritten(ran: Ran) -> list[str]:
    """The output as the page is to show it: whole, or the same pieces of it as before."""
    shown, lines = ran.command.shown, ran.lines
    if not any(map(_PROGRESS.match, shown)):
        lines = [line for line in lines if not _PROGRESS.match(line)]
    if LEFT_OUT not in shown:
        return lines if shown else []
    result: list[str] = []
    piece: list[str] = []
    at = 0
    for line in [*shown, None]:
        if line is not None and line != LEFT_OUT:
            piece.append(line)
            continue
        if piece:
            first, last = _place(piece, lines, at)
            result += lines[first : last + 1]
            piece, at = [], last + 1
        if line is not None:
            result.append(LEFT_OUT)
    return result


def _place(piece: Sequence[str], lines: Sequence[str], at: int) -> tuple[int, int]:
    """The first and the last line of the output that a piece stands for now: those most alike its own first and last."""
    words = [number for number, line in enumerate(piece) if line.strip()]
    first = _most_alike(piece[words[0]], lines, at)
    last = first if len(words) == 1 else _most_alike(piece[words[-1]], lines, first, near=first + words[-1] - words[0])
    before, after = words[0], len(piece) - 1 - words[-1]
    while before and first > at and not lines[first - 1].strip():
        first, before = first - 1, before - 1
    while after and last + 1 < len(lines) and not lines[last + 1].strip():
        last, after = last + 1, after - 1
    return first, last


def _most_alike(line: str, lines: Sequence[str], at: int, near: int | None = None) -> int:
    wanted = _skeleton(line)
    best, place = 0.0, -1
    for number in range(at, len(lines)):
        alike = difflib.SequenceMatcher(None, wanted, _skeleton(lines[number]), autojunk=False).ratio()
        alike += (
            0.05 * difflib.SequenceMatcher(None, line, lines[number], autojunk=False).ratio()
        )  # of equals the nearest
        alike -= 0.0 if near is None else 0.002 * abs(number - near)
        if alike > best:
            best, place = alike, number
    if best < 0.5:
        raise LookupError(f"no line of the output is like {line!r}; edit the page by hand")
    return place


def _skeleton(line: str) -> str:
    return re.sub(r"[\d.,]+", "0", " ".join(plain([line])))


def rewrite(page: Path, *, slow: bool) -> bool:
    """Put the outputs of today on a page; whether it changed."""
    text = before = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        results = list(run_page(page, Path(folder), slow=slow))
    for ran in reversed(results):
        if ran.code != 0:
            raise RuntimeError(
                f"{page.name}: {ran.command.text} ended with code {ran.code}\n" + "\n".join(ran.lines[-30:])
            )
        if ran.compared and not differences(ran):
            continue
        try:
            lines = rewritten(ran)
        except LookupError as error:
            print(f"{page.name}: {ran.command.text}: {error}", file=sys.stderr)
            continue
        text = text[: ran.command.start] + "".join(f"{line}\n" for line in lines) + text[ran.command.end :]
    if text != before:
        page.write_text(text, encoding="utf-8")
    return text != before


def check(page: Path, *, slow: bool) -> list[str]:
    """What is no longer true on a page."""
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        return [
            f"{page.name}: $ {ran.command.text}\n" + "\n".join(found)
            for ran in run_page(page, Path(folder), slow=slow)
            if (found := differences(ran))
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare or rewrite the outputs that the docs show.")
    parser.add_argument("pages", nargs="*", type=Path, help="README.md and all of docs/ where none is named")
    parser.add_argument("--check", action="store_true", help="say what differs and change nothing")
    parser.add_argument("--slow", action="store_true", help=f"run also blocks that are left out because it {SLOW}")
    given = parser.parse_args()
    stale = 0
    for page in given.pages or PAGES:
        if given.check:
            found = check(page, slow=given.slow)
            stale += len(found)
            print("\n".join(found) if found else f"{page.name}: as shown", flush=True)
        else:
            print(f"{page.name}: {'rewritten' if rewrite(page, slow=given.slow) else 'as it was'}", flush=True)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
