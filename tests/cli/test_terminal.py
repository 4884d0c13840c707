"""Text that others wrote does not reach the terminal as commands: every command, on hostile data, with and without one."""

from __future__ import annotations

import ast
import csv
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import TextIO

import pytest

from sharpen.cli import app, terminal

SOURCE = Path(__file__).parents[2] / "src" / "sharpen"
PRINTERS = {
    "cli/terminal.py": "the one way out",
    "cli/console.py": "tables and live displays, which leave through it",
    "bench/job_process.py": "a job's own process; its output is the job's log",
    "bench/reference.py": "writes docs/configuration.md, for developers",
    "testing/http.py": "a process of its own tells its address to the test that started it",
}
"""Who may print, and why."""

# Its own words are EVIL; around them everything that a terminal obeys: title, clipboard, styles that rich never writes,
# cursor, links, the same in one character each, backspace, bell, delete, directions, no width; and rich's markup.
WORD = (
    "<b/onclick=x()>EVIL</b><script>x()</script><img/src=//evil/x>EVIL\x1b]0;title\x07\x1b]52;c;Y2xpcA==\x07\x1b[5;8m\x1b[9;9H\x1b[2J\x9b5m\x9d8;;http://evil\x9c\x90q\x9c\b\b\x7f\x0e"
    "\u202elive\u202c\u2066x\u2069\u200b[bold][link=http://evil]here[/link][/]"
)
HOSTILE = f"{WORD} \rover"
# Colours, clearing a line, moving up to redraw, hiding the cursor meanwhile: what rich writes of its own.
_CODE = rb"(?:38;5;\d+|[0-4]|3\d|9\d)"
RICH = re.compile(rb"\x1b\[" + _CODE + rb"?(?:;" + _CODE + rb")*m|\x1b\[(?:2K|\d*A|\?25[lh])|\r")
COMMANDS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b\xaa-\xae]|\xe2\x81[\xa6-\xa9]")

READING = [
    ("status",),
    ("status", "latest"),
    ("status", "latest", "--json"),
    ("watch", "latest", "--no-follow"),
    ("watch", "latest"),
    ("report", "latest"),
    ("report", "latest", "--json"),
    ("explain", "latest"),
    ("explain", "latest", "--json"),
    ("replay", "latest", "--gate", "paired"),
    ("variance", "latest"),
    ("compare", "latest", "latest@EVIL"),
    ("compare", "hostile.csv"),
    ("compare", "hostile.csv", "--json"),
    ("eval", "latest", "--split", "test"),
    ("eval", "latest", "--split", "test", "--json"),
    ("export", "latest", "--to", "out", "--force"),
    ("doctor", "evil.jsonl", "--model", "scripted/rules"),
    ("doctor", "bad.jsonl", "--model", "scripted/rules"),
    ("validate", "study.yaml"),
    ("validate", "bad.yaml"),
    ("validate", "bad.yaml", "--json"),
    ("train", "evil.jsonl", "--model", HOSTILE),
    ("list", HOSTILE),
    (HOSTILE,),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with hostile data, a run trained on it, and hostile files that are wrong."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [
        {
            "input": f"{split} {number} kind-{number % 6:02d} {HOSTILE}",
            "answer": f"w{number % 6}{WORD}",
            "id": f"{split}-{number}-{HOSTILE}",
            "type": f"t{number % 2}{HOSTILE}",
            "split": split,
        }
        for number in range(24)
        for split in ("train", "val", "test")
    ]
    (folder / "evil.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "bad.jsonl").write_text(json.dumps({**rows[0], "split": HOSTILE}))
    (folder / "study.yaml").write_text(
        "tasks: [evil.jsonl]\ntrainers: [{name: reflact, label: " + json.dumps(HOSTILE) + "}]\nseeds: 2\n"
        "models: {target: scripted/rules, optimizer: scripted/rules}\n"
    )
    (folder / "bad.yaml").write_text("tasks: [" + json.dumps(HOSTILE) + "]\n" + json.dumps(HOSTILE) + ": 1\n")
    lines = "".join(f"{json.dumps(arm)[1:-1]},{seed},{seed / 9}\n" for arm in ("a", "b") for seed in range(4))
    (folder / "hostile.csv").write_text(
        "arm,seed,score\n" + lines.replace("a,", f"a{WORD},").replace("b,", f"b{WORD},")
    )
    lines = [f"{arm},{seed},{seed / 9 + worse}" for arm, worse in (("=1+1", 1), ("@SUM(1)", 0)) for seed in range(6)]
    (folder / "formulas.csv").write_text("\n".join(("arm,seed,score", *lines)))
    with inside(folder):
        words = ["train", "evil.jsonl", "--model", "scripted/rules", "--optimizer", "scripted/rules"]
        assert app.run([*words, "--gate", "strict", "--steps", "2", "-q"]) == 0
    return folder


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_in_pty(work: Callable[[], object]) -> bytes:
    """What `work` writes to a terminal through the program's own standard streams."""
    master, slave = pty.openpty()
    pieces: list[bytes] = []

    def read() -> None:
        while True:
            try:
                piece = os.read(master, 65_536)
            except OSError:
                return
            pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with open(slave, "w", encoding="utf-8") as stream, redirected(stream):
        work()
    reader.join()
    os.close(master)
    return b"".join(pieces)


@contextmanager
def redirected(stream: TextIO) -> Iterator[None]:
    """Both standard streams go to `stream`, as in the program."""
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = stream
    terminal.keep_clean()
    streams = sys.stdout, sys.stderr
    try:
        yield
    finally:
        for clean in streams:
            clean.flush()
            clean.detach()  # type: ignore[attr-defined]  # else its end would close the descriptor that both share
        sys.stdout, sys.stderr = before


@pytest.mark.parametrize("words", READING, ids=lambda words: " ".join(words)[:40].replace("\x1b", ""))
def test_a_command_on_hostile_data_writes_no_control_character(
    words: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    with inside(place):
        on_terminal = run_in_pty(lambda: app.run(words))
        with open(place / "piped", "w+", encoding="utf-8") as stream, redirected(stream):
            app.run(words)
        piped = (place / "piped").read_bytes()
    assert not COMMANDS.search(piped), words
    left = COMMANDS.search(RICH.sub(b"", on_terminal))
    assert left is None, (words, on_terminal[max(0, left.start() - 80) : left.end() + 80])
    assert b"Traceback" not in piped
    if "--json" in words:
        json.loads(piped)


def test_the_sweep_meets_hostile_text(place: Path) -> None:
    """Were it filtered out on the way, the sweep would prove nothing."""
    shows = 0
    with inside(place):
        for words in READING:
            with open(place / "piped", "w+", encoding="utf-8") as stream, redirected(stream):
                app.run(words)
            shows += b"EVIL" in (place / "piped").read_bytes()
    assert shows >= len(READING) - 6


def test_the_program_itself_writes_none(place: Path) -> None:
    """With its real process, its real descriptors and an encoding that has no word for the signs."""
    words = [sys.executable, "-m", "sharpen", "status", "latest"]
    for encoding in ("utf-8", "ascii"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        ended = subprocess.run(words, cwd=place, capture_output=True, env=environment, check=True)
        assert b"EVIL" in ended.stdout
        assert not COMMANDS.search(ended.stdout + ended.stderr)


def test_what_user_code_prints_beside_a_live_display_is_cleaned() -> None:
    from sharpen.cli.console import LiveArea, console

    def work() -> None:
        area = LiveArea(console(err=True))
        area.update("working")
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        area.close()
        area.close()
        print(HOSTILE)

    written = run_in_pty(work)
    assert written.count(b"\xe2\x90\x9b]0;title") == 3
    assert not COMMANDS.search(RICH.sub(b"", written))


def test_json_gives_the_texts_back_whole(place: Path) -> None:
    with inside(place):
        with open(place / "piped", "w+", encoding="utf-8") as stream, redirected(stream):
            app.run(["status", "latest", "--json"])
        value = json.loads((place / "piped").read_text())
    assert any(HOSTILE in text for text in _texts(value))


class Tags(HTMLParser):
    """Which tags and attributes a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.values += [value or "" for name, value in attrs if name != "content"]


@pytest.mark.parametrize("words", [("report", "latest", "--html"), ("compare", "hostile.csv", "--html", "page.html")])
def test_a_page_of_hostile_data_has_no_markup_of_its_own_making_and_allows_no_script(
    words: tuple[str, ...], place: Path
) -> None:
    with inside(place):
        assert app.run(words) == 0
    file = place / "page.html" if words[0] == "compare" else max(place.glob("runs/evil-*/*.html"))
    text = file.read_text(encoding="utf-8")
    page = Tags(text)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert text.index("Content-Security-Policy") < text.index("<title>")
    assert "EVIL" in text
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
    assert not [name for name in page.attributes if name.startswith("on") or name in ("src", "srcdoc", "action")]
    assert not [value for value in page.values if ":" in value and ("http" in value or "javascript" in value)]
    assert not COMMANDS.search(text.encode())


def test_a_table_of_hostile_data_has_no_formula(place: Path) -> None:
    with inside(place):
        assert app.run(["compare", "formulas.csv", "--csv", "compared.csv"]) == 0
    with open(place / "compared.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["old"] for row in rows} == {"'=1+1"}
    assert {row["new"] for row in rows} == {"'@SUM(1)"}
    assert any(row["effect"].startswith("-1") for row in rows)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *_texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nobody_else_prints(path: Path) -> None:
    name = path.relative_to(SOURCE).as_posix()
    if name in PRINTERS:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in (
                "print", "click.echo", "click.secho", "echo_via_pager", "Console", "Live", "sys.stdout.write",
                "sys.stderr.write", "sys.stdout.buffer.write", "sys.__stdout__.write", "Prompt.ask", "input",
            ), f"{name}:{node.lineno} prints past cli/terminal.py"  # fmt: skip
