"""What one event of a job's story says to a reader, where that needs nothing but the event itself.

Each saying takes a line of `events.jsonl` and gives coloured text, or None where there is no news in it. What needs to know
the events before (which text a change was made to, where the job stands) is in `watching`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from sharpen.bench import benchmark
from sharpen.core.benchmark import POLICY_METRIC
from sharpen.report import diffs, steps, text

Line = Mapping[str, Any]
GOOD, BAD, DOUBT, QUIET = "green", "red", "yellow", "dim"
_MOST = 100
"""Characters of what a model or an endpoint said."""


def say(*lines: tuple[str, str], glue: str = "\n") -> Text:
    """Lines with their styles, without anything that a terminal would take as a command."""
    return Text(glue).join(Text("\n".join(map(diffs.printable, words.split("\n"))), style) for words, style in lines)


def indented(shown: Text, by: int = 4) -> Text:
    """A text moved to the right, without blanks at the ends of its lines."""
    lines = [Text(" " * by).append_text(line) for line in shown.split("\n") if line.plain]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def by_name(kind: str, line: Line) -> Text:
    """An event in one line: its name, and those of its fields that are short."""
    short = [
        f"{name.replace('_', ' ')} {text.short(str(value), 40)}"
        for name, value in line.items()
        if name not in ("n", "type", "clock") and isinstance(value, str | int | float) and 0 < len(str(value)) < 64
    ]
    return say((f"  {kind.replace('_', ' ')}{': ' if short else ''}{', '.join(short)}", QUIET))


def _benchmark_stated(line: Line) -> Text | None:
    found = benchmark.scale_of(line)
    return None if found is None else say((benchmark.meaning(found), QUIET))


def _repeat_stated(line: Line) -> Text:
    return say((f"repetition {line['repeat']} of the same seed", QUIET))


def _normalised(line: Line) -> Text:
    write = text.signed if line["what"].startswith("gain/") else text.score
    ends = text.interval(line["low"], line["high"], sign=write is text.signed)
    return say((f"  {line['what'].replace('/', ' ')}, normalised: {write(line['value'])} {ends}", QUIET))


def _policy_evaluated(line: Line) -> Text:
    told = "" if line["normalised"] is None else f", normalised {text.score(line['normalised'])}"
    mean = text.score(line["metrics"].get(POLICY_METRIC))
    words = f"  {text.plural(line['episodes'], 'episode')} on val: mean return {mean}{told}"
    return say((f"{words}; the best so far" if line["best"] else words, GOOD if line["best"] else ""))


def _planned(line: Line) -> Text:
    size = line["items_per_step"]
    items, val = (f" of {text.plural(size, 'item')}", "val items") if size else ("", "of val")
    plan = f"{text.plural(line['steps'], 'step')}{items}; {line['deciding']} {val} decide, {line['held_back']} are held back"
    return say((plan, QUIET), *((f"remark: {remark}", DOUBT) for remark in line["remarks"]))


def _shortened(line: Line) -> Text:
    cut = f"{text.plural(line['characters'], 'character')} of what the optimizer is shown left out"
    return say((f"  {cut}{' to fit its context' if line['fits'] else '; even so it does not fit its context'}", DOUBT))


def _reflected(line: Line) -> Text | None:
    """What was seen most often in the attempts."""
    seen: Counter[str] = Counter()
    for reading in line["readings"]:
        for pattern in reading["patterns"]:
            seen[pattern["pattern"]] += pattern["count"]
    if not seen:
        return None
    first = "; ".join(f"{text.short(words, 60)} ({number}×)" for words, number in seen.most_common(2))
    more = f"; and {len(seen) - 2} more" if len(seen) > 2 else ""
    return say((f"  seen: {first}{more}", QUIET))


def _proposed(line: Line) -> Text:
    sources = ", ".join(dict.fromkeys(str(one["source"]) for one in line["alternatives"])) or "nobody"
    count = text.plural(len(line["alternatives"]), "alternative")
    seen = f"{text.plural(line['failures'], 'failure')} and {text.plural(line['successes'], 'success', 'successes')}"
    return say((f"  {count} from {seen}, by {sources}", QUIET))


def _budget_chosen(line: Line) -> Text:
    if not line["usable"]:
        return say((f"  the optimizer did not say how many changes to make; the schedule says {line['budget']}", DOUBT))
    why = f": {text.short(line['reasons'], _MOST)}" if line["reasons"] else ""
    return say((f"  the optimizer wants {line['budget']} of {text.plural(line['pool'], 'change')}{why}", QUIET))


def _refused(line: Line) -> Text:
    whys = "; ".join(dict.fromkeys(text.short(str(why), 80) for *_, why in line["alternatives"]))
    return say((f"  {text.plural(len(line['alternatives']), 'alternative')} can't be tried: {whys}", DOUBT))


def _selected(line: Line) -> Text:
    tried = {row[0]: row for row in line["tried"]}
    if line["chosen"] is None:
        return say((f"  none of {len(tried)} did better than the present text on train items", QUIET))
    _, score, present, items, _ = tried[line["chosen"]]
    if score is None:
        return say(("  one of them is put forward untried", QUIET))
    compared = f"{text.score(score)} on {text.plural(items, 'train item')}, the present text {text.score(present)}"
    return say((f"  the best of {len(tried)} did {compared}", QUIET))


def _notes_kept(line: Line) -> Text:
    how = f"made fewer: {line['total']} in all" if line["consolidated"] else f"{line['total']} in all"
    said = say((f"  {text.plural(len(line['added']), 'reminder')} into the appendix, without proof ({how}):", DOUBT))
    added = Text("\n".join(f"+ {diffs.printable(str(note))}" for note in line["added"]), diffs.CAME)
    return said.append("\n").append_text(indented(added))


def _meta_skill_written(line: Line) -> Text:
    if line["action"] != "written":
        return say(("  the optimizer's notebook was not written: its answer was not usable", DOUBT))
    return say((f"  the optimizer's notebook: {text.short(line['content'], _MOST)}", QUIET))


def _promoted(line: Line) -> Text:
    effect = f"{steps.effect(line)} on val to the best so far"
    if line["promoted"]:
        return say((f"\nwhat training ended with is now the best: {effect}; proven better than the start", GOOD))
    return say((f"\nwhat training ended with does not become the best: {effect}", DOUBT))


def _budget_ended(line: Line) -> Text:
    return say((f"\nthe budget ended the training: {line['message']}", DOUBT))


SAYINGS: dict[str, Callable[[Line], Text | None]] = {
    "benchmark_stated": _benchmark_stated,
    "repeat_stated": _repeat_stated,
    "normalised": _normalised,
    "policy_evaluated": _policy_evaluated,
    "planned": _planned,
    "shortened": _shortened,
    "reflected": _reflected,
    "proposed": _proposed,
    "budget_chosen": _budget_chosen,
    "refused": _refused,
    "selected": _selected,
    "notes_kept": _notes_kept,
    "meta_skill_written": _meta_skill_written,
    "promoted": _promoted,
    "budget_ended": _budget_ended,
}
