"""A trained skill line by line, for people: the step that brought each block, what it was accepted on, what it does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from rich.text import Text

from sharpen.bench.attribution import START, STEP, Attributed, Origin
from sharpen.bench.leave_one_out import Pruned, Result, Weighed
from sharpen.core.candidate import Candidate
from sharpen.core.digest import Json
from sharpen.report import diffs, text
from sharpen.report.closing import Block, heading, table
from sharpen.stats.paired import Interval

_LONGEST = 56


def blocks(rows: Sequence[Attributed], result: Result, items: int) -> Iterator[Block]:
    """The table, and what it rests on."""
    made = table("line", "step", "evidence for the step", "effect of leaving it out", "items", left=3)
    several = len({row.block.part for row in rows}) > 1
    for row, weight in zip(rows, result.weighed, strict=True):
        name = f"{row.block.part}: " if several else ""
        effect, many = _weight(weight)
        shown = diffs.printable(text.short(name + row.block.text, _LONGEST))
        made.add_row(shown, step(row.origin), evidence(row.origin), effect, many)
    yield made
    gates = dict.fromkeys(row.origin.evidence.gate for row in rows if row.origin.evidence is not None)
    if gates:
        yield Text(f"\nEvidence: the effect of the whole step on val, as seen by {', '.join(gates)}.", style="dim")
    yield Text(f"\n{weighed(result, items)} Below 0: the skill is worse without it.")
    if result.missing:
        yield Text(
            f"{text.plural(result.missing, 'rollout')} would weigh them all on every item: --fresh makes them, "
            "--budget calls=N makes as many as that allows."
        )


def weighed(result: Result, items: int) -> str:
    """How much is known, in a line."""
    known = sum(row.effect is not None for row in result.weighed)
    there = text.plural(sum(not row.block.stays for row in result.weighed), "block")
    return f"{known} of {there} weighed, on the {text.plural(items, 'val item')} that decided about steps."


def step(origin: Origin) -> str:
    """Who brought a line."""
    if origin.how == START:
        return START
    name = str(origin.step) if origin.how == STEP else f"{origin.step}, {origin.how}"
    return name if origin.drafted is None else f"{name}, drafted in {origin.drafted}"


def evidence(origin: Origin) -> str:
    """What the step was accepted on."""
    if origin.evidence is None:
        return text.NOTHING if origin.how == START else "none: put in without proof"
    found = origin.evidence
    return f"{text.signed(found.effect)} {text.interval(found.low, found.high, sign=True)}"


def _weight(row: Weighed) -> tuple[str, str]:
    if row.block.stays:
        return f"stays: {text.short(row.block.stays, 40)}", ""
    return (text.NOTHING, "0") if row.effect is None else (interval(row.effect), str(row.effect.n))


def interval(found: Interval) -> str:
    return f"{text.signed(found.mean)} {text.interval(found.low, found.high, sign=True)}"


def pruned(found: Pruned, skill: Candidate, margin: float) -> Iterator[Block]:
    """The shorter skill, or why there is none."""
    yield heading("Shorter")
    yield Text(sentence(found, skill, margin))
    if found.skill is not None:
        yield diffs.between(skill, found.skill)


def sentence(found: Pruned, skill: Candidate, margin: float) -> str:
    if found.skill is None or found.effect is None:
        return f"Nothing can go within {margin:g}: {found.why}."
    back = (
        f"; {text.plural(len(found.put_back), 'block')} put back, since the sum lost too much" if found.put_back else ""
    )
    return (
        f"{text.plural(len(found.gone), 'block')} can go: {text.count(skill.length)} characters become "
        f"{text.count(found.skill.length)}, {interval(found.effect)} against the whole skill, paired over "
        f"{text.plural(found.effect.n, 'item')}, no loss of {margin:g} or more{back}."
    )


def as_json(rows: Sequence[Attributed], result: Result, items: int) -> dict[str, Json]:
    made = [
        {
            "part": row.block.part, "line": row.block.numbers[0] + 1, "kind": str(row.block.kind), "text": row.block.text,
            "stays": row.block.stays, "origin": dataclasses.asdict(row.origin), "missing": weight.missing,
            "effect": None if weight.effect is None else dataclasses.asdict(weight.effect),
        }
        for row, weight in zip(rows, result.weighed, strict=True)
    ]  # fmt: skip
    shorter = None
    if result.pruned is not None:
        found = result.pruned
        shorter = {
            "parts": None if found.skill is None else dict(found.skill.parts), "gone": [one.text for one in found.gone],
            "put_back": [one.text for one in found.put_back], "why": found.why,
            "effect": None if found.effect is None else dataclasses.asdict(found.effect),
        }  # fmt: skip
    about: dict[str, Json] = {"items": items, "missing": result.missing, "paid_calls": result.paid_calls}
    return {"schema_version": 1, "blocks": made, **about, "pruned": shorter}
