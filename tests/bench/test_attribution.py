"""Which step brought a line: through accepted steps, moved lines, drafts and the final check."""

from __future__ import annotations

from typing import Any

from sharpen.bench.attribution import FINAL_CHECK, START, STEP, attributed
from sharpen.core.candidate import Candidate

Line = dict[str, Any]

A = Candidate("Answer.\n")
B = Candidate("Answer.\n- one\n- two\n")
C = Candidate("- two\nAnswer.\n- three\n")


def started(first: Candidate) -> Line:
    return {"type": "job_started", "candidate": first.digest}


def saved(step: int, one: Candidate) -> Line:
    return {"type": "checkpointed", "step": step, "candidate": one.digest, "path": f"checkpoints/step_{step:04d}"}


def decided(step: int, new: Candidate, old: Candidate, effect: float = 0.1, accepted: bool = True) -> Line:
    told = {"gate": "sequential", "reason": "", "effect": effect, "low": 0.0, "high": 0.2}
    return {"type": "decided", "step": step, "new": new.digest, "old": old.digest, "accepted": accepted, **told}


def done(step: int, action: str, current: Candidate) -> Line:
    return {"type": "step_done", "step": step, "action": action, "current": current.digest}


def revised(step: int, one: Candidate, *contents: str) -> Line:
    edits = [{"op": "append", "content": content} for content in contents]
    return {"type": "revised", "step": step, "candidate": one.digest, "edits": edits, "texts": {}}


def origins(lines: list[Line], known: list[Candidate], best: Candidate) -> dict[str, tuple[int, str, int | None]]:
    found = attributed(lines, {one.digest: one for one in known}, best)
    return {row.block.text: (row.origin.step, row.origin.how, row.origin.drafted) for row in found}


def test_a_line_keeps_the_step_that_brought_it_also_where_it_was_moved() -> None:
    lines = [started(A), saved(0, A), decided(1, B, A, 0.3), saved(1, B), decided(2, A, B, accepted=False)]
    lines += [decided(3, C, B, 0.2), saved(3, C)]
    assert origins(lines, [A, B], C) == {
        "- two": (1, STEP, None),
        "Answer.": (0, START, None),
        "- three": (3, STEP, None),
    }
    by_text = {row.block.text: row.origin.evidence for row in attributed(lines, {A.digest: A, B.digest: B}, C)}
    assert by_text["Answer."] is None
    assert by_text["- two"] is not None and by_text["- two"].effect == 0.3


def test_a_line_that_went_and_came_again_is_the_later_steps() -> None:
    lines = [started(B), saved(0, B), decided(1, A, B), saved(1, A), decided(2, Candidate("Answer.\n- one\n"), A)]
    assert origins(lines, [A, B], Candidate("Answer.\n- one\n"))["- one"] == (2, STEP, None)


def test_a_line_of_a_draft_names_the_step_that_wrote_it() -> None:
    draft = Candidate("Answer.\n- one\n")
    lines = [started(A), saved(0, A), revised(1, draft, "- one"), done(1, "draft", A)]
    lines += [revised(2, B, "- one", "- two"), decided(2, B, A), saved(2, B), done(2, "accept", B)]
    assert origins(lines, [A], B) == {"Answer.": (0, START, None), "- one": (2, STEP, 1), "- two": (2, STEP, None)}


def test_what_the_final_check_made_the_best_is_not_taken_for_a_change_of_the_start() -> None:
    lines = [started(A), saved(0, A), decided(1, B, A), saved(1, B), done(1, "accept", B)]
    lines += [revised(2, C, "- three"), done(2, "draft", B), decided(3, C, A, 0.5)]
    lines += [{"type": "promoted", "candidate": C.digest, "promoted": True, "effect": 0.05, "low": -0.1, "high": 0.2}]
    found = attributed(lines, {A.digest: A, B.digest: B}, C)
    by_text = {row.block.text: row.origin for row in found}
    assert (by_text["- two"].step, by_text["- two"].how) == (1, STEP)
    assert by_text["- three"].how == FINAL_CHECK
    assert by_text["- three"].evidence is not None and by_text["- three"].evidence.effect == 0.05
