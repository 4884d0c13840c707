"""Proposers without an optimizer model: what they propose, and that all of it applies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.item import Item
from sharpen.core.rng import Stream
from sharpen.core.task import Brief
from sharpen.skill import examples
from sharpen.skill.document import regions
from sharpen.skill.edits import Limits, Op, apply
from sharpen.trainers.reflact import proposers
from sharpen.trainers.reflact.proposers.base import Attempted, Proposal, Shot, Tried, View
from sharpen.trainers.reflact.proposers.coverage import Coverage
from sharpen.trainers.reflact.proposers.examples import ExamplesProposer
from sharpen.trainers.reflact.proposers.feedback import lines_from_answers, lines_from_feedback
from sharpen.trainers.reflact.proposers.instructions import InstructionsProposer
from sharpen.trainers.reflact.proposers.prune import PruneProposer

ALL = [proposers.get(name) for name in proposers.NAMES]
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
POOL = tuple(Shot(f"t{n}", word, str(n), "odd" if n % 2 else "even") for n, word in enumerate(WORDS, 1))
BRIEF = Brief("Numbers.", ("Answer with digits only.", "Write nothing else.", "Use no\n commas."), "digits")
SEED = Candidate("Write the number in digits.\n")
GUARDED = "<!-- PROTECTED:core START -->\n- keep\n\n### Example\nInput: q\nOutput: r\n<!-- PROTECTED:core END -->"


def failed(shot: Shot, feedback: str = "expected a number, got a sentence of 14 words") -> Attempted:
    item = Item(shot.item_id, {"input": shot.input}, shot.output, shot.type)
    return Attempted(item, (shot.input, shot.output), "Well, it depends.", 0.0, 0.0, feedback)


def view(candidate: Candidate = SEED, seed: int = 0, **changes: object) -> View:
    base = View(candidate, Stream(seed, "propose"), BRIEF, tuple(map(failed, POOL)), pool=POOL)
    return replace(base, **changes)


def result(candidate: Candidate, proposal: Proposal) -> Candidate:
    revision = apply(candidate, proposal.edits)
    assert revision.complete, revision.rows
    return revision.after


def shown(candidate: Candidate) -> list[str]:
    return [example.input for example in examples.parse(candidate.text).examples]


class TestExamples:
    def test_the_first_proposals_make_a_section_of_two_to_four_examples(self):
        made = [result(SEED, proposal) for proposal in ExamplesProposer().propose(view())]
        assert len(made) == 8 and len({candidate.digest for candidate in made}) == 8
        assert {len(shown(candidate)) for candidate in made} == {2, 3, 4}
        for candidate in made:
            assert candidate.text.startswith("Write the number in digits.\n\n## Examples\n\n### Example\nInput: ")
            assert set(shown(candidate)) <= set(WORDS)

    def test_every_example_is_an_edit_of_its_own_that_names_its_item(self):
        for proposal in ExamplesProposer().propose(view()):
            assert len(proposal.edits) == len(shown(result(SEED, proposal)))
            assert all(len(edit.items) == 1 for edit in proposal.edits)

    def test_further_examples_go_behind_the_ones_that_stand_and_leave_what_follows(self):
        text = "Do.\n\n## Examples\n\n### Example\nInput: one\nOutput: 1\n\n## Notes\n\nEnd.\n"
        for proposal in ExamplesProposer().propose(view(Candidate(text))):
            after = result(Candidate(text), proposal).text
            assert shown(Candidate(after))[0] == "one" and len(shown(Candidate(after))) >= 2
            assert after.endswith("\n\n## Notes\n\nEnd.\n") and after.count("## Examples") == 1

    def test_what_fails_is_what_is_shown(self):
        odd = tuple(failed(shot) for shot in POOL if shot.type == "odd")
        types = {shot.input: shot.type for shot in POOL}
        picked = [
            types[word]
            for seed in range(10)
            for proposal in ExamplesProposer().propose(view(seed=seed, failures=odd))
            for word in shown(result(SEED, proposal))[:1]
        ]
        assert picked.count("odd") > 2 * picked.count("even")

    def test_half_of_the_choices_are_made_whatever_failed(self):
        odd = tuple(failed(shot) for shot in POOL if shot.type == "odd")
        types = {shot.input: shot.type for shot in POOL}
        made = [
            {types[word] for word in shown(result(SEED, proposal))}
            for seed in range(10)
            for proposal in ExamplesProposer(sizes=(2,)).propose(view(seed=seed, failures=odd))
        ]
        assert {"odd"} in made and made.count({"even"}) >= 5

    def test_different_labels_are_shown_together_by_what_failed(self):
        pool = tuple(Shot(f"t{n}", f"text {n}", "yes" if n < 8 else "no") for n in range(12))
        for seed in range(10):
            coverage = Coverage(tuple(map(failed, pool)), pool, Stream(seed, "pool"))
            assert {shot.output for shot in coverage.choose(3, [], Stream(seed, "choice"))} == {"yes", "no"}

    def test_three_that_stand_may_be_exchanged_and_a_full_section_only_that(self):
        full = Candidate("Do.\n\n## Examples\n\n" + "\n\n".join(
            examples.write(examples.Example(shot.input, shot.output)) for shot in POOL[:4]
        ))  # fmt: skip
        ops = {edit.op for proposal in ExamplesProposer().propose(view(full)) for edit in proposal.edits}
        assert ops == {Op.INSERT_AFTER, Op.REPLACE}
        made = ExamplesProposer(most=4).propose(view(full))
        assert made and all(len(shown(result(full, proposal))) == 4 for proposal in made)

    def test_nothing_failed_or_nothing_to_show_means_no_proposal(self):
        assert ExamplesProposer().propose(view(failures=())) == []
        assert ExamplesProposer().propose(view(pool=())) == []


class TestInstructions:
    def test_one_line_per_proposal_in_a_section_of_rules(self):
        made = InstructionsProposer().propose(view())
        assert len(made) == 3 and all(len(proposal.edits) == 1 for proposal in made)
        assert result(SEED, made[0]).text == (
            "Write the number in digits.\n\n## Rules\n\n- Answer with the number alone.\n"
        )
        assert made[0].support == len(POOL)

    def test_the_rules_stand_before_the_examples_and_in_one_list(self):
        text = "Do.\n\n## Examples\n\n### Example\nInput: one\nOutput: 1\n"
        first = result(Candidate(text), InstructionsProposer().propose(view(Candidate(text)))[0])
        assert first.text.startswith("Do.\n\n## Rules\n\n- Answer with the number alone.\n\n## Examples\n")
        second = result(first, InstructionsProposer().propose(view(first))[0])
        assert second.text.startswith("Do.\n\n## Rules\n\n- Answer with the number alone.\n- ")

    def test_all_lines_are_offered_in_the_end_and_none_twice(self):
        current, count = SEED, 0
        while made := InstructionsProposer().propose(view(current)):
            current, count = result(current, made[0]), count + 1
        lines = current.text.splitlines()
        assert (
            "- Use no commas." in lines and "- Answer format: digits" in lines and "- Do not write a sentence." in lines
        )
        assert len(set(lines[2:])) == len(lines[2:]) and count == 6

    def test_lines_that_were_turned_down_come_last(self):
        wanted = InstructionsProposer(alternatives=9).propose(view())
        history = (Tried(wanted[0].edits, "other", accepted=False),)
        again = InstructionsProposer(alternatives=9).propose(view(history=history))
        assert again[-1].edits[0].key == wanted[0].edits[0].key

    @pytest.mark.parametrize(
        ("feedback", "line"),
        [
            ("expected a number, got a sentence of 14 words", "Answer with the number alone."),
            ("expected one word, got 3 words", "Answer with one word."),
            ("expected JSON, got the word 'x'", "Answer with JSON and nothing else."),
            (
                "expected one text of the form 0000-00-00, got 3 words",
                "Answer in the form 0000-00-00 and with nothing else.",
            ),
            ("missing 'email'; unexpected 'mail'", "Always give the field email."),
            ("missing 'email'; unexpected 'mail'", "Leave out the field mail."),
            (
                "the answer stands among other words; got 9 words",
                "Write the answer alone, with nothing before or after it.",
            ),
            ("expected a number, got nothing", "Always give an answer."),
            ("'blue' is none of the labels", "Answer with one of the labels and nothing else."),
        ],
    )
    def test_remarks_of_scorers_become_lines(self, feedback: str, line: str):
        assert line in dict(lines_from_feedback([failed(POOL[0], feedback)]))

    def test_the_line_most_failures_speak_for_comes_first(self):
        remarks = [failed(POOL[0], "got nothing"), *(failed(shot, "expected one word") for shot in POOL[:3])]
        assert lines_from_feedback(remarks) == [("Answer with one word.", 3), ("Always give an answer.", 1)]
        assert lines_from_feedback([failed(POOL[0], "right form, wrong value: '7'")]) == []

    def test_what_all_answers_have_in_common_becomes_a_line(self):
        labels = [Shot(str(n), f"x{n}", "yes" if n % 2 else "no") for n in range(8)]
        assert lines_from_answers(labels) == ["Answer with exactly one of: no, yes."]
        objects = [Shot(str(n), f"x{n}", f'{{"a": {n}, "b": 1}}') for n in range(8)]
        assert lines_from_answers(objects) == ["Answer with a JSON object with the fields a, b."]
        assert lines_from_answers(POOL) == [] == lines_from_answers([])


class TestPrune:
    text = (
        "# Title\n\nDescription.\n\n## Rules\n\n- one\n- two\n\n## Examples\n\n"
        "### Example\nInput: a\nOutput: b\n\n### Example\nInput: c\nOutput: d\n\n### Example\nInput: e\nOutput: f\n"
    )

    def removed(self, text: str, step: int) -> set[str]:
        made = PruneProposer(removals=99, orders=0).propose(view(Candidate(text), step=step))
        return {proposal.edits[0].target for proposal in made}

    def test_a_line_or_an_example_at_a_time_and_at_first_never_the_description(self):
        blocks = set(examples.blocks(self.text))
        assert self.removed(self.text, 1) == blocks | {"- one", "- two"}
        assert self.removed(self.text, 2) == blocks | {"- one", "- two", "Description."}

    def test_there_is_nothing_to_prune_in_a_seed(self):
        assert PruneProposer().propose(view(step=5)) == []

    def test_a_section_goes_with_its_last_line(self):
        text = "Do.\n\n## Rules\n\n- one\n\n## Examples\n\n### Example\nInput: a\nOutput: b\n"
        made = PruneProposer(removals=9).propose(view(Candidate(text)))
        assert {result(Candidate(text), proposal).text for proposal in made} == {
            "Do.\n\n## Examples\n\n### Example\nInput: a\nOutput: b\n",
            "Do.\n\n## Rules\n\n- one\n",
        }

    def test_the_order_of_examples_is_changed_and_nothing_else(self):
        made = PruneProposer(removals=0, orders=9).propose(view(Candidate(self.text)))
        orders = {tuple(shown(result(Candidate(self.text), proposal))) for proposal in made}
        assert {("e", "a", "c"), ("c", "e", "a")} <= orders
        for proposal in made:
            after = result(Candidate(self.text), proposal).text
            assert sorted(after) == sorted(self.text) and after.startswith(self.text[: self.text.index("### Example")])

    def test_lines_that_stand_inside_others_are_told_apart(self):
        text = "Do.\n\n- Answer.\n- Answer. Now.\n- Last.\n"
        made = PruneProposer(removals=9).propose(view(Candidate(text)))
        assert "Do.\n\n- Answer. Now.\n- Last.\n" in {result(Candidate(text), proposal).text for proposal in made}


def test_proposers_are_known_by_name():
    assert [proposers.get(name).name for name in proposers.NAMES] == list(proposers.NAMES)
    with pytest.raises(UsageError, match="did you mean 'examples'"):
        proposers.get("exampels")


def test_what_was_tried_is_not_proposed_again():
    for proposer in ALL:
        start = Candidate(TestPrune.text)
        made = proposer.propose(view(start))
        history = tuple(Tried(p.edits, result(start, p).digest, accepted=False) for p in made)
        again = proposer.propose(view(start, history=history))
        before, after = ({result(start, p).digest for p in proposals} for proposals in (made, again))
        assert (made or proposer.name in ("numbers", "syntax")) and not before & after


def test_the_same_view_brings_the_same_proposals():
    for proposer in ALL:
        start = Candidate(TestPrune.text)
        assert proposer.propose(view(start, seed=3)) == proposer.propose(view(start, seed=3))


texts = st.text(alphabet=st.sampled_from("ab #-:\n"), max_size=8)
starts = st.sampled_from(
    [
        "",
        "Do it.",
        TestPrune.text,
        f"Do.\n\n{GUARDED}\n",
        f"{GUARDED}\n\nDo.\n\n## Examples\n\n## Rules\n",
        "## Rules\n\n- a\n- a\n\n## Examples\n\n### Example\nInput: a\nOutput: 1\n\n### Example\nInput: a\nOutput: 12\n",
        "---\nname: x\n---\nText.\n```\n## Rules\n```\n",
        f"## Examples\n\n{GUARDED}\n",
    ]
)


@settings(max_examples=120, deadline=None)
@given(starts, st.lists(st.tuples(texts, texts), max_size=6), st.integers(0, 5), st.integers(1, 4), st.data())
def test_every_proposal_applies_in_full_whatever_was_accepted_before(
    start: str, shots: list[tuple[str, str]], seed: int, budget: int, data: st.DataObject
):
    pool = tuple(Shot(str(n), given, wanted) for n, (given, wanted) in enumerate(shots))
    current, limits = Candidate(start), Limits(max_length=600, max_change=150)
    protected = [start[region.start : region.end] for region in regions(start)]
    for step in range(1, 6):
        made = [
            proposal
            for number, proposer in enumerate(ALL)
            for proposal in proposer.propose(
                view(
                    current,
                    pool=pool + POOL[:3],
                    rng=Stream(seed, step, number),
                    budget=budget,
                    step=step,
                    limits=limits,
                )
            )
        ]
        for proposal in made:
            revision = apply(current, proposal.edits, limits)
            assert revision.complete and revision.changed and len(proposal.edits) <= budget
            assert proposal.support >= 1 and proposal.reason and proposal.source in proposers.NAMES
            text = revision.after.text
            assert [text[region.start : region.end] for region in regions(text)] == protected
        if not made:
            return
        current = apply(current, data.draw(st.sampled_from(made)).edits, limits).after
