"""What a Lean file must hold to, and what Lean's verdict on it means. Pure: texts in, a verdict out.

Lean is trusted to check proofs, not to guess intentions. So before it is run, a file is looked through for what would let it
check something else than was asked: `sorry`, axioms, native evaluation, changed notation, commands that run code. And what
is run is the file with a question of ours behind it: which axioms does the theorem rest on, or do these tests hold. For a
statement to be proved, the file must have it word for word outside of comments and texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sharpen.core.digest import Json

FILE = "Check.lean"
ALLOWED_AXIOMS = frozenset(("propext", "Classical.choice", "Quot.sound"))
"""Those of Lean's own logic. `sorryAx` and `Lean.ofReduceBool` (native evaluation) are not among them."""

_NEVER = (
    "sorry", "admit", "axiom", "native_decide", "ofReduceBool", "reduceBool", "unsafe", "implemented_by", "extern", "csimp",
    "macro", "macro_rules", "elab", "elab_rules", "syntax", "notation", "notation3", "infix", "infixl", "infixr", "prefix",
    "postfix", "set_option", "initialize", "builtin_initialize", "run_cmd", "run_tac", "run_meta", "run_elab", "opaque",
    "import", "prelude", "IO", "addDecl", "instance", "attribute", "unif_hint",
)  # fmt: skip
_NOT_AROUND_A_STATEMENT = ("namespace", "section", "open", "export", "variable", "include", "local", "private")
"""What could give the words of a statement another meaning."""
_FENCE = re.compile(r"```(?:lean4?|)[ \t]*\n(.*?)```", re.DOTALL)
_HASH = re.compile(r"(?:^|\s)#[a-z]\w*")
_LEAN_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|--[^\n]*|/-')


@dataclass(frozen=True, slots=True)
class Verdict:
    right: bool
    feedback: str = ""


def extract(reply: str) -> str:
    """The Lean file in a reply: the last fenced block, or the whole of it."""
    fenced = _FENCE.findall(reply)
    return str(fenced[-1] if fenced else reply).strip()


def bare(code: str) -> str:
    """The code without comments, which may be nested, and with empty texts."""
    kept: list[str] = []
    place = 0
    while (found := _LEAN_COMMENT.search(code, place)) is not None:
        kept.append(code[place : found.start()])
        place = found.end()
        if found[0] == "/-":
            place = _end_of_comment(code, place)
            kept.append(" ")
        elif found[0].startswith('"'):
            kept.append('""')
    return "".join(kept) + code[place:]


def _end_of_comment(code: str, place: int) -> int:
    depth = 1
    for mark in re.compile(r"/-|-/").finditer(code, place):
        depth += 1 if mark[0] == "/-" else -1
        if depth == 0:
            return mark.end()
    return len(code)


def objection(code: str, inputs: Mapping[str, Json]) -> str:
    """Why a file is not even shown to Lean; empty when it is."""
    if not code:
        return "no Lean code was given"
    plain = bare(code)
    words = set(re.findall(r"[A-Za-z_][\w']*", plain))
    statement = str(inputs.get("statement", ""))
    forbidden = [word for word in (*_NEVER, *(_NOT_AROUND_A_STATEMENT if statement else ())) if word in words]
    if forbidden:
        return f"{forbidden[0]!r} is not allowed in the file"
    if _HASH.search(plain):
        return "commands that begin with # are not allowed in the file"
    if statement and not _stands_in(statement, plain):
        return "the file does not have the required statement word for word, followed by := and a proof"
    return ""


def _stands_in(statement: str, plain: str) -> bool:
    wanted = r"\s+".join(map(re.escape, statement.split()))
    return len(re.findall(rf"(?<!\S){wanted}\s*:=", plain)) == 1


def assembled(code: str, inputs: Mapping[str, Json]) -> tuple[str, int]:
    """What Lean is given, and the line in it where our question begins."""
    parts = [str(inputs.get("preamble", "")), code]
    above = "\n\n".join(part for part in parts if part)
    statement = str(inputs.get("statement", ""))
    question = f"#print axioms {name_of(statement)}" if statement else str(inputs["tests"])
    return f"{above}\n\n{question}\n", above.count("\n") + 3


def name_of(statement: str) -> str:
    return statement.split()[1]


def verdict(stdout: str, code: int | None, inputs: Mapping[str, Json], line: int) -> Verdict:
    """What Lean's messages (one JSON object a line) and its exit code come to."""
    messages = _messages(stdout)
    for message in messages:
        if message.get("severity") == "error":
            return Verdict(False, _told(message, line))
    if any(
        "declaration uses" in str(message.get("data")) and "sorry" in str(message.get("data")) for message in messages
    ):
        return Verdict(False, "a proof was left out")
    if code != 0:
        return Verdict(False, f"Lean ended with code {code} and no error message")
    statement = str(inputs.get("statement", ""))
    return _rests_on(messages, name_of(statement), line) if statement else Verdict(True)


def _rests_on(messages: list[Mapping[str, Json]], name: str, line: int) -> Verdict:
    """Lean's answer to our own question, told from others by its line."""
    ours = [str(message.get("data")) for message in messages if _line(message) == line]
    for data in ours:
        if data.strip() == f"'{name}' does not depend on any axioms":
            return Verdict(True)
        found = re.fullmatch(rf"'{re.escape(name)}' depends on axioms: \[(.*)\]", data.strip(), re.DOTALL)
        if found:
            used = {axiom.strip() for axiom in found[1].split(",")}
            strange = sorted(used - ALLOWED_AXIOMS)
            return Verdict(not strange, f"the proof rests on {', '.join(strange)}" if strange else "")
    return Verdict(False, "Lean did not say what the proof rests on")


def _messages(stdout: str) -> list[Mapping[str, Json]]:
    found = []
    for line in stdout.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, Mapping):
            found.append(value)
    return found


def _line(message: Mapping[str, Json]) -> int | None:
    place = message.get("pos")
    return place.get("line") if isinstance(place, Mapping) else None


def _told(message: Mapping[str, Json], line: int) -> str:
    where = _line(message)
    text = " ".join(str(message.get("data")).split())
    place = "a test of the task fails: " if where is not None and where >= line else f"line {where}: " if where else ""
    return f"Lean: {place}{text[:300]}"
