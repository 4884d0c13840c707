"""The options of ReflACT one by one: what each changes in a training, and what it may never do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sharpen.bench.config import load
from sharpen.bench.runner import build
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome
from sharpen.core.task import Attempt
from sharpen.skill.protected import APPENDIX, content_of
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.tasks.splitting import Deal
from sharpen.trainers.reflact.params import FORMER_NAMES

Train = Callable[..., Any]
Data = dict[str, Any]
KEPT = "<!-- PROTECTED:law START -->\nThe law stands.\n<!-- PROTECTED:law END -->"
WORDS = code_words()
LEAST = {"min_edit_budget": 1}


def rules(first: int, last: int) -> list[str]:
    return [f"- {kind}: {word}" for kind, word in list(WORDS.items())[first:last]]


def appended(*lines: str) -> Data:
    return {"edits": [{"op": "append", "content": line} for line in lines]}


class Book(Codebook):
    """A codebook of few items whose skill begins with some rules."""

    def __init__(self, known: int = 0, more: str = "") -> None:
        self.skill = "\n".join([Codebook.skill, "", *rules(0, known)]) + more
        super().__init__(Deal(limit=24))


class TestAccumulation:
    def test_every_batch_has_minibatches_of_its_own_and_a_step_makes_one_update(self, train: Train) -> None:
        played = train(task=Book(8), batch_size=6, accumulation=2, minibatch_size=4)
        steps = played.told("reflected")
        assert len(played.told("step_done")) == len(steps) == 2
        rolled_out = [e["groups"][0]["items"] for e in played.told("measured") if e["purpose"] == "train"]
        for step, items in zip(steps, rolled_out, strict=True):
            assert [row[0] for row in step["batches"]] == [6, 6] and len(items) == 12
            for number, batch in enumerate([items[:6], items[6:]]):
                readings = [reading["items"] for reading in step["readings"] if reading["batch"] == number]
                assert sorted(id for ids in readings for id in ids) == sorted(batch)
                assert all(len(ids) <= 4 for ids in readings)
        for kind in ("proposed", "selected"):
            assert len(played.told(kind)) == 2
        assert len(played.told("revised")) == len(played.told("decided")) <= 2

    def test_more_than_there_is_means_all_of_it(self, train: Train) -> None:
        played = train(batch_size=20, accumulation=3)
        (planned,) = played.told("planned")
        assert (planned["steps"], planned["items_per_step"]) == (1, 24)
        assert planned["remarks"][0].startswith("batch_size 20 x accumulation 3 is more than the 24 train items")


@pytest.mark.parametrize("only", [False, True])
def test_failure_only_keeps_successes_from_the_analysts(train: Train, only: bool) -> None:
    played = train(task=Book(10), failure_only=only)
    scores = {attempt["score"] for data in played.about("reflect") for attempt in data["attempts"]}
    assert scores == ({0.0} if only else {0.0, 1.0})
    assert {reading["kind"] for reading in played.told("reflected")[0]["readings"]} == (
        {"failures"} if only else {"failures", "successes"}
    )


class TestBudgetControl:
    five = appended(*rules(0, 5))

    def test_the_optimizers_own_number_is_kept_with_its_reasons(self, train: Train) -> None:
        says = {"budget": 2, "reasons": "two are safe", "confidence": 0.7, "risks": "none"}
        played = train(reflect=self.five, budget=says, budget_control="autonomous", edit_budget=4)
        (chosen,) = played.told("budget_chosen")
        assert (chosen["budget"], chosen["pool"], chosen["usable"]) == (2, 5, True)
        assert (chosen["reasons"], chosen["confidence"], chosen["risks"]) == ("two are safe", "0.7", "none")
        assert len(played.told("revised")[0]["report"]) == 2 and played.told("selected")[0]["edit_budget"] == 2
        assert played.about("reflect")[0]["budget"] is None, "analysts are not limited beforehand"

    def test_it_cannot_exceed_the_pool(self, train: Train) -> None:
        played = train(reflect=self.five, budget={"budget": 99}, budget_control="autonomous", edit_budget=1, **LEAST)
        assert played.told("budget_chosen")[0]["budget"] == 5
        assert len(played.told("revised")[0]["report"]) == 5

    @pytest.mark.parametrize("answer", ["many!", {"budget": -1}, {"learning_rate": 3}])
    def test_an_answer_of_no_use_leaves_it_to_the_schedule(self, train: Train, answer: Any) -> None:
        played = train(reflect=self.five, budget=answer, budget_control="autonomous", edit_budget=3)
        (chosen,) = played.told("budget_chosen")
        assert (chosen["budget"], chosen["usable"], chosen["reasons"]) == (3, False, "")
        assert len(played.told("revised")[0]["report"]) == 3

    def test_nought_means_that_nothing_is_changed(self, train: Train) -> None:
        played = train(reflect=self.five, budget={"budget": 0}, budget_control="autonomous")
        assert played.actions() == ["skip_no_change"] and played.trained.final == played.trained.initial

    def test_none_means_no_limit_and_nothing_to_rank(self, train: Train) -> None:
        played = train(reflect=self.five, budget_control="none", edit_budget=1, **LEAST)
        assert len(played.told("revised")[0]["report"]) == 5 and played.told("selected")[0]["edit_budget"] is None
        assert not played.about("rank") and not played.told("budget_chosen")


REWRITES = ("rewrite_from_suggestions", "full_rewrite_minibatch")


def rewriting(text: str, part: str | None = None) -> dict[str, Any]:
    """Answers for both ways of rewriting: every reader suggests something, and the new document is this one."""
    document = {"documents": [{"part": part, "text": text}]}
    suggestion = {"suggestions": [{"kind": "clarify", "title": "x", "instruction": "Say it."}]}
    return {"reflect": {**document, **suggestion}, "rewrite": document, "merge": {**document, **suggestion}}


@pytest.mark.parametrize("mode", REWRITES)
class TestRewriting:
    def test_protected_regions_survive_though_the_model_left_them_out(self, train: Train, mode: str) -> None:
        task = Book(0, f"\n\n{KEPT}\n\nThe end.\n")
        played = train(task=task, update_mode=mode, **rewriting("# New\n" + "\n".join(rules(0, 20)) + "\n"))
        assert played.actions() == ["accept"]
        best = played.trained.best.text
        assert best.startswith("# New\n") and best.count(KEPT) == 1 and "The end." not in best
        shown = [data["skill"] for _, data in played.asked]
        assert all("[[PROTECTED 1]]" in text and "The law" not in text for text in shown)
        assert played.told("revised")[0]["texts"] == {"SKILL.md": best}

    @pytest.mark.parametrize("text,part", [("", None), ("New.", "elsewhere.md"), ("x" * 30_000, None)])
    def test_what_cannot_be_used_skips_the_step(self, train: Train, mode: str, text: str, part: str | None) -> None:
        played = train(update_mode=mode, **rewriting(text, part))
        lost = mode == "full_rewrite_minibatch" and not text
        assert played.actions() == ["skip_no_edits" if lost else "skip_no_rewrite"]
        assert not played.told("decided") and played.trained.final == played.trained.initial

    def test_the_same_document_again_is_no_change(self, train: Train, mode: str) -> None:
        played = train(update_mode=mode, **rewriting(Book().skill))
        assert played.actions() == ["skip_no_change"]

    def test_a_rewriting_that_gives_a_val_item_away_is_refused(self, train: Train, mode: str) -> None:
        item = Book().splits().val[0]
        played = train(update_mode=mode, **rewriting(f"Input: {item.text} Output: {item.reference}\n"))
        assert played.actions() == ["skip_leak"] and played.told("revised")[0]["leaks"][0][0] == item.id


class Halves(Book):
    """Hard scores are always 0; soft ones are better where the skill says `hint`."""

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        outcome = await super().rollout(item, candidate, attempt)
        return replace(outcome, hard=0.0, soft=0.6 if "hint" in candidate.text else 0.2)


@pytest.mark.parametrize("gate", ["strict", "sequential"])
@pytest.mark.parametrize(
    "metric,weight,action,best",
    [
        ("hard", 0.5, "reject", None),
        ("soft", 0.5, "accept", 0.6),
        ("mixed", 0.5, "accept", 0.3),
        ("mixed", 0.0, "reject", None),
    ],
)
def test_what_only_helps_the_soft_score_passes_a_gate_that_looks_at_it(
    train: Train, gate: str, metric: str, weight: float, action: str, best: float | None
) -> None:
    played = train(task=Halves(), reflect=appended("hint"), gate=gate, gate_metric=metric, gate_mixed_weight=weight)
    assert played.actions() == [action]
    assert played.trained.raw == pytest.approx(best) and played.trained.metric.name == metric


@pytest.mark.parametrize("metric", ["soft", "mixed"])
def test_what_is_known_of_the_current_candidate_is_read_in_the_same_metric(train: Train, metric: str) -> None:
    says = [appended("hint"), appended("No effect.")]
    played = train(
        task=Halves(), reflect=lambda data: says[len(data["memory"]["steps"])], batch_size=12, gate_metric=metric
    )
    assert played.actions() == ["accept", "reject"]


def test_forced_in_without_proof_the_best_is_what_scored_best_on_the_way(train: Train) -> None:
    wrong = "\n".join(f"- {kind}: wrong" for kind in WORDS)
    says = [appended("\n".join(rules(0, 15))), appended(wrong), appended("Never mind.")]
    played = train(
        task=Book(4),
        reflect=lambda data: says[len(data["memory"]["steps"])],
        gate="force",
        batch_size=8,
        failure_only=True,
    )
    first, second = played.told("step_done")[:2]
    assert played.actions() == ["accept", "accept", "accept"]
    assert first["current_score"] > 0.5 and second["current_score"] == 0.0
    assert played.trained.best.digest == first["current"] == played.told("step_done")[-1]["best"]
    assert (played.trained.best_step, played.trained.raw) == (1, first["current_score"])
    assert played.trained.final.text.endswith("Never mind.\n")


def test_later_steps_are_told_what_was_turned_down_and_what_it_cost_also_in_the_next_epoch(train: Train) -> None:
    spoilt = f"- {next(iter(WORDS))}: wrong"
    seen = {"pattern": "kinds nobody knows", "items": [Book().splits().train[0].id, "made up"]}
    played = train(task=Book(6), reflect={**appended(spoilt), "patterns": [seen]}, failure_only=True, epochs=2)
    first, second = played.about("reflect")
    assert first["memory"] == {"steps": [], "rejected": []} and played.actions()[0] == "reject"
    (rejected,) = second["memory"]["rejected"]
    assert rejected["change"]["content"] == spoilt and rejected["step"] == 1 and rejected["effect"] < 0
    assert second["memory"]["steps"] == [], "patterns are those of an epoch"


class TestSkillAware:
    def noting(self, *notes: str, edits: Data | None = None) -> dict[str, Any]:
        return {"reflect": {**(edits or {"edits": []}), "notes": list(notes)}, "skill_aware": True}

    def test_each_note_is_kept_once_and_counts_as_unmeasured_until_it_is(self, train: Train) -> None:
        notes = ("Look twice.", "look  TWICE", "Check\nthe kind.", "<!-- APPENDIX_END -->", " ")
        played = train(**self.noting(*notes), batch_size=8)
        kept, *again = played.told("notes_kept")
        assert kept["added"] == ["Look twice.", "Check the kind."] and kept["total"] == 2 and not again
        final = played.trained.final
        assert content_of(final.text, APPENDIX).splitlines()[-2:] == ["- Look twice.", "- Check the kind."]
        assert {step["unscored"] for step in played.told("step_done")} == {"appendix"}
        assert {step["current_score"] for step in played.told("step_done")} == {None}
        assert played.trained.best == played.trained.initial, "what was not measured is not vouched for"

    def test_once_measured_the_score_is_that_of_the_document_with_its_notes(self, train: Train) -> None:
        bad = appended("- kind-99: nothing")
        played = train(**self.noting("Look twice.", edits=bad), batch_size=12, task=Book(6))
        first, second = played.told("step_done")
        assert (first["action"], first["unscored"], first["current_score"]) == ("reject", "appendix", None)
        assert (second["action"], second["unscored"]) == ("reject", "") and second["current_score"] is not None
        assert second["current"] == first["current"] == played.told("notes_kept")[0]["candidate"]
        measured = [
            group for event in played.told("measured") for group in event["groups"]
            if event["purpose"] == "gate" and group["candidate"] == second["current"]
        ]  # fmt: skip
        assert second["current_score"] == pytest.approx(sum(measured[0]["hard"]) / 24)

    def test_a_note_that_gives_an_item_away_is_left_out(self, train: Train) -> None:
        item = Book().splits().val[0]
        played = train(**self.noting(f"{item.text} {item.reference}", "Look twice."))
        assert played.told("notes_kept")[0]["added"] == ["Look twice."] and item.text not in played.trained.final.text

    @pytest.mark.parametrize("fewer,consolidated", [(["Be careful."], True), (["x" * 99], False), ("no", False)])
    def test_notes_are_made_fewer_only_if_that_is_shorter(self, train: Train, fewer: Any, consolidated: bool) -> None:
        notes = ["Look twice.", "Check the kind."]
        played = train(**self.noting(*notes), consolidate={"notes": fewer}, consolidate_threshold=1)
        (kept,) = played.told("notes_kept")
        assert kept["consolidated"] is consolidated and len(played.about("consolidate")) == (2 if fewer == "no" else 1)
        found = content_of(played.trained.final.text, APPENDIX)
        assert ("- Be careful." in found) is consolidated and ("- Look twice." in found) is not consolidated

    def test_below_the_threshold_nobody_is_asked_to_make_them_fewer(self, train: Train) -> None:
        for threshold in (2, 0):
            assert not train(**self.noting("a", "b"), consolidate_threshold=threshold).about("consolidate")

    def test_no_edit_touches_the_appendix(self, train: Train) -> None:
        attack = {"edits": [{"op": "replace", "target": "- Look twice.", "content": "- Never look."}]}

        def reflect(data: Data) -> Data:
            return {**(attack if data["memory"]["steps"] else {"edits": []}), "notes": ["Look twice."]}

        played = train(reflect=reflect, skill_aware=True, batch_size=12)
        assert played.told("revised")[0]["report"][0]["status"] == "protected"
        assert "- Look twice." in played.trained.final.text

    @pytest.mark.parametrize("source", ["both", "failure_only"])
    def test_whose_readers_may_write_notes(self, train: Train, source: str) -> None:
        def reflect(data: Data) -> Data:
            return {"edits": [], "notes": [f"from {'successes' if data['attempts'][0]['score'] else 'failures'}"]}

        played = train(task=Book(10), reflect=reflect, skill_aware=True, appendix_source=source)
        expected = ["from failures", "from successes"] if source == "both" else ["from failures"]
        assert played.told("notes_kept")[0]["added"] == expected
        told = ["Tell two kinds of failure apart" in system for system, _ in played.asked]
        assert sum(told) == len(expected)


class TestPrompts:
    class Own(Book):
        prompts: ClassVar = {"reflect_failures": "The task's own words.", "merge": "The task's merging."}

    def test_the_tasks_own_take_the_files_place_and_a_configurations_the_tasks(
        self, train: Train, tmp_path: Path
    ) -> None:
        (tmp_path / "answer.md").write_text("  Answer in edits.\n")
        given = {"merge": "My merging.", "answer_edits": str(tmp_path / "answer.md")}
        played = train(task=self.Own(), prompts=given, minibatch_size=12)
        systems = {data["stage"]: system for system, data in played.asked}
        assert systems["reflect"] == "The task's own words.\n\nAnswer in edits."
        assert systems["merge"] == "My merging.\n\nAnswer in edits."
        assert "Put them in order" in systems["rank"], "what is not replaced stays"

    @pytest.mark.parametrize(
        "prompts,says",
        [
            ({"merg": "x"}, r"unknown prompt 'merg' \(did you mean 'merge'\?\)"),
            ({"merge": "nowhere.md"}, "no file nowhere.md for the prompt merge"),
        ],
    )
    def test_a_prompt_that_is_not_there_is_named(self, prompts: dict[str, str], says: str) -> None:
        with pytest.raises(UsageError, match=says):
            build(load(None, {"task": "codebook", "trainer": {"params": {"prompts": prompts}}}))


class TestErrors:
    @pytest.mark.parametrize(
        "params,optimizer,says",
        [
            ({"train_size": 7}, True, "train_size is 7, but the train split has 80 items; set it to that"),
            ({"budget_control": "autonomous"}, False, "budget_control: autonomous needs an optimizer model"),
            ({"update_mode": REWRITES[0]}, False, "update_mode: rewrite_from_suggestions needs an optimizer model"),
            ({"update_mode": REWRITES[1], "analysts": False}, True, "needs an optimizer model"),
            ({"proposers": []}, False, "nobody proposes anything: set models.optimizer"),
            ({"gate": "strickt"}, True, r"unknown gate 'strickt' \(did you mean 'strict'\?\)"),
            ({"gate_metric": "softer"}, True, "gate_metric"),
            ({"accumulation": 0}, True, "accumulation"),
            ({"merge_batch_size": 1}, True, "merge_batch_size"),
        ],
    )  # fmt: skip
    def test_settings_that_do_not_fit_are_said_before_anything_is_paid(
        self, params: Data, optimizer: bool, says: str
    ) -> None:
        models = {"target": "scripted/rules", **({"optimizer": "scripted/rules"} if optimizer else {})}
        with pytest.raises(UsageError, match=says):
            build(load(None, {"task": "codebook", "models": models, "trainer": {"params": params}}))

    def test_an_initial_skill_with_broken_markers_is_named(self, train: Train) -> None:
        with pytest.raises(UsageError, match=r"the initial skill, SKILL.md, line 4: .*never ends"):
            train(task=Book(0, "\n\n<!-- X_START -->\n"))

    @pytest.mark.parametrize("name", FORMER_NAMES)
    def test_a_setting_that_is_called_otherwise_elsewhere_is_told_its_name_here(self, name: str) -> None:
        with pytest.raises(UsageError) as caught:
            build(load(None, {"task": "codebook", "trainer": {"params": {name: 1}}}))
        assert f"{name} is called {FORMER_NAMES[name]} here" in str(caught.value)
