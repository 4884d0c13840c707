"""Items from a file: rows of our own shape, or rows as VeriBench is published.

Ours have `statement` (`theorem name ... : ...`) and perhaps `preamble`, `input`, `id`, `type`. Published ones have
`user_query` or `python_code`, and `gold_reference_lean4_code`, whose tests (`example : ... := by ...`) become what an answer
is checked against, because its own theorems are mostly left unproved there. A row with neither a statement nor such tests
can't be checked and is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from sharpen.core.digest import Json, digest
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.tasks.veribench.items import proof

_STATEMENT = re.compile(r"(?:theorem|lemma) [^\s:({\[]+.*:.*", re.DOTALL)
_TEST = re.compile(r"^example\b.*?:= by (?:native_decide|decide|rfl|simp)$", re.MULTILINE | re.DOTALL)
_NAMESPACE = re.compile(r"^namespace (\S+)$", re.MULTILINE)
_WANTED = "'statement', or 'user_query' or 'python_code' with 'gold_reference_lean4_code'"


def read(path: Path) -> tuple[list[Item], int]:
    """The items of a JSONL or JSON file (or a folder of JSON files), and how many rows had nothing to be checked against."""
    if not path.exists():
        raise UsageError(f"no such file or folder: {path}")
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    rows = [row for file in files for row in _rows(file)]
    items = [item for where, row in rows if (item := _item(where, row)) is not None]
    if not items:
        raise UsageError(f"{path}: no row can be checked; a row needs {_WANTED} that has tests")
    return items, len(rows) - len(items)


def _rows(file: Path) -> list[tuple[str, Mapping[str, Json]]]:
    try:
        text = file.read_text(encoding="utf-8")
        values = [json.loads(line) for line in text.splitlines() if line.strip()] if file.suffix == ".jsonl" else None
        if values is None:
            whole = json.loads(text)
            values = whole if isinstance(whole, list) else [whole]
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    found = [(f"{file.name}, row {number}", row) for number, row in enumerate(values, 1)]
    for where, row in found:
        if not isinstance(row, Mapping):
            raise UsageError(f"{where}: a row must be an object, got {type(row).__name__}")
    return found


def _item(where: str, row: Mapping[str, Json]) -> Item | None:
    if "statement" in row:
        return _of_statement(where, row)
    question = row.get("user_query") or row.get("python_code")
    if not question:
        raise UsageError(f"{where}: a row needs {_WANTED}; this one has {', '.join(map(repr, row)) or 'nothing'}")
    gold = str(row.get("gold_reference_lean4_code") or "")
    tests = _TEST.findall(gold)
    if not tests:
        return None
    space = _NAMESPACE.search(gold)
    body = "\n".join(tests)
    body = f"namespace {space[1]}\n{body}\nend {space[1]}" if space else body
    asked = (
        f"Translate to Lean 4, without importing anything:\n\n{question}\n\n"
        f"These tests are put below your file and must hold:\n\n{body}"
    )
    id_ = str(row.get("task_id", row.get("filename", digest(dict(row))[:12])))
    return Item(id_, {"input": asked, "tests": body}, None, str(row.get("category", "default")))


def _of_statement(where: str, row: Mapping[str, Json]) -> Item:
    statement = str(row["statement"]).strip().removesuffix(":=").rstrip()
    if not _STATEMENT.fullmatch(statement) or ":=" in statement:
        raise UsageError(f"{where}: statement must read 'theorem NAME ... : ...' without a proof, got {statement!r}")
    preamble = str(row.get("preamble", ""))
    made = proof(
        str(row.get("id", digest(statement + preamble)[:12])), statement, preamble, str(row.get("type", "default"))
    )
    if "input" in row:
        return Item(made.id, {**made.inputs, "input": str(row["input"])}, None, made.type)
    return made
