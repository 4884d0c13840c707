"""The story of a job, told line by line as its events come: what each one says to a reader, and where the job stands.

`Telling` takes the lines of `events.jsonl` in order and gives for each what is to be printed, or nothing. It keeps the texts
that checkpoints and edits lead to, so that a change can be shown as a difference; loading a checkpoint is the caller's.
An event it does not know, or whose fields are not those it expects, is shown in one line by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from sharpen.bench import policy_curve
from sharpen.core.candidate import Candidate
from sharpen.core.usage import NOTHING, Usage
from sharpen.report import diffs, steps, text
from sharpen.report.sayings import BAD, DOUBT, GOOD, QUIET, SAYINGS, Line, by_name, indented, say
from sharpen.skill import edits as edits_of
from sharpen.skill.protected import SLOW_UPDATE, with_content

Load = Callable[[str], Candidate | None]
"""The candidate of a checkpoint by its path in the job's folder; None where it can't be read."""

CLOSING = "closing"
_NEXT = {"rollout": "reflect", "reflect": "aggregate", "aggregate": "select", "select": "gate", "confirm": "test"}
"""What usually follows a stage. Events tell of stages that ended, people want to know the one under way."""
_UNKNOWN = "unknown"
_ENDINGS = {"accept": GOOD, "reject": BAD, "draft": DOUBT}


@dataclass(frozen=True)
class Position:
    """Where a job stands after the events so far. `at` and `seconds` are the clock of the last one."""

    step: int = 0
    steps: int = 0
    stage: str = "start"
    batch: float | None = None
    best: float | None = None
    used: Usage = NOTHING
    rollouts: int = 0
    rolled_calls: int = 0
    """Calls of the target that those rollouts took."""
    sizes: Mapping[str, int] | None = None
    at: float | None = None
    seconds: float = 0.0
    ended: str | None = None

    @property
    def closing_calls(self) -> int:
        """About how many calls the closing measurement still takes: the start and the best on test, and before that val."""
        if self.sizes is None:
            return 0
        per_rollout = max(1.0, self.rolled_calls / self.rollouts) if self.rollouts else 1.0
        return round((2 * self.sizes["test"] + (0 if self.stage == "test" else self.sizes["val"])) * per_rollout)


class Telling:
    """A reader of one story from its beginning."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._known: dict[str, Candidate] = {}
        self._current = ""
        self._draft: str | None = None
        """What steps build on instead of the current candidate, by digest; `_UNKNOWN` where that can't be told."""
        self._tried = ""
        self._noted = False
        """Whether reminders went into the candidates in this step."""
        self._headed = 0
        self._batch: list[float | None] = []
        self._returned: float | None = None
        """The mean return of the episodes a policy trained in since its last evaluation."""
        self._candidates: dict[str, str] = {}
        self._now: dict[str, Any] = {}

    @property
    def position(self) -> Position:
        return Position(**self._now)

    def tell(self, line: Line) -> Text | None:
        """What this event says to a reader, without a newline at its end; None where it is no news."""
        clock = line.get("clock") or {}
        self._now.update(at=clock.get("at"), seconds=clock.get("elapsed") or self.position.seconds)
        kind = str(line.get("type"))
        teller, saying = _TELLERS.get(kind), SAYINGS.get(kind)
        if teller is None and saying is None:
            return by_name(kind, line)
        try:
            heard = None if teller is None else teller(self, line)
            said = heard if saying is None else saying(line)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            return by_name(kind, line)
        if said is None or not said.plain.strip():
            return None
        said.rstrip()
        return said

    def _job_started(self, line: Line) -> Text:
        sizes = {name: row[0] for name, row in line["splits"].items()}
        self._now.update(sizes=sizes)
        self._current = line["candidate"]
        data = ", ".join(f"{size} {name}" for name, size in sizes.items())
        how = "no model" if line["render"] == "none" else f"rendering {line['render']}"
        return say(
            (f"{line['task']} ({data}) · {line['trainer']} · {how} · seed {line['seed']}", "bold"),
            (f"job {line['job_id']}", QUIET),
        )

    def _planned(self, line: Line) -> None:
        self._now.update(steps=line["steps"])

    def _checkpointed(self, line: Line) -> None:
        saved = self._load(line["path"])
        if saved is not None:
            self._known[saved.digest] = saved

    def _measured(self, line: Line) -> Text | None:
        groups = line["groups"]
        count = sum(len(group["hard"]) for group in groups)
        self._use(*line["usage"].values())
        now = self.position
        calls = sum(row[0] for role, row in line["usage"].items() if role == "target")
        self._now.update(stage=line["stage"], rollouts=now.rollouts + count - line["reused"])
        self._now.update(rolled_calls=now.rolled_calls + calls)
        if line["purpose"] == "train":
            self._batch += [score for group in groups for score in group["hard"]]
            scored = [score for score in self._batch if score is not None]
            self._now.update(batch=sum(scored) / len(scored) if scored else None)
        failed = [why for group in groups for why in group["failed"].values()]
        if not failed:
            return None
        last = text.short(diffs.printable(str(failed[-1][1])), 80)
        return say(
            (f"  {text.plural(len(failed), 'rollout')} of {count} failed and are in no mean; the last: {last}", DOUBT)
        )

    def _asked(self, line: Line) -> Text | None:
        self._use(line["usage"])
        self._now.update(stage=line["stage"])
        if line["error"] is None:
            return None
        said = text.short(diffs.printable(str(line["error"])), 100)
        return say((f"  an answer of the {line['role']} was not usable: {said}", DOUBT))

    def _advanced(self, line: Line) -> None:
        self._returned = line["metrics"].get(policy_curve.TRAIN_RETURN)

    def _stage_done(self, line: Line) -> Text | None:
        stage, step = line["stage"], line["step"]
        self._now.update(step=step, stage=_NEXT.get(stage, f"after {stage}"))
        if step <= self._headed or step < 1:
            return None
        self._headed, now = step, self.position
        of = f"/{now.steps}" if now.steps else ""
        batch = "" if now.batch is None else f"  train batch {text.score(now.batch)}"
        tries = f" over {text.plural(len(self._batch), 'attempt')}" if batch else ""
        if self._returned is not None:
            batch = f"  mean return in training {text.score(self._returned)}"
        return say((f"\nstep {step}{of}", "bold"), (f"{batch}{tries} · {text.clock(now.seconds)} so far", ""), glue="")

    def _revised(self, line: Line) -> Text:
        """The changes that are new in this step, as a difference where the text they were made to is known."""
        self._tried = line["candidate"]
        texts, changes, report = line.get("texts") or {}, line["edits"], line["report"]
        rows = list(zip(changes[len(changes) - len(report) :], report, strict=True))
        applied = [record for record, row in rows if row["status"] == "applied"]
        what = "the present text" if self._draft is None else "the draft"
        words = f"  {what} rewritten:" if texts else f"  {text.plural(len(applied), 'edit')} to {what}:"
        rewritten = [{"op": "rewrite", "content": content, "part": part} for part, content in texts.items()]
        shown = self._difference(line["candidate"], applied, changes, texts) or diffs.of_edits(rewritten or applied)
        said = say((words, "")).append("\n").append_text(indented(shown))
        for record, row in rows:
            if row["status"] != "applied":
                said.append_text(say((f"\n  refused: {steps.edit(record, 40)}: {row['message']}", DOUBT)))
        return said

    def _difference(
        self, digest: str, new: Sequence[Line], all_changes: Sequence[Line], texts: Mapping[str, str]
    ) -> Text | None:
        """What leads to the candidate of that digest: new changes on what the step builds on, or all on the current one."""
        ways = ((self._known.get(self._draft or self._current), new), (self._known.get(self._current), all_changes))
        for base, changes in ways:
            if base is None:
                continue
            edits = [_edit(record) for record in changes if "op" in record]
            made = Candidate({**edits_of.apply(base, edits, edits_of.NO_LIMITS).after.parts, **texts})
            if made.digest == digest:
                self._known[digest] = made
                return diffs.between(base, made)
        return None

    def _decided(self, line: Line) -> Text:
        evidence = f"{steps.effect(line)} on val after {text.plural(line['rollouts'], 'rollout')}: {line['reason']}"
        if 0 < self.position.steps < line["step"]:
            return say((f"  {line['gate']} gate, what training ended with against the start: {evidence}", ""))
        if self.position.stage == "slow_update":
            return say((f"  {line['gate']} gate on the slow update: {evidence}", ""))
        said = say((f"  {line['gate']} gate: {evidence}", ""))
        old, new = self._known.get(line["old"]), self._known.get(line["new"])
        if line["accepted"] and self._draft is not None and old and new:
            said.append("\n  accepted together with the draft it builds on, in all:", style=GOOD)
            said.append("\n").append_text(indented(diffs.between(old, new)))
        return said

    def _step_done(self, line: Line) -> Text:
        action = line["action"]
        if action == "draft":
            self._draft = _UNKNOWN if self._noted else self._tried
        elif action in ("accept", "reject"):
            self._draft = None
        self._current, self._noted, self._batch = line["current"], False, []
        self._now.update(best=line["best_score"])
        self._next_step(line["step"])
        best = "" if line["best_score"] is None else f"; best on val {text.score(line['best_score'])}"
        return say((f"  {steps.action(action)}{best if action == 'accept' else ''}", _ENDINGS.get(action, QUIET)))

    def _notes_kept(self, line: Line) -> None:
        self._put_in(line["candidate"])
        self._noted = True

    def _slow_updated(self, line: Line) -> Text:
        """The long view at an epoch's end: what it wrote, and whether it stays."""
        words = f"  slow update {steps.slow_action(line['action'])}"
        if line["reasons"]:
            words += f": {text.short(line['reasons'], 100)}"
        stays = line["action"] in ("accept", "force_accept")
        said = say((words, _ENDINGS.get(line["action"], DOUBT if line["candidate"] else QUIET)))
        before = self._known.get(line["current"])
        if stays:
            self._put_in(line["candidate"])
        if line["candidate"] is None or before is None:
            return said
        after = before.with_part(before.main, with_content(before.text, SLOW_UPDATE, line["content"]))
        return said.append("\n").append_text(indented(diffs.between(before, after)))

    def _epoch_done(self, line: Line) -> Text | None:
        self._now.update(best=line["best_score"])
        self._next_step(line["step"])
        best = "" if line["best_score"] is None else f", best on val {text.score(line['best_score'])}"
        unproven = f"; not measured yet: {line['unscored']}" if line["unscored"] else ""
        return say((f"  epoch {line['epoch']} done{best}{unproven}", QUIET))

    def _put_in(self, candidate: str) -> None:
        """The current candidate was changed outside of a step's edits, and a draft that builds on it with it."""
        self._current = candidate
        self._draft = None if self._draft is None else _UNKNOWN

    def _next_step(self, done: int) -> None:
        over = 0 < self.position.steps <= done
        self._now.update(stage=CLOSING if over else "rollout", step=done if over else done + 1)

    def _best_confirmed(self, line: Line) -> Text:
        self._now.update(best=line["raw"])
        if line["value"] is None:
            return say((f"\nthe best is not confirmed: {line['how']}", DOUBT))
        honest = f"{text.score(line['value'])} {text.interval(line['low'], line['high'])}"
        start = f"at the start {text.score(line['initial'])}, chosen by {text.score(line['raw'])}"
        return say((f"\nthe best, measured again on {line['how']}: {honest}; {start}", ""))

    def _tested(self, line: Line) -> Text | None:
        known = line["candidate"] in self._candidates.values()
        self._candidates[line["which"]] = line["candidate"]
        mean, low, high, items, failed = line["score"]
        if known:
            return None
        lost = f", {failed} failed" if failed else ""
        score = f"{text.score(mean)} {text.interval(low, high)} on {text.plural(items, 'item')}{lost}"
        which = {"initial": "before", "best": "after (best)", "final": "after (last)"}.get(line["which"], line["which"])
        return say((f"test {which}: {score}", ""))

    def _gained(self, line: Line) -> Text | None:
        new, old = self._candidates.get(line["new"]), self._candidates.get(line["old"])
        if line["new"] != "best":
            return None
        if new == old:
            return say(("no gain: no change proved itself", DOUBT))
        if line["low"] is None:
            return say(("no test item was scored for both: nothing can be said about a gain", DOUBT))
        style, word = (
            (GOOD, "better") if line["low"] > 0 else (BAD, "worse") if line["high"] < 0 else (DOUBT, "not shown")
        )
        span = f"{text.signed(line['mean'])} {text.interval(line['low'], line['high'], sign=True)}"
        return say((f"gain on test: {span}: {word}", style))

    def _job_ended(self, line: Line) -> Text:
        self._now.update(ended=line["status"], stage="ended")
        now = self.position
        said = f"{spent(now.used)} in {text.clock(now.seconds)}"
        if line["status"] == "failed":
            return say((f"\nfailed: {line['message']}", BAD), (said, QUIET))
        return say((f"\n{'done' if line['status'] == 'done' else 'ended by its budget'}: {said}", "bold"))

    def _use(self, *rows: Any) -> None:
        self._now.update(used=sum((Usage.from_told(row) for row in rows), self.position.used))


_TELLERS: dict[str, Callable[[Telling, Line], Text | None]] = {
    "job_started": Telling._job_started,
    "planned": Telling._planned,
    "checkpointed": Telling._checkpointed,
    "measured": Telling._measured,
    "asked": Telling._asked,
    "advanced": Telling._advanced,
    "stage_done": Telling._stage_done,
    "revised": Telling._revised,
    "decided": Telling._decided,
    "step_done": Telling._step_done,
    "notes_kept": Telling._notes_kept,
    "slow_updated": Telling._slow_updated,
    "epoch_done": Telling._epoch_done,
    "best_confirmed": Telling._best_confirmed,
    "tested": Telling._tested,
    "gained": Telling._gained,
    "job_ended": Telling._job_ended,
}


def spent(used: Usage) -> str:
    """Calls, tokens and, where there is any, money."""
    words = f"{text.plural(used.calls, 'call')}, {text.plural(used.tokens, 'token')}"
    return words + (f", {used.money:.4f} in money" if used.money else "")


def _edit(record: Line) -> edits_of.Edit:
    op = edits_of.Op(record["op"])
    return edits_of.Edit(op, record["content"], record["target"], record["part"])
