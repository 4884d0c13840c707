"""The script `scripted/rules`: target and optimizer of the `codebook` task.

A codebook item names a kind (`kind-07: please reply`); its answer is the code word of the kind. The skill may hold rule
lines (`- kind-07: azure`). As the target, the script answers the word of the last rule for the kind, or `unknown`. As an
optimizer it is given a JSON block after the line `## Data` and does what the block's `stage` says:

- `reflect` learns rule lines from the failed attempts. About one reply in four is no help: wrong rules in place of those
  that stand in the skill, a remark without effect, or an edit whose target does not exist beside the good ones. Which
  reply that is depends on the data alone.
- `merge` unites equal edits of several patches and adds up their support.
- `rank` orders edits by support.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from sharpen.core.chat import Request
from sharpen.core.digest import Json, canonical, digest
from sharpen.models.scripted import DATA_HEADING, last_said

UNKNOWN = "unknown"
_KIND = re.compile(r"\b[a-z]+-\d+\b")
_RULE = re.compile(r"^- ([a-z]+-\d+): (\S+)[ \t]*$", re.MULTILINE)
# None of them is the code word of any kind.
_MISLEADING = ("basalt", "cobalt", "flint", "pumice")

Edit = dict[str, Json]


def rules(request: Request) -> str:
    """The reply of the script, in whichever part it is asked."""
    data = _data(request)
    if data is None:
        return _answer(request)
    stages = {"reflect": _reflect, "merge": _merge, "rank": _rank}
    stage = stages.get(str(data.get("stage")))
    return UNKNOWN if stage is None else json.dumps(stage(data), ensure_ascii=False)


def _answer(request: Request) -> str:
    said = last_said(request)
    kinds = _KIND.findall(said)
    if not kinds:
        return UNKNOWN
    if request.prompt is not None:
        return _book(request.prompt).get(kinds[-1], UNKNOWN)
    skill = "\n".join(m.content for m in request.messages if m.role == "system")
    return _book(skill).get(kinds[0], UNKNOWN)


@lru_cache(maxsize=64)
def _book(skill: str) -> Mapping[str, str]:
    return dict(_RULE.findall(skill))


def _data(request: Request) -> Mapping[str, Json] | None:
    """The JSON block of the last user message that has one; earlier ones belong to questions already answered."""
    for message in reversed(request.messages):
        _, heading, rest = f"\n{message.content}".rpartition(f"\n{DATA_HEADING}\n")
        if message.role != "user" or not heading:
            continue
        _, fence, block = rest.partition("```json\n")
        if fence:
            value, _ = json.JSONDecoder().raw_decode(block.lstrip())
            return value if isinstance(value, Mapping) else None
    return None


def _reflect(data: Mapping[str, Json]) -> Json:
    skill = str(data.get("skill", ""))
    attempts = data.get("attempts") or []
    budget = int(data.get("budget", len(attempts)))
    lessons = _lessons(attempts)
    edits = _teaching(skill, lessons)[:budget]
    patterns = [{"pattern": f"the code word of {kind} is not known", "items": items} for kind, _, items in lessons]
    # Two bytes of a hash of everything the optimizer was told, so that it is bad luck and yet always the same.
    luck = int(digest(data)[:4], 16) % 16
    if luck < 2:
        edits = [_misleading(skill, lessons)]
    elif luck == 2:
        edits = [_edit("append", content="Take care with every message.")]
    elif luck == 3:
        missing = _edit("insert_after", target="- a line that is not there", content="- kind-00: nowhere")
        edits = [missing, *edits[: max(0, budget - 1)]]
    summary = f"{len(lessons)} kinds were answered wrongly" if lessons else "nothing went wrong"
    return {"summary": summary, "patterns": patterns, "edits": edits if budget > 0 else []}


def _lessons(attempts: Json) -> list[tuple[str, str, list[str]]]:
    """(kind, code word, items) for every kind that was answered wrongly, those with most items first."""
    lessons: dict[tuple[str, str], list[str]] = {}
    for attempt in attempts:
        kind = _KIND.search(str(attempt.get("input", "")))
        word = str(attempt.get("expected") or "")
        if kind and word and float(attempt.get("score") or 0) < 1:
            lessons.setdefault((kind.group(), word), []).append(str(attempt.get("item", "")))
    ordered = sorted(lessons.items(), key=lambda lesson: (-len(lesson[1]), lesson[0]))
    return [(kind, word, items) for (kind, word), items in ordered]


def _teaching(skill: str, lessons: list[tuple[str, str, list[str]]]) -> list[Edit]:
    """One edit per lesson: put a wrong rule right, else add the rule behind the last one. A line that stands twice can't
    be a target; then the rule goes to the end, where it counts."""
    standing = {rule[1]: rule[0].rstrip() for rule in _RULE.finditer(skill)}
    last = next(reversed(standing.values()), "")
    edits = []
    for kind, word, items in lessons:
        op, target = ("replace", standing[kind]) if kind in standing else ("insert_after", last)
        if not target or skill.count(target) != 1:
            op, target = "append", ""
        edits.append(_edit(op, target=target, content=f"- {kind}: {word}", support=len(items)))
    return edits


def _misleading(skill: str, lessons: list[tuple[str, str, list[str]]]) -> Edit:
    """Wrong words for every kind that is known, or, where nothing is known yet, for those that were asked for."""
    kinds = list(dict(_RULE.findall(skill))) or [kind for kind, _, _ in lessons]
    if not kinds:
        return _edit("append", content="Answer as you like.")
    lines = [f"- {kind}: {_MISLEADING[index % len(_MISLEADING)]}" for index, kind in enumerate(kinds)]
    return _edit("append", content="\n".join(lines))


def _merge(data: Mapping[str, Json]) -> Json:
    united: dict[str, Edit] = {}
    for edit in [edit for patch in data.get("patches") or [] for edit in _edits_of(patch)] + (data.get("edits") or []):
        same = canonical({key: value for key, value in edit.items() if key in ("op", "target", "content", "part")})
        if same in united:
            united[same]["support"] += _support(edit)
        else:
            united[same] = {**edit, "support": _support(edit)}
    edits = sorted(united.values(), key=_support, reverse=True)
    return {"summary": f"{len(edits)} different edits", "patterns": [], "edits": edits}


def _rank(data: Mapping[str, Json]) -> Json:
    edits = data.get("edits") or []
    return {"order": sorted(range(len(edits)), key=lambda index: -_support(edits[index]))}


def _edits_of(patch: Json) -> list[Edit]:
    return list(patch.get("edits") or []) if isinstance(patch, Mapping) else list(patch)


def _support(edit: Edit) -> int:
    return int(edit.get("support") or 1)


def _edit(op: str, *, content: str, target: str = "", support: int = 1) -> Edit:
    return {"op": op, "target": target, "content": content, "support": support}
