"""Each operation, each reason for refusal, and the caps."""

from __future__ import annotations

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.skill import examples
from sharpen.skill.edits import NO_LIMITS, Edit, Limits, Op, Revision, Status, apply, without
from sharpen.skill.examples import Example, write

SKILL = "# Numbers\n\nWrite the number in digits.\n\n## Rules\n\n- Answer with digits.\n- No words.\n"
GUARDED = (
    "Intro.\n\n<!-- PROTECTED:core START -->\nkeep this\n<!-- PROTECTED:core END -->\n\nMiddle.\n\n"
    "<!-- SLOW_UPDATE_START -->\nslow\n<!-- SLOW_UPDATE_END -->\n"
)


def revise(text: str, *edits: Edit, limits: Limits = NO_LIMITS) -> Revision:
    return apply(Candidate(text), edits, limits)


def after(text: str, *edits: Edit) -> str:
    revision = revise(text, *edits)
    assert revision.complete, revision.rows
    return revision.after.text


def refusal(text: str, edit: Edit, limits: Limits = NO_LIMITS) -> Status:
    revision = revise(text, edit, limits=limits)
    (row,) = revision.rows
    assert row.status is not Status.APPLIED and row.message and row.chars == 0
    assert not revision.changed and revision.after.text == text
    return row.status


class TestPlacement:
    def test_append_stands_apart_at_the_end(self):
        assert after("Intro.", Edit(Op.APPEND, "\nMore.\n\n")) == "Intro.\n\nMore.\n"
        assert after("", Edit(Op.APPEND, "First.")) == "First.\n"

    def test_list_items_stay_together(self):
        assert after(SKILL, Edit(Op.APPEND, "- Be brief.")).endswith("- No words.\n- Be brief.\n")

    def test_append_goes_before_trailing_protected_regions(self):
        text = after(GUARDED, Edit(Op.APPEND, "New."))
        assert "Middle.\n\nNew.\n\n<!-- SLOW_UPDATE_START -->\nslow\n<!-- SLOW_UPDATE_END -->\n" in text
        both = "A\n<!-- X_START --><!-- X_END -->\n\n<!-- Y_START --><!-- Y_END -->"
        assert (
            after(both, Edit(Op.APPEND, "B"))
            == "A\n\nB\n\n<!-- X_START --><!-- X_END -->\n\n<!-- Y_START --><!-- Y_END -->"
        )

    def test_insert_after_takes_the_whole_line(self):
        assert "- Answer with digits.\n- Always.\n- No words.\n" in after(
            SKILL, Edit(Op.INSERT_AFTER, "- Always.", "with digits")
        )

    def test_insert_before_takes_the_whole_line(self):
        assert "\n\n- Always.\n- Answer with digits.\n" in after(
            SKILL, Edit(Op.INSERT_BEFORE, "- Always.", "with digits")
        )

    def test_insert_after_a_heading_joins_the_list_below(self):
        text = after(SKILL, Edit(Op.INSERT_AFTER, "- First.", "## Rules"))
        assert text.endswith("## Rules\n\n- First.\n- Answer with digits.\n- No words.\n")

    def test_a_target_of_several_lines_is_one_place(self):
        target = "- Answer with digits.\n- No"
        assert after(SKILL, Edit(Op.INSERT_AFTER, "- Z", target)).endswith("- No words.\n- Z\n")
        assert "## Rules\n\n- Z\n- Answer" in after(SKILL, Edit(Op.INSERT_BEFORE, "- Z", target))

    def test_newlines_around_a_target_do_not_move_the_place(self):
        text = after(SKILL, Edit(Op.INSERT_BEFORE, "- Z", "\n- No words.\n"))
        assert text.endswith("- Answer with digits.\n- Z\n- No words.\n")

    def test_inserting_next_to_an_example_never_splits_it(self):
        text = f"Intro.\n\n{write(Example('a', 'b'))}\n"
        assert (
            after(text, Edit(Op.INSERT_AFTER, "  More.", "Input: a"))
            == f"Intro.\n\n{write(Example('a', 'b'))}\n\n  More.\n"
        )
        assert after(text, Edit(Op.INSERT_BEFORE, "More.", "Output: b")).startswith("Intro.\n\nMore.\n\n### Example")

    def test_replace_changes_the_target_alone(self):
        assert after(SKILL, Edit(Op.REPLACE, "numerals", "digits.\n\n## Rules")).count("numerals\n\n- Answer") == 1
        assert after("a b c", Edit(Op.REPLACE, "x", "b")) == "a x c"

    def test_replacing_whole_lines_piles_up_no_blank_lines(self):
        assert after(SKILL, Edit(Op.REPLACE, "\n\n- Other.\n\n", "- No words.")).endswith("digits.\n- Other.\n")

    def test_delete_takes_emptied_lines_along(self):
        assert after(SKILL, Edit(Op.DELETE, target="- Answer with digits.")).endswith("## Rules\n\n- No words.\n")
        assert after(SKILL, Edit(Op.DELETE, target="\n- No words.\n")).endswith("- Answer with digits.\n")
        assert after("a\n\nb\n\nc\n", Edit(Op.DELETE, target="b")) == "a\n\nc\n"
        assert after("a\nb", Edit(Op.DELETE, target="a\nb")) == ""

    def test_delete_within_a_line_leaves_the_line(self):
        assert after("one two three\nx\n", Edit(Op.DELETE, target=" three\n")) == "one two\nx\n"

    def test_blank_lines_elsewhere_are_left_alone(self):
        assert after("a\n\n\n\nb", Edit(Op.REPLACE, "c", "b")) == "a\n\n\n\nc\n"


class TestRefusal:
    def test_a_target_must_stand_there_exactly_once(self):
        for op in (Op.INSERT_AFTER, Op.INSERT_BEFORE, Op.REPLACE, Op.DELETE):
            assert refusal(SKILL, Edit(op, "x", "nowhere")) is Status.NOT_FOUND
            assert refusal(SKILL, Edit(op, "x", "digits")) is Status.AMBIGUOUS
        assert refusal("aaa", Edit(Op.DELETE, target="aa")) is Status.AMBIGUOUS

    def test_the_report_says_how_often_the_target_stands_there(self):
        assert "2 times" in revise(SKILL, Edit(Op.DELETE, target="digits")).rows[0].message

    def test_nothing_is_applied_without_what_it_needs(self):
        assert refusal(SKILL, Edit(Op.APPEND, " \n")) is Status.INCOMPLETE
        assert refusal(SKILL, Edit(Op.INSERT_AFTER, "x", "")) is Status.INCOMPLETE
        assert refusal(SKILL, Edit(Op.REPLACE, "", "words")) is Status.INCOMPLETE

    @pytest.mark.parametrize(
        "edit",
        [
            Edit(Op.REPLACE, "x", "keep this"),
            Edit(Op.REPLACE, "x", "Intro.\n\n<!-- PROTECTED:core START -->\nkeep"),
            Edit(Op.DELETE, target="Intro.\n\n<"),
            Edit(Op.DELETE, target="-->\n\nMiddle."),
            Edit(Op.DELETE, target=GUARDED),
            Edit(Op.INSERT_AFTER, "x", "keep this"),
            Edit(Op.INSERT_BEFORE, "x", "<!-- PROTECTED:core END -->"),
            Edit(Op.INSERT_AFTER, "x", "PROTECTED:core START"),
        ],
    )
    def test_whatever_meets_a_protected_region_is_refused(self, edit: Edit):
        assert refusal(GUARDED, edit) is Status.PROTECTED

    def test_the_edges_of_a_region_may_be_built_on(self):
        text = after(GUARDED, Edit(Op.INSERT_AFTER, "Right after.", "<!-- PROTECTED:core END -->"))
        assert "END -->\n\nRight after.\n\nMiddle." in text

    def test_markers_cannot_be_brought_or_assembled(self):
        assert refusal(SKILL, Edit(Op.APPEND, "<!-- A_START -->x<!-- A_END -->")) is Status.MARKER
        assert refusal("<!-- A_STxART -->", Edit(Op.DELETE, target="x")) is Status.MARKER

    def test_what_stands_there_already_is_no_change(self):
        assert refusal(SKILL, Edit(Op.APPEND, "- No words.")) is Status.NO_CHANGE
        assert refusal(SKILL, Edit(Op.INSERT_AFTER, "- No words.", "## Rules")) is Status.NO_CHANGE
        assert refusal(SKILL, Edit(Op.REPLACE, "No", "No")) is Status.NO_CHANGE

    def test_examples_must_stay_readable(self):
        text = f"Intro.\n\n{write(Example('a', 'b'))}\n"
        assert refusal(text, Edit(Op.DELETE, target="Output: b")) is Status.BREAKS_EXAMPLE
        assert refusal(text, Edit(Op.REPLACE, "Sample", "### Example")) is Status.BREAKS_EXAMPLE
        assert examples.parse(after(text, Edit(Op.REPLACE, "Output: c", "Output: b"))).examples == (Example("a", "c"),)
        assert after(text, Edit(Op.DELETE, target=write(Example("a", "b")))) == "Intro.\n"

    def test_a_document_with_broken_markers_is_the_users_error(self):
        with pytest.raises(UsageError, match=r"SKILL\.md, line 1"):
            revise("<!-- A_START -->", Edit(Op.APPEND, "x"))


class TestCaps:
    def test_an_edit_past_the_length_cap_is_refused_and_a_shorter_one_still_applied(self):
        revision = revise("abc", Edit(Op.APPEND, "x" * 20), Edit(Op.APPEND, "y"), limits=Limits(10, None))
        assert [row.status for row in revision.rows] == [Status.TOO_LONG, Status.APPLIED]

    def test_a_document_that_is_too_long_may_be_shortened(self):
        assert revise("abcdef", Edit(Op.DELETE, target="bc"), limits=Limits(2, None)).after.text == "adef"
        assert refusal("abcdef", Edit(Op.APPEND, "g"), Limits(2, None)) is Status.TOO_LONG

    def test_the_change_of_a_step_is_counted_over_its_edits(self):
        edits = [Edit(Op.REPLACE, "XY", "ab"), Edit(Op.REPLACE, "ZW", "cd")]
        revision = revise("ab cd", *edits, limits=Limits(None, 6))
        assert [row.status for row in revision.rows] == [Status.APPLIED, Status.TOO_MUCH]
        assert revision.rows[0].chars == 4
        assert refusal("a" * 100, Edit(Op.APPEND, "b" * 60), Limits(None, None, max_share=0.5)) is Status.TOO_MUCH

    def test_only_applied_edits_count_towards_their_number(self):
        edits = [Edit(Op.DELETE, target="zzz"), Edit(Op.APPEND, "one"), Edit(Op.APPEND, "two")]
        revision = revise(SKILL, *edits, limits=Limits(max_edits=1))
        assert [row.status for row in revision.rows] == [Status.NOT_FOUND, Status.APPLIED, Status.TOO_MANY]
        assert revision.applied == (1,)

    def test_negative_caps_make_no_sense(self):
        with pytest.raises(UsageError, match="max_edits"):
            Limits(max_edits=-1)


class TestParts:
    two = Candidate({"SKILL.md": "main\n", "notes/dates.md": "dates\n"})

    def test_an_edit_goes_to_its_own_part(self):
        revision = apply(self.two, [Edit(Op.APPEND, "more", part="notes/dates.md"), Edit(Op.APPEND, "up")])
        assert dict(revision.after.parts) == {"SKILL.md": "main\n\nup\n", "notes/dates.md": "dates\n\nmore\n"}
        assert [row.part for row in revision.rows] == ["notes/dates.md", "SKILL.md"]

    def test_unknown_parts_are_refused_unless_allowed(self):
        edit = Edit(Op.APPEND, "x", part="new.md")
        assert apply(self.two, [edit]).rows[0].status is Status.UNKNOWN_PART
        allowed = apply(self.two, [edit], Limits(new_parts=True))
        assert allowed.after["new.md"] == "x\n" and list(allowed.after) == ["SKILL.md", "new.md", "notes/dates.md"]

    @pytest.mark.parametrize("name", ["", "../up.md", "/etc/x", "a//b", "a\\b", "a/.", "c:x", "a\nb", " x"])
    def test_a_new_part_needs_a_name_that_is_safe_as_a_file(self, name: str):
        revision = apply(self.two, [Edit(Op.APPEND, "x", part=name)], Limits(new_parts=True))
        assert revision.rows[0].status is Status.UNKNOWN_PART and not revision.changed


def test_later_edits_see_earlier_ones_and_can_be_left_out():
    edits = [Edit(Op.APPEND, "one"), Edit(Op.INSERT_AFTER, "two", "one"), Edit(Op.APPEND, "three")]
    assert after("x", *edits) == "x\n\none\ntwo\n\nthree\n"
    left = without(Candidate("x"), edits, 0)
    assert left.after.text == "x\n\nthree\n" and left.rows[0].status is Status.NOT_FOUND


def test_edits_that_undo_each_other_leave_nothing_to_try():
    revision = revise("a\n", Edit(Op.APPEND, "b"), Edit(Op.DELETE, target="b"))
    assert revision.complete and not revision.changed


def test_the_key_of_an_edit_is_what_it_does():
    edit = Edit(Op.APPEND, "x", support=3, source="a")
    assert edit.key == Edit(Op.APPEND, "x", items=("1",)).key != Edit(Op.APPEND, "y").key
    assert edit.record()["op"] == "append" and edit.record()["support"] == 3
