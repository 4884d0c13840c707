"""Lean as the judge. No Lean is at hand where these tests run, so a small program stands in for it on the path: it speaks as
Lean does (`--json`, `#print axioms`), and what is tested is everything around it: what is refused before Lean is asked, what
Lean is given, what its words come to, its time limit, and what is said where it is missing."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharpen.core.errors import SandboxFailed, UsageError
from sharpen.core.item import Item
from sharpen.core.task import SPLITS, Task
from sharpen.sandbox import Mode
from sharpen.tasks import registry
from sharpen.tasks.veribench import checking, toolchain
from sharpen.testing.tasks import TaskContract, attempt

STATEMENT = "theorem add_nothing (n : Nat) : n + 0 = n"
STAND_IN = r"""#!/bin/sh
# An error for `by wrong`, sorryAx for `by hidden`, a while for `by slow`; else all is well.
case "$1" in
  --print-prefix) echo "@PREFIX@"; exit 0 ;;
  --version) echo "Lean (version 4.0.0, stand-in)"; exit 0 ;;
esac
file="$2"
say() { printf '{"severity":"%s","pos":{"line":%s,"column":0},"data":"%s"}\n' "$1" "$2" "$3"; }
grep -q "by slow" "$file" && sleep 20
if grep -q "by wrong" "$file"; then say error 1 'unsolved goals\nn : Nat'; exit 1; fi
line=$(grep -n "^#print axioms" "$file" | cut -d: -f1)
[ -z "$line" ] && exit 0
name=$(sed -n "${line}p" "$file" | cut -d" " -f3)
grep -q "by forged" "$file" && say information 1 "'$name' does not depend on any axioms"
if grep -q -e "by hidden" -e "by forged" "$file"; then
  say information "$line" "'$name' depends on axioms: [propext, sorryAx]"
elif grep -q "by logic" "$file"; then
  say information "$line" "'$name' depends on axioms: [propext,\n Quot.sound]"
else
  say information "$line" "'$name' does not depend on any axioms"
fi
"""


@pytest.fixture(autouse=True)
def lean(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="sharpen-lean-", dir="/var/tmp"
    ) as folder:  # the sandbox has a /tmp of its own
        prefix = Path(folder)
        program = prefix / "bin" / "lean"
        program.parent.mkdir()
        program.write_text(STAND_IN.replace("@PREFIX@", folder))
        for path in (prefix, program.parent, program):
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        toolchain.find.cache_clear()
        yield program
        toolchain.find.cache_clear()


def made(**settings: object) -> Task:
    return registry.get("veribench", sandbox="unsafe", **settings)


class TestVeriBench(TaskContract):
    def make(self) -> Task:
        return made()


def asked(task: Task) -> Item:
    return next(i for name in SPLITS for i in task.splits()[name] if i.inputs["statement"] == STATEMENT)


@pytest.mark.parametrize(
    ("answer", "right", "says"),
    [
        (f"{STATEMENT} := by simp", True, ""),
        (f"Here it is.\n```lean\n{STATEMENT} :=\n  rfl\n```\nDone.", True, ""),
        (
            f"lemma help (n : Nat) : n = n := rfl\n{STATEMENT.replace(' : n', chr(10) + '    : n')} := by logic",
            True,
            "",
        ),
        (f"{STATEMENT} := by wrong", False, "Lean: line 1: unsolved goals n : Nat"),
        (f"{STATEMENT} := by hidden", False, "the proof rests on sorryAx"),
        (f"{STATEMENT} := by forged", False, "the proof rests on sorryAx"),
        (f"{STATEMENT} := by sorry", False, "'sorry' is not allowed"),
        (f"axiom cheat : False\n{STATEMENT} := by exact cheat.elim", False, "'axiom' is not allowed"),
        (f"{STATEMENT} := by native_decide", False, "'native_decide' is not allowed"),
        (f"#exit\n{STATEMENT} := by simp", False, "begin with #"),
        (f"notation n + m => n\n{STATEMENT} := by simp", False, "'notation' is not allowed"),
        (f"variable (h : False)\n{STATEMENT} := h.elim", False, "'variable' is not allowed"),
        ("theorem add_nothing (n : Nat) : n = n := rfl", False, "word for word"),
        (f"-- {STATEMENT} := by simp\ntheorem add_nothing : True := trivial", False, "word for word"),
        (f"/- /- -/ {STATEMENT} := by simp -/\ntheorem add_nothing : True := trivial", False, "word for word"),
        (f'def s := "{STATEMENT} := x"\ntheorem add_nothing : True := trivial', False, "word for word"),
        (STATEMENT, False, "word for word"),
        ("", False, "no Lean code"),
    ],
)
def test_only_a_file_that_lean_accepts_as_what_was_asked_scores(answer: str, right: bool, says: str) -> None:
    task = made()
    outcome = attempt(task, asked(task), answer)
    assert outcome.hard == float(right)
    assert says in outcome.feedback and bool(outcome.feedback) != right


def test_a_word_in_a_comment_or_a_text_is_no_cheat() -> None:
    task = made()
    assert attempt(task, asked(task), f'-- no sorry, "\n{STATEMENT} := by simp /- axiom "x -/').hard == 1.0
    assert checking.bare('a "b -- c" -- d "\ne /- f /- g -/ " -/ h') == 'a "" \ne   h'


def test_lines_that_are_no_messages_are_passed_over() -> None:
    told = json.dumps({"severity": "error", "data": "no"})
    found = checking.verdict("\n".join(("not JSON", "[" * 90_000, told)), 1, {"statement": STATEMENT}, 3)
    assert not found.right and "no" in found.feedback


def test_a_file_that_takes_too_long_is_stopped() -> None:
    task = made(seconds=0.5)
    outcome = attempt(task, asked(task), f"{STATEMENT} := by slow")
    assert outcome.hard == 0.0 and outcome.feedback == "Lean was stopped: too much time"


def test_published_rows_are_checked_by_the_tests_of_their_reference(tmp_path: Path) -> None:
    gold = (
        "import Mathlib.Data.List.Sort\nnamespace Twice\ndef twice (n : Nat) : Nat := n + n\n"
        "theorem t (n : Nat) : twice n = 2 * n := by\n  sorry\n\n/-- expected: 4 -/\n"
        "example : twice 2 = 4 := by native_decide\n#eval twice 2\nexample : twice 0 = 0 := by native_decide\nend Twice\n"
    )
    rows = [
        {"task_id": n, "user_query": f"def twice{n}(n): ...", "category": "easy", "gold_reference_lean4_code": gold}
        for n in range(10)
    ]
    rows.append({"task_id": 10, "python_code": "pass", "gold_reference_lean4_code": "def stub := 0"})
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = made(data=str(file))
    assert "1 rows of the data have nothing to be checked against" in task.brief.description
    item = task.splits().train[0]
    text, line = checking.assembled("def twice (n : Nat) : Nat := n + n", item.inputs)
    below = text.splitlines()[line - 1 :]
    assert below == ["namespace Twice", "example : twice 2 = 4 := by native_decide",
                     "example : twice 0 = 0 := by native_decide", "end Twice"]  # fmt: skip
    assert "sorry" not in item.text and "def twice (n" not in item.text, "the reference itself is not shown"
    assert (
        attempt(task, item, "```lean\nnamespace Twice\ndef twice (n : Nat) : Nat := n + n\nend Twice\n```").hard == 1.0
    )
    cheat = "def twice (n : Nat) : T := x\ninstance : Coe Nat T := y"
    assert "'instance' is not allowed" in attempt(task, item, cheat).feedback
    assert attempt(task, item, "def twice (n : Nat) : Nat := by wrong").hard == 0.0


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ('{"statement": "add n 0 = n"}', "statement must read 'theorem NAME"),
        ('{"question": "?"}', "row 1: a row needs 'statement', or 'user_query'.*this one has 'question'"),
        ('{"user_query": "?"}', "no row can be checked"),
        ("[1]", "a row must be an object, got list"),
        ("{", "cannot read"),
    ],
)
def test_rows_that_cannot_be_used_are_named(rows: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(rows + "\n")
    with pytest.raises(UsageError, match=says):
        made(data=str(tmp_path / "rows.jsonl"))


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Lean below /usr, where the sandbox shows it" in str(toolchain.lacking(Mode.BUBBLEWRAP))
    assert toolchain.lacking(Mode.UNSAFE) is None
    monkeypatch.setenv("PATH", os.devnull)
    toolchain.find.cache_clear()
    assert registry.get("veribench").requirements.missing()[0].startswith("Lean 4 on the path")


def test_another_lean_is_another_version_of_the_task(lean: Path) -> None:
    before = made().version
    lean.write_text(lean.read_text().replace("4.0.0", "4.1.0"))
    toolchain.find.cache_clear()
    assert made().version != before


def test_a_lean_that_does_not_start_is_a_failure_and_no_score(lean: Path) -> None:
    task = made()
    item = asked(task)
    toolchain.find()
    lean.write_text("#!/no/such/interpreter\n")
    with pytest.raises(SandboxFailed, match="does not start in the sandbox"):
        attempt(task, item, f"{STATEMENT} := by simp")
