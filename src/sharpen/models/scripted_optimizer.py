"""The optimizer in `scripted/rules`: what it answers to each question of a training on the `codebook` task.

- `reflect` learns rule lines from the failed attempts, in the form the update mode wants: edits, suggestions or a whole
  document. About one reply in four is no help: wrong rules in place of those that stand in the skill, a remark without
  effect, or an edit whose target does not exist beside the good ones. Which reply that is depends on the data alone. Where
  lapses are to be told apart, an attempt that failed although its rule stands in the skill becomes a note.
- `merge` unites equal changes of several patches and adds up their support; of rewritings it takes all rules together.
- `rank` orders changes by support, `budget` takes three quarters of them, `rewrite` carries suggestions out.
- `slow_update` writes the rules of items that fail, `meta_skill` a remark on what was learnt, `consolidate` halves notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sharpen.core.digest import Json, canonical, digest

KIND = re.compile(r"\b[a-z]+-\d+\b")
RULE = re.compile(r"^- ([a-z]+-\d+): (\S+)[ \t]*$", re.MULTILINE)
_KEPT_BY_OTHERS = re.compile(
    r"<!-- (?:PROTECTED:\S+ START|\w+_START) -->.*?<!-- (?:PROTECTED:\S+ END|\w+_END) -->", re.DOTALL
)
# None of them is the code word of any kind.
_MISLEADING = ("basalt", "cobalt", "flint", "pumice")

Change = dict[str, Json]
Data = Mapping[str, Json]
Lesson = tuple[str, str, list[str]]


def _reflect(data: Data) -> Json:
    attempts = data.get("attempts") or []
    lessons = _lessons(attempts)
    # Two bytes of a hash of everything the optimizer was told, so that it is bad luck and yet always the same.
    luck = int(digest(data)[:4], 16) % 16
    propose = {"rewrite_from_suggestions": _suggested, "full_rewrite_minibatch": _rewritten}
    changes = propose.get(str(data.get("mode")), _edited)(data, lessons, luck)
    patterns = [{"pattern": f"the code word of {kind} is not known", "items": items} for kind, _, items in lessons]
    summary = f"{len(lessons)} kinds were answered wrongly" if lessons else "nothing went wrong"
    notes = {"notes": _notes(data, attempts)} if data.get("skill_aware") else {}
    return {"summary": summary, "patterns": patterns, **notes, **changes}


def _edited(data: Data, lessons: list[Lesson], luck: int) -> Change:
    skill, part = _home(data)
    budget = len(lessons) + 1 if data.get("budget") is None else int(data["budget"])
    edits = _teaching(skill, lessons, part)[:budget]
    if luck < 2:
        edits = [_misleading(skill, lessons, part)]
    elif luck == 2:
        edits = [_edit("append", content="Take care with every message.")]
    elif luck == 3:
        missing = _edit("insert_after", target="- a line that is not there", content="- kind-00: nowhere")
        edits = [missing, *edits[: max(0, budget - 1)]]
    return {"edits": edits if budget > 0 else []}


def _suggested(data: Data, lessons: list[Lesson], luck: int) -> Change:
    budget = len(lessons) if data.get("budget") is None else int(data["budget"])
    suggestions = [
        {"kind": "add_rule", "title": kind, "instruction": f"- {kind}: {_word(word, luck)}", "support": len(items)}
        for kind, word, items in lessons
    ]
    return {"suggestions": suggestions[:budget]}


def _rewritten(data: Data, lessons: list[Lesson], luck: int) -> Change:
    if not lessons:
        return {"documents": []}
    skill, part = _home(data)
    text = _with_rules(skill, {kind: _word(word, luck) for kind, word, _ in lessons})
    return {"documents": [{"part": part, "text": text}]}


def _merge(data: Data) -> Json:
    patches = data.get("patches") or []
    if data.get("mode") == "full_rewrite_minibatch":
        return {"summary": "all rules together", **_merged_documents(data, patches)}
    changes = [change for patch in patches for change in _changes_of(patch)] + list(data.get("edits") or [])
    united: dict[str, Change] = {}
    for change in changes:
        same = canonical({key: value for key, value in change.items() if key not in ("support", "source", "items")})
        if same in united:
            united[same]["support"] += _support(change)
        else:
            united[same] = {**change, "support": _support(change)}
    ordered = sorted(united.values(), key=_support, reverse=True)
    name = "suggestions" if data.get("mode") == "rewrite_from_suggestions" else "edits"
    return {"summary": f"{len(ordered)} different changes", name: ordered}


def _merged_documents(data: Data, patches: Json) -> Change:
    skill, part = _home(data)
    found: dict[str, str] = {}
    for patch in patches:
        for change in _changes_of(patch):
            found.update(RULE.findall(change.get("texts", {}).get(part or "", "")))
    return {"documents": [{"part": part, "text": _with_rules(skill, found)}]}


def _rank(data: Data) -> Json:
    edits = data.get("edits") or []
    return {"order": sorted(range(len(edits)), key=lambda index: -_support(edits[index]))}


def _budget(data: Data) -> Json:
    pool = len(data.get("edits") or [])
    return {
        "budget": -(-pool * 3 // 4),
        "reasons": f"three quarters of {pool} changes",
        "confidence": "high",
        "risks": "a wrong rule among them",
    }


def _rewrite(data: Data) -> Json:
    skill, part = _home(data)
    wanted = [RULE.search(str(suggestion.get("instruction", ""))) for suggestion in data.get("suggestions") or []]
    text = _with_rules(skill, {rule[1]: rule[2] for rule in wanted if rule})
    return {"summary": f"{len(wanted)} suggestions carried out", "documents": [{"part": part, "text": text}]}


def _slow_update(data: Data) -> Json:
    failing = [pair for pair in data.get("pairs") or [] if pair.get("category") in ("regressed", "persistent_failure")]
    lines = [f"- {kind}: {word}" for kind, word, _ in _lessons(failing)]
    kept = [line for line in str(data.get("guidance", "")).splitlines() if line not in lines]
    return {"reasons": f"{len(lines)} kinds still fail", "content": "\n".join([*kept, *lines]) if lines else ""}


def _meta_skill(data: Data) -> Json:
    counts = data.get("counts") or {}
    seen = ", ".join(f"{count} {name}" for name, count in counts.items())
    return {"reasons": seen, "content": f"One rule line per kind works. Seen at the last look: {seen}."}


def _consolidate(data: Data) -> Json:
    notes = data.get("notes") or []
    return {"notes": notes[: len(notes) // 2]}


STAGES: dict[str, Callable[[Data], Json]] = {
    "reflect": _reflect,
    "merge": _merge,
    "rank": _rank,
    "budget": _budget,
    "rewrite": _rewrite,
    "slow_update": _slow_update,
    "meta_skill": _meta_skill,
    "consolidate": _consolidate,
}


def _home(data: Data) -> tuple[str, str | None]:
    """The text rules belong in, and the part it is: a reference file where there is one, else the main document."""
    others = data.get("other_parts") or {}
    part = next((name for name in others if name.startswith("references/")), None)
    return (str(data.get("skill", "")), None) if part is None else (str(others[part]), part)


def _lessons(attempts: Json) -> list[Lesson]:
    """(kind, code word, items) for every kind that was answered wrongly, those with most items first."""
    lessons: dict[tuple[str, str], list[str]] = {}
    for attempt in attempts:
        kind = KIND.search(str(attempt.get("input", "")))
        word = str(attempt.get("expected") or "")
        if kind and word and float(attempt.get("score") or 0) < 1:
            lessons.setdefault((kind.group(), word), []).append(str(attempt.get("item", "")))
    ordered = sorted(lessons.items(), key=lambda lesson: (-len(lesson[1]), lesson[0]))
    return [(kind, word, items) for (kind, word), items in ordered]


def _notes(data: Data, attempts: Json) -> list[str]:
    """A note for every kind whose rule stands in the skill and was not followed."""
    standing = dict(RULE.findall(_home(data)[0]))
    lapses = [kind for kind, word, _ in _lessons(attempts) if standing.get(kind) == word]
    return [f"Look up the rule of {kind} before you answer." for kind in lapses]


def _teaching(skill: str, lessons: list[Lesson], part: str | None) -> list[Change]:
    """One edit per lesson: put a wrong rule right, else add the rule behind the last one. A line that stands twice, or that
    other hands keep, can't be a target; where there is none the rule goes to the end."""
    standing = {rule[1]: rule[0].rstrip() for rule in RULE.finditer(_KEPT_BY_OTHERS.sub("", skill))}
    last = next(reversed(standing.values()), "")
    edits = []
    for kind, word, items in lessons:
        op, target = ("replace", standing[kind]) if kind in standing else ("insert_after", last)
        if not target or skill.count(target) != 1:
            op, target = "append", ""
        edits.append(_edit(op, target=target, content=f"- {kind}: {word}", support=len(items), part=part))
    return edits


def _with_rules(skill: str, learnt: Mapping[str, str]) -> str:
    """The document with these rules in place of earlier ones for the same kinds, new ones at the end of its body."""
    body, _, signs = skill.partition("[[PROTECTED")
    kept = [line for line in body.rstrip().splitlines() if not ((rule := RULE.match(line)) and rule[1] in learnt)]
    text = "\n".join([*kept, *(f"- {kind}: {word}" for kind, word in sorted(learnt.items()))])
    return f"{text}\n\n[[PROTECTED{signs}" if signs else f"{text}\n"


def _misleading(skill: str, lessons: list[Lesson], part: str | None) -> Change:
    """Wrong words for every kind that is known, or, where nothing is known yet, for those that were asked for."""
    kinds = list(dict(RULE.findall(skill))) or [kind for kind, _, _ in lessons]
    if not kinds:
        return _edit("append", content="Answer as you like.", part=part)
    lines = [f"- {kind}: {_MISLEADING[index % len(_MISLEADING)]}" for index, kind in enumerate(kinds)]
    return _edit("append", content="\n".join(lines), part=part)


def _word(word: str, luck: int) -> str:
    return _MISLEADING[luck] if luck < 2 else word


def _changes_of(patch: Json) -> list[Change]:
    return list(patch.get("edits") or []) if isinstance(patch, Mapping) else list(patch)


def _support(edit: Change) -> int:
    return int(edit.get("support") or 1)


def _edit(op: str, *, content: str, target: str = "", support: int = 1, part: str | None = None) -> Change:
    where = {} if part is None else {"part": part}
    return {"op": op, "target": target, "content": content, "support": support, **where}
