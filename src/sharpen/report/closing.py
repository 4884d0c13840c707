"""The report at the end of a training, and as much of it as there is for one that is not at its end.

Every section is a function of `results.json` (and of the trained texts), and returns what rich can print; a section with
nothing to say returns None. The order is the reader's: is it better, by how much, what is it now, what brought it, what did
it cost, where is it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from sharpen.bench import benchmark, uncounted
from sharpen.bench.artifacts import MOST_CUT_OFF
from sharpen.core.candidate import Candidate
from sharpen.report import objectives, policies, steps, text

Results = Mapping[str, Any]
Block = Text | Table

_LONG = 2_400
"""A skill of more characters than this is shown in part."""
_MOST_TYPES = 12
"""More task types than this are in results.json only; the largest ones are shown."""


@dataclass(frozen=True)
class Place:
    """Where a job's files are, as they should be shown, and how this program is called from there."""

    run: Path
    job: Path
    program: str = "sharpen"

    @property
    def name(self) -> str:
        return self.run.name

    def best(self) -> Path | None:
        path = self.job / "checkpoints" / "best"
        return path if path.exists() else None


def closing(results: Results, place: Place, skill: Candidate | None) -> Iterator[Block]:
    """All sections that have something to say, each under its heading."""
    sections: tuple[tuple[str, list[Block | None]], ...] = (
        ("Ended early", [ended_early(results)]),
        ("Test", [verdict(results), scores(results), by_type(results), confirmation(results), scale(results)]),
        ("Objectives", [objectives.tested(results["objectives"]), *objectives.front(results["objectives"])]),
        *_about_trained(results, skill),
        ("Where everything is", [whereabouts(place, policy=policies.is_policy(results))]),
        ("What to try next", [next_steps(results, place)]),
    )
    for name, blocks in sections:
        there = [block for block in blocks if block is not None]
        if there:
            yield heading(name)
            yield from there


def _about_trained(results: Results, skill: Candidate | None) -> Iterator[tuple[str, list[Block | None]]]:
    if policies.is_policy(results):
        yield "The policy", [policies.described(skill)]
        yield "Evaluations", [policies.evaluations(results)]
        yield "Time", [policies.times(results)]
        return
    yield "The trained skill" if changed(results) else "The skill", [trained(skill)]
    yield "What each accepted edit brought", [accepted(results)]
    yield "Steps", [counts(results), cut_off(results)]
    yield "Cost", [costs(results), never_asked(results)]


def heading(name: str) -> Text:
    return Text(f"\n{name}", style="bold")


def table(*columns: str, left: int = 1) -> Table:
    """A plain table whose first `left` columns are texts and the rest numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, name in enumerate(columns):
        made.add_column(name, justify="left" if number < left else "right", overflow="fold")
    return made


def changed(results: Results) -> bool:
    """Whether the best candidate is another one than training started from."""
    test = results["test"]
    if "best" in test and "initial" in test:
        return bool(test["best"]["candidate"] != test["initial"]["candidate"])
    return any(step["action"] == "accept" for step in results["steps"])


def ended_early(results: Results) -> Text | None:
    """Why a job did not take all its steps."""
    if results["status"] == "failed":
        return Text(results["message"], style="red")
    if results["budget_ended"] is not None:
        return Text(f"The budget ended the training: {results['budget_ended']}.", style="yellow")
    return None


def verdict(results: Results) -> Text | None:
    """Is it better? In one sentence, with the paired difference and its interval."""
    gain = results["gain"].get("best")
    if gain is None:
        return None
    if not changed(results):
        kept = (
            "no policy did better on val than the one training started from"
            if policies.is_policy(results)
            else "no change proved itself, so the skill is the one training started from"
        )
        return Text(f"No gain: {kept}.", style="yellow")
    unit, low, high = policies.unit(results), gain["low"], gain["high"]
    if low is None or high is None:
        return Text(f"No test {unit} was scored for both, so nothing can be said about a gain.", style="yellow")
    difference = f"{text.signed(gain['mean'])}, 95 % interval {text.interval(low, high, sign=True)}"
    if gain.get("p") is not None:
        difference += f", {text.p_value(gain['p'])}"
    if "normalised" in gain:
        told = gain["normalised"]
        difference += f"; normalised {text.signed(told['mean'])} {text.interval(told['low'], told['high'], sign=True)}"
    if gain["n"] == 1:
        words = f"On the one test {unit}: {text.signed(gain['mean'])}. One {unit} has no interval."
        return Text(words, style="yellow")
    basis = f"{text.plural(gain['n'], f'test {unit}')} that training never saw, paired"
    shown = benchmark.verdict(low, high, benchmark.scale_of(results.get("benchmark")))
    if shown > 0:
        return Text(f"Better by {difference} ({basis}).", style="green")
    if shown < 0:
        return Text(f"Worse by {difference} ({basis}).", style="red")
    return Text(f"No gain shown: {difference} ({basis}); a difference of zero is not ruled out.", style="yellow")


def scores(results: Results) -> Table | None:
    test = results["test"]
    if not test:
        return None
    scaled = any("normalised" in row for row in test.values())
    counted = f"{policies.unit(results)}s"
    made = table("", "score", "95 % interval", *(["normalised", "95 % interval"] * scaled), counted, "failed")
    names = {"initial": "before", "best": "after (best)", "final": "after (last)"}
    shown: set[str] = set()
    for which, row in test.items():
        if which == "final" and row["candidate"] in shown:
            continue
        shown.add(row["candidate"])
        made.add_row(names.get(which, which), *_score_cells(row))
    return made


def scale(results: Results) -> Text | None:
    """What the normalised scores mean: what 0 and the scale's end stand for, by which protocol."""
    found = benchmark.scale_of(results.get("benchmark"))
    if found is None:
        return None
    here = results["benchmark"].get("task_protocol")
    return Text(f"\n{benchmark.meaning(found)}{f' Measured here: {here}.' if here else ''}", style="dim")


def by_type(results: Results) -> Table | None:
    """Before and after for each task type, where there is more than one."""
    test = results["test"]
    if "initial" not in test or "best" not in test or len(test["initial"]["by_type"]) < 2:
        return None
    rows = sorted(test["initial"]["by_type"].items(), key=lambda row: (-row[1]["n"], row[0]))
    made = table("\nby type", "\nitems", "\nbefore", "\nafter")
    for kind, before in rows[:_MOST_TYPES]:
        after = test["best"]["by_type"].get(kind, {})
        made.add_row(kind, text.count(before["n"]), text.score(before["mean"]), text.score(after.get("mean")))
    if len(rows) > _MOST_TYPES:
        made.add_row(f"… and {len(rows) - _MOST_TYPES} more", "", "", "", style="dim")
    return made


def confirmation(results: Results) -> Text | None:
    """The honest score of the best on val, beside the one it was chosen by."""
    best = results["best"]
    if best is None or not (changed(results) or policies.is_policy(results)):
        return None
    confirmed = best.get("confirmed")
    metric = policies.chosen_by(results)
    if confirmed is None or confirmed["value"] is None:
        why = "" if confirmed is None else f" ({confirmed['how']})"
        chosen = "the score it was chosen by" if metric is None else f"chosen by {metric}"
        return Text(f"\nBest on val: {text.score(best['raw'])}, {chosen}; not confirmed{why}.")
    flattered = f"a raw score of {text.score(best['raw'])} on val, which may flatter it"
    if metric is not None:
        flattered = f"{metric}, which may flatter it; its mean return on val was {text.score(best['raw'])} then"
    return Text(
        f"\nHonest best: {text.score(confirmed['value'])} {text.interval(confirmed['low'], confirmed['high'])}, measured "
        f"again on {text.plural(confirmed['n'], policies.unit(results))} ({confirmed['how']}); at the start "
        f"{text.score(confirmed['initial'])}.\n"
        f"It was chosen by {flattered}."
        f"{_normalised_best(best.get('normalised'), metric)}"
    )


def _normalised_best(told: Mapping[str, Any] | None, metric: str | None) -> str:
    if told is None:
        return ""
    chosen = "chosen by" if metric is None else "on val"
    return (
        f"\nNormalised: {text.score(told['value'])} {text.interval(told['low'], told['high'])}; at the start "
        f"{text.score(told['initial'])}; {chosen} {text.score(told['raw'])}."
    )


def trained(skill: Candidate | None) -> Text | None:
    """The text itself, in full where it is short."""
    if skill is None:
        return None
    parts = []
    for name, content in skill.parts.items():
        whole = content.rstrip("\n")
        if len(whole) > _LONG:
            whole = f"{whole[:_LONG].rstrip()}\n… ({text.count(len(content))} characters in all)"
        title = f"{name}\n" if len(skill.parts) > 1 else ""
        parts.append(title + "\n".join(f"  {line}" for line in whole.splitlines()))
    return Text("\n\n".join(parts))


def accepted(results: Results) -> Table | None:
    """One row per accepted step and slow update, and one for what the final check made the best."""
    rows = [step for step in results["steps"] if step["action"] == "accept" and step["decision"] is not None]
    promotion = results["promotion"]
    slow = {epoch["slow_update"]["step"]: epoch["slow_update"] for epoch in results["epochs"] if epoch["slow_update"]}
    long_views = [update for update in slow.values() if update["action"] == "accept"]
    if not rows and not long_views:
        return None
    made = table("step", "edit", "why", "effect on val, 90 %", "rollouts", left=3)
    changes = [(step["step"], 0, steps.edits(step["edits"]), step["decision"]) for step in rows]
    changes += [(u["step"], 1, f"slow update {text.short(u['content'], 48)!r}", u["decision"]) for u in long_views]
    for number, _, words, decision in sorted(changes, key=lambda change: change[:2]):
        cells = (decision["reason"], steps.effect(decision), text.count(decision["rollouts"]))
        made.add_row(str(number), words, *cells)
    if promotion is not None and promotion["promoted"]:
        why = "what training ended with did better on val; proven better than the start, not than the step before"
        made.add_row("end", steps.edits(promotion["edits"]), why, steps.effect(promotion), text.NOTHING)
    return made


def counts(results: Results) -> Text | None:
    """How the steps ended, and what was left out of them."""
    if not results["steps"]:
        return None
    tally: dict[str, int] = {}
    for step in results["steps"]:
        tally[step["action"]] = tally.get(step["action"], 0) + 1
    parts = [f"{number} {steps.action(name)}" for name, number in sorted(tally.items())]
    words = f"{text.plural(len(results['steps']), 'step')}: {', '.join(parts)}."
    if results["failed_rollouts"]:
        words += f" {text.plural(results['failed_rollouts'], 'rollout')} failed and are in no mean."
    if results["lost_answers"]:
        words += f" {text.plural(results['lost_answers'], 'answer')} of the optimizer were not usable."
    return Text(words)


def cut_off(results: Results) -> Text | None:
    """That many answers ended at the most tokens they may have, which looks like bad answers and is a setting."""
    cut, rollouts = results["cut_off"]["answers"], results["cut_off"]["rollouts"]
    if cut <= MOST_CUT_OFF * rollouts:
        return None
    words = f"{text.count(cut)} of {text.count(rollouts)} answers were cut off at the longest they may be: raise"
    return Text(f"{words} task.max_tokens (64 where nothing is said), or ask for shorter answers.", style="yellow")


def evaluations(results: Results) -> Table:
    """How a policy did each time it was evaluated, and in training on the way there."""
    rows = results["steps"]
    scaled = any("normalised" in row for row in rows)
    head = ("\nstep", "return\nin training", "return\non val", *(["\nnormalised"] * scaled), "length\non val", "")
    made = table(*head, left=0)
    made.columns[-1].justify = "left"
    for row in rows:
        normalised = [text.score(row["normalised"]["current_score"])] if scaled else []
        length = row["metrics"].get("eval_length_mean")
        cells = (text.count(row["step"]), text.score(row["batch_score"]), text.score(row["current_score"]), *normalised)
        made.add_row(*cells, text.score(length), "best so far" if row["action"] == "best" else "")
    return made


def costs(results: Results) -> Table | None:
    """Calls, tokens and seconds by stage; money where there is any."""
    usage, clock = results["usage"], results["clock"]
    if not usage["stages"]:
        return None
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for key, roles in usage["stages"].items():
        stages.setdefault(key.partition("/")[0], []).extend(roles.values())
    money = any(row["money"] != 0 for rows in stages.values() for row in rows)
    made = table("stage", "calls", "prompt tokens", "new tokens", "seconds", *(["money"] * money))
    order = list(clock["stages"]) + [name for name in stages if name not in clock["stages"]]
    for name in order:
        if name in stages:
            made.add_row(name, *_cost_cells(stages[name], clock["stages"].get(name), money))
    made.add_row("all", *_cost_cells([usage["total"]], clock["seconds"], money), style="bold")
    return made


def never_asked(results: Results) -> Text | None:
    """That the model was opened and no rollout asked it, which is how a client of the task's own looks from here."""
    if not results.get("model_never_asked"):
        return None
    return Text(f"No rollout asked the model through sharpen: {uncounted.REMEDY}.", style="yellow")


def whereabouts(place: Place, *, policy: bool = False) -> Text:
    best = place.best()
    rows = [] if best is None else [("the policy", best) if policy else ("the skill", best / "parts")]
    rows += [
        ("all checkpoints", place.job / "checkpoints"),
        ("the whole story", place.job / "events.jsonl"),
        ("results", place.job / "results.json"),
        ("what was paid for", place.run / "ledger.db"),
    ]
    return Text("\n".join(f"{name:<20}{path}" for name, path in rows))


def next_steps(results: Results, place: Place) -> Text:
    rows = list(_commands(results, place))
    width = max(len(command) for command, _ in rows)
    return Text("\n".join(f"{command:<{width}}   # {why}" for command, why in rows))


def _commands(results: Results, place: Place) -> Iterator[tuple[str, str]]:
    sharpen = place.program
    run = place.name if place.run.parent == Path("runs") else f"{place.name} --runs {place.run.parent}"
    if results["status"] == "done":
        yield f"{sharpen} resume {run} --verify", "tell the story again from the ledger and compare"
    elif results["status"] == "budget":
        yield f"{sharpen} resume {run} --budget {_twice(results)}", "carry on with more"
    else:
        yield f"{sharpen} resume {run}", "carry on where it stopped"
    if changed(results) and place.best() is not None:
        yield f"{sharpen} eval {run} --split val --against initial", "the same question on another split"
    if policies.is_policy(results) and place.best() is not None:
        yield f"{sharpen} play {run}", "watch the best policy play"
    yield f"{sharpen} status {run}", "every step"
    yield f"{sharpen} list tasks", "what else there is to train on"
    yield f"{sharpen} train --help", "your own data, other models, budgets"


def _twice(results: Results) -> str:
    """Twice the cap that ended a training, as an option says it."""
    met = re.search(r"the cap of (\S+) (calls|tokens|seconds|in money)", results["budget_ended"] or "")
    if met is None:
        return f"calls={2 * results['usage']['total']['calls']}"
    return f"{met[2].removeprefix('in ')}={2 * float(met[1]):g}"


def _score_cells(row: Mapping[str, Any]) -> list[str]:
    cells = [text.score(row["mean"]), text.interval(row["low"], row["high"])]
    if "normalised" in row:
        told = row["normalised"]
        cells += [text.score(told["mean"]), text.interval(told["low"], told["high"])]
    return [*cells, text.count(row["n"]), text.count(row["failed"])]


def _cost_cells(rows: list[Mapping[str, Any]], seconds: float | None, money: bool) -> list[str]:
    sums = [sum(row[name] for row in rows) for name in ("calls", "prompt_tokens", "completion_tokens")]
    cells = [*map(text.count, sums), text.seconds(seconds)]
    if money:
        known = [row["money"] for row in rows]
        cells.append("unknown" if None in known else f"{sum(known):.4f}")
    return cells
