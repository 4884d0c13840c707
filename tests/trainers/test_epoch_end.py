"""The end of an epoch and of a training: the slow update, the meta skill, and what may take the best one's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sharpen.core.candidate import Candidate
from sharpen.skill.protected import APPENDIX, SLOW_UPDATE, content_of
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.tasks.splitting import Deal

Train = Callable[..., Any]
Data = dict[str, Any]
WORDS = code_words()
TWO = {"epochs": 2, "slow_update": True, "slow_update_samples": 6}
TASK = Codebook(Deal(limit=24))


def rules(first: int, last: int) -> str:
    return "\n".join(f"- {kind}: {word}" for kind, word in list(WORDS.items())[first:last])


def lessons(*contents: str) -> Callable[[Data], Data]:
    """In its n-th epoch of one step each, a reader proposes the n-th text; later ones nothing. Whatever is in the document
    already tells it which is next."""

    def reflect(data: Data) -> Data:
        todo = [content for content in contents if content.splitlines()[0] not in data["skill"]]
        return {"edits": [{"op": "append", "content": todo[0]}] if todo else []}

    return reflect


def guidance(content: str) -> Data:
    return {"reasons": "seen", "content": content}


def true_score(candidate: Candidate, split: str = "val") -> float:
    """The share of items whose kind has its right rule last."""
    book: dict[str, str] = {}
    for line in candidate.text.splitlines():
        kind, colon, word = line.removeprefix("- ").partition(": ")
        if colon:
            book[kind] = word
    items = TASK.splits()[split]
    return sum(book.get(item.type) == item.reference for item in items) / len(items)


class TestSlowUpdate:
    def test_after_the_first_epoch_there_is_nothing_to_look_back_on(self, train: Train) -> None:
        played = train(epochs=1, slow_update=True, meta_skill=True)
        assert not played.about("slow_update") and not played.about("meta_skill")
        assert len(played.told("epoch_done")) == 1 and SLOW_UPDATE not in played.trained.final.text

    def test_guidance_that_helps_passes_the_gate_and_becomes_the_best(self, train: Train) -> None:
        played = train(reflect=lessons(rules(0, 5)), slow_update_says=guidance(rules(5, 20)), **TWO)
        (slow,) = played.told("slow_updated")
        assert (slow["action"], slow["reasons"]) == ("accept", "seen")
        best = played.trained.best
        assert content_of(best.text, SLOW_UPDATE) == rules(5, 20) and best.digest == slow["candidate"]
        end = played.told("epoch_done")[-1]
        assert (end["best"], end["current_score"], end["unscored"]) == (best.digest, 1.0, "")

    def test_guidance_that_does_not_help_is_turned_down(self, train: Train) -> None:
        played = train(reflect=lessons(rules(0, 5)), slow_update_says=guidance("Take care."), **TWO)
        assert played.told("slow_updated")[0]["action"] == "reject"
        assert "Take care." not in played.trained.final.text and played.trained.final == played.trained.best

    @pytest.mark.parametrize(
        "says,action",
        [
            (guidance(" "), "no_content"),
            ("no idea", "lost_answer"),
            (guidance("x" * 20_000), "too_long"),
            (guidance(f"{TASK.splits().test[0].text}: {TASK.splits().test[0].reference}"), "leak"),
        ],
    )
    @pytest.mark.parametrize("gated", [True, False])
    def test_guidance_that_cannot_be_used_changes_nothing(
        self, train: Train, says: Any, action: str, gated: bool
    ) -> None:
        played = train(reflect=lessons(rules(0, 5)), slow_update_says=says, slow_update_gate=gated, **TWO)
        assert [slow["action"] for slow in played.told("slow_updated")] == [action]
        assert SLOW_UPDATE not in played.trained.final.text

    def test_steps_do_not_touch_the_section_and_the_next_look_replaces_it(self, train: Train) -> None:
        def reflect(data: Data) -> Data:
            attack = {"op": "replace", "target": "First look.", "content": "Nothing."}
            edits = lessons(rules(0, 5), rules(5, 10), rules(10, 15))(data)["edits"]
            return {"edits": [*edits, *([attack] if "First look." in data["skill"] else [])]}

        looks = iter(["First look.", "Second look."])
        three = TWO | {"epochs": 3, "slow_update_gate": False}
        played = train(reflect=reflect, slow_update_says=lambda data: guidance(next(looks)), **three)
        attacked = [row for row in played.told("revised")[-1]["report"] if row["op"] == "replace"]
        assert [row["status"] for row in attacked] == ["protected"]
        first, second = played.about("slow_update")
        assert (first["guidance"], second["guidance"]) == ("", "First look.")
        assert "First look." not in second["skill"], "the section is shown apart from the rest"
        assert content_of(played.trained.final.text, SLOW_UPDATE) == "Second look."


class TestForced:
    """A score that another document earned is never carried over to one that was changed without being measured."""

    wrong = "\n".join(f"- {kind}: wrong" for kind in WORDS)

    def test_it_is_marked_unmeasured_until_the_gate_meets_it_and_the_best_stays(self, train: Train) -> None:
        played = train(
            reflect=lessons(rules(0, 10), "Some words.", "More words."),
            slow_update_says=guidance(self.wrong),
            slow_update_gate=False,
            **TWO | {"epochs": 3},
        )
        slow = played.told("slow_updated")[0]
        assert slow["action"] == "force_accept"
        first, second, third = played.told("epoch_done")
        assert (first["unscored"], second["unscored"], second["current_score"]) == ("", "slow update", None)
        assert second["current"] == slow["candidate"] and second["best"] == first["best"] == first["current"]
        measured = played.told("step_done")[2]
        assert (measured["action"], measured["unscored"]) == ("reject", "")
        forced = played.saved()[slow["candidate"]]
        assert measured["current_score"] == true_score(forced) == 0.0 < first["current_score"]
        assert third["best"] == first["current"] and third["best_score"] == first["best_score"]

    def test_in_the_end_the_best_is_still_the_one_that_was_proven(self, train: Train) -> None:
        played = train(
            reflect=lessons(rules(0, 10)), slow_update_says=guidance(self.wrong), slow_update_gate=False, **TWO
        )
        (promoted,) = played.told("promoted")
        assert not promoted["promoted"] and promoted["measured"] == 0.0 and promoted["effect"] < 0
        assert played.trained.best.digest == played.told("step_done")[0]["current"]
        assert played.trained.final.digest == promoted["candidate"] != played.trained.best.digest
        assert played.trained.raw == true_score(played.trained.best)

    def test_in_the_end_what_was_forced_in_and_is_better_takes_the_best_ones_place(self, train: Train) -> None:
        played = train(
            reflect=lessons(rules(0, 10)), slow_update_says=guidance(rules(10, 20)), slow_update_gate=False, **TWO
        )
        (promoted,) = played.told("promoted")
        assert promoted["promoted"] and played.trained.best == played.trained.final
        assert played.trained.raw == promoted["measured"] == true_score(played.trained.best) == 1.0

    def test_a_step_accepted_after_it_becomes_the_best_only_if_it_scores_higher_than_that(self, train: Train) -> None:
        """The gate compares with the spoilt current candidate; that is not yet better than the best."""

        def reflect(data: Data) -> Data:
            return lessons(rules(10, 14) if SLOW_UPDATE in data["skill"] else rules(0, 10))(data)

        spoilt = guidance("\n".join(self.wrong.splitlines()[:10]))
        looks = iter([spoilt, guidance("")])
        three = TWO | {"epochs": 3}
        played = train(reflect=reflect, slow_update_says=lambda data: next(looks), slow_update_gate=False, **three)
        first, _, third = played.told("step_done")
        assert third["action"] == "accept" and 0.0 < third["current_score"] < first["current_score"]
        assert (third["best"], third["best_score"]) == (first["current"], first["current_score"])
        assert played.trained.best.digest == first["current"] and not played.told("promoted")[0]["promoted"]


class TestPairs:
    def look(self, train: Train, policy: str, samples: int) -> tuple[Any, Data]:
        played = train(
            reflect=lessons(rules(0, 6), rules(6, 12)),
            slow_update_says=guidance("Take care."),
            longitudinal_pair_policy=policy,
            **TWO | {"slow_update_samples": samples},
        )
        return played, played.told("slow_updated")[0]

    @pytest.mark.parametrize(
        "policy,wanted",
        [
            ("changed", {"improved", "regressed"}),
            ("unchanged", {"persistent_failure", "stable_success"}),
            ("mixed", {"improved", "regressed", "persistent_failure", "stable_success"}),
        ],
    )
    def test_a_pair_is_one_item_attempted_with_both_candidates(
        self, train: Train, policy: str, wanted: set[str]
    ) -> None:
        played, slow = self.look(train, policy, 6)
        known, by_id = played.saved(), {item.id: item for item in TASK.splits().train}
        assert slow["pairs"] and {row[1] for row in slow["pairs"]} <= wanted
        for item_id, category, before, after in slow["pairs"]:
            line = f"- {by_id[item_id].type}: {by_id[item_id].reference}"
            assert before == float(line in known[slow["previous"]].text)
            assert after == float(line in known[slow["current"]].text)
            right = {(0, 1): "improved", (1, 0): "regressed", (0, 0): "persistent_failure", (1, 1): "stable_success"}
            assert category == right[(before, after)]
        (asked,) = played.about("slow_update")
        assert sorted(pair["item"] for pair in asked["pairs"]) == sorted(row[0] for row in slow["pairs"])

    def test_where_changes_are_wanted_more_items_are_tried_until_there_are_enough(self, train: Train) -> None:
        _, slow = self.look(train, "changed", 4)
        assert slow["tried"] > 4 and len(slow["pairs"]) == 4 and len({row[0] for row in slow["pairs"]}) == 4

    def test_at_most_the_whole_split_is_tried(self, train: Train) -> None:
        _, slow = self.look(train, "changed", 20)
        assert slow["tried"] == 24 and 0 < len(slow["pairs"]) < 20
        assert {row[1] for row in slow["pairs"]} == {"improved"}

    def test_a_mixed_sample_is_tried_once_with_what_was_lost_shown_first(self, train: Train) -> None:
        _, slow = self.look(train, "mixed", 10)
        order = ["regressed", "persistent_failure", "improved", "stable_success"]
        categories = [row[1] for row in slow["pairs"]]
        assert slow["tried"] == len(categories) == 10
        assert categories == sorted(categories, key=order.index)

    def test_without_a_change_there_are_no_changed_pairs_to_pay_for(self, train: Train) -> None:
        played = train(reflect=lessons(rules(0, 6)), longitudinal_pair_policy="changed", **TWO)
        (slow,) = played.told("slow_updated")
        assert (slow["action"], slow["tried"]) == ("same_candidate", 0)
        assert not [event for event in played.told("measured") if event["purpose"] == "slow-update"]


class TestMetaSkill:
    notebook = "Short rules work; long ones do not."

    def test_it_goes_along_with_the_next_epochs_questions_and_never_into_a_candidate(self, train: Train) -> None:
        played = train(
            reflect=lessons(rules(0, 4), rules(4, 8), rules(8, 12)),
            meta_skill_says=guidance(self.notebook),
            meta_skill=True,
            minibatch_size=12,
            budget_control="autonomous",
            **TWO | {"epochs": 3},
        )
        written = [event["epoch"] for event in played.told("meta_skill_written")]
        assert written == [2, 3]
        epochs = played.about("reflect")
        with_it = ["meta_skill" in data for data in epochs]
        assert with_it == sorted(with_it) and 0 < sum(with_it) < len(with_it)
        assert {data["meta_skill"] for data in epochs if "meta_skill" in data} == {self.notebook}
        late = {data["stage"] for _, data in played.asked if "meta_skill" in data}
        assert {"reflect", "merge", "budget", "slow_update"} <= late
        assert played.about("meta_skill")[1]["notebook"] == self.notebook
        texts = [*played.saved().values(), played.trained.best, played.trained.final]
        assert not [candidate for candidate in texts if self.notebook in candidate.text]

    def test_a_lost_answer_leaves_the_notebook_as_it_was(self, train: Train) -> None:
        answers = iter([guidance(self.notebook), "?", "?"])
        played = train(
            reflect=lessons(rules(0, 4), rules(4, 8), rules(8, 12)),
            meta_skill_says=lambda data: next(answers),
            meta_skill=True,
            **TWO | {"epochs": 3, "slow_update": False},
        )
        told = [(event["action"], event["content"]) for event in played.told("meta_skill_written")]
        assert told == [("written", self.notebook), ("lost_answer", self.notebook)]


class TestDrafts:
    """What is not proven yet is built on, and takes part in what happens to the current candidate."""

    def drafted(self, train: Train, **params: Any) -> Any:
        return train(task=TASK, gate="sequential", drafts=True, **TWO | params)

    def test_notes_and_guidance_go_into_the_draft_too(self, train: Train) -> None:
        def reflect(data: Data) -> Data:
            return {**lessons("Read slowly.")(data), "notes": ["Look twice."]}

        played = self.drafted(
            train, reflect=reflect, skill_aware=True, slow_update_says=guidance("Take care."), slow_update_gate=False
        )
        assert "draft" in played.actions() and played.told("slow_updated")[0]["action"] == "force_accept"
        final = played.trained.final.text
        assert "Read slowly." in final
        assert content_of(final, SLOW_UPDATE) == "Take care." and "- Look twice." in content_of(final, APPENDIX)
        assert played.told("step_done")[-1]["unscored"].startswith("appendix")
        assert played.told("epoch_done")[-1]["unscored"] == "appendix, slow update"

    def test_a_draft_that_is_proven_in_the_end_is_promoted(self, train: Train) -> None:
        # The second text is too little to be proven against the first; the sum of both is proven against the start.
        played = self.drafted(train, reflect=lessons(rules(0, 8), rules(8, 10)), slow_update=False)
        assert played.actions() == ["accept", "draft"]
        (promoted,) = played.told("promoted")
        assert promoted["promoted"] and promoted["candidate"] == played.trained.final.digest
        assert played.trained.best == played.trained.final and played.trained.raw == true_score(played.trained.best)

    def test_a_draft_that_the_gate_has_just_turned_down_against_the_start_is_not_asked_about_again(
        self, train: Train
    ) -> None:
        played = self.drafted(train, reflect=lessons(rules(0, 2)), slow_update=False, epochs=1)
        assert played.actions() == ["draft"] and not played.told("promoted")
        assert played.trained.best == played.trained.initial != played.trained.final

    @pytest.mark.parametrize("forced", ["notes", "guidance"])
    def test_notes_and_guidance_do_not_make_a_draft_too_long(self, train: Train, forced: str) -> None:
        def reflect(data: Data) -> Data:
            noted = {"notes": ["Look twice."]} if forced == "notes" else {}
            return {**lessons("Read slowly. " * 12)(data), **noted}

        limit = TASK.seed().length + 160 + 60
        played = self.drafted(
            train,
            reflect=reflect,
            skill_aware=forced == "notes",
            slow_update_says=guidance("Take care. " * 5),
            slow_update=forced == "guidance",
            slow_update_gate=False,
            max_length=limit,
        )
        assert "draft" in played.actions() and bool(played.told("slow_updated")) is (forced == "guidance")
        assert played.trained.final.length <= limit
