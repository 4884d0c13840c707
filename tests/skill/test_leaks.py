"""What counts as a leak, and what must not be taken for one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.candidate import Candidate
from sharpen.core.item import Item
from sharpen.core.task import Splits, Task
from sharpen.skill.examples import Example, write
from sharpen.skill.leaks import Leak, LeakIndex, LeakKind, find_leaks

answers = Task().answers


def item(name: str, text: str, answer: object) -> Item:
    return Item(name, {"input": text}, answer)


NUMBERS = Splits(
    train=(item("t1", "twelve", "12"), item("t2", "fifty", "50"), item("t3", "3 + 4 + 0", "7")),
    val=(item("v1", "forty-two", "42"), item("v2", "ninety", "90"), item("v3", "3 + 4", "7")),
    test=(item("s1", "Six hundred twelve thousand one", "612001"), item("s2", "twelve", "dozen")),
)
QUESTIONS = Splits(
    train=(
        item("t1", "In which year did the old bridge over the river burn down?", "in the year 1905"),
        item("t2", "Is the statement about the weather in the north true?", "yes"),
    ),
    val=(item("v1", "Who repaired the great organ of the chapel after the flood?", "the organist Maria Brandt"),),
    test=(
        item("s1", "Is the statement about the weather in the south true?", "yes"),
        item("s2", "In which year did the old bridge over the river burn?", "in the year 1905"),
    ),
)


def leaks(splits: Splits, added: str, before: str = "Skill.\n") -> list[Leak]:
    return find_leaks(Candidate(before), Candidate(f"{before}\n{added}\n"), splits, answers)


def test_a_worked_example_of_a_val_item_is_a_leak():
    assert leaks(NUMBERS, write(Example("Forty-Two", "42"))) == [Leak("v1", "val", LeakKind.PAIR, "forty - two 42")]


def test_a_rule_that_answers_a_val_item_is_a_leak_in_either_order():
    assert [leak.item_id for leak in leaks(NUMBERS, "- forty-two: 42")] == ["v1"]
    assert [leak.item_id for leak in leaks(NUMBERS, "Write 90 for ninety.")] == ["v2"]


def test_train_examples_and_bare_answers_are_no_leak():
    assert leaks(NUMBERS, write(Example("twelve", "12"))) == []
    assert leaks(NUMBERS, "Numbers such as 42 and 90 are written in digits, and ninety is a word.") == []
    assert leaks(QUESTIONS, "Answer yes or no. The answer may be: in the year 1905.") == []


def test_another_answer_to_a_val_input_is_no_leak():
    assert leaks(NUMBERS, write(Example("forty-two", "43"))) == []


def test_a_train_item_that_contains_a_val_item_is_no_leak():
    assert leaks(NUMBERS, write(Example("3 + 4 + 0", "7"))) == []
    assert [leak.item_id for leak in leaks(NUMBERS, "3+4 = 8, 2+4 = 6")] == []


def test_one_word_far_from_its_answer_is_no_leak():
    assert leaks(NUMBERS, "Ninety is a word that people write in many ways but the digits are 90.") == []


def test_a_long_answer_is_a_leak_without_its_question():
    (leak,) = leaks(QUESTIONS, "It was The Organist,  Maria BRANDT.")
    assert (leak.item_id, leak.split, leak.kind, leak.match) == (
        "v1",
        "val",
        LeakKind.ANSWER,
        "the organist maria brandt",
    )


def test_a_run_of_the_input_is_a_leak_without_its_answer():
    (leak,) = leaks(QUESTIONS, "Think of the great organ of the chapel after it.")
    assert (leak.item_id, leak.kind) == ("v1", LeakKind.INPUT)
    (leak,) = leaks(NUMBERS, "Consider six hundred twelve thousand one.")
    assert (leak.item_id, leak.kind) == ("s1", LeakKind.INPUT)


def test_what_train_items_say_too_is_no_leak():
    assert leaks(QUESTIONS, "Is the statement about the weather in the morning paper?") == []
    assert leaks(QUESTIONS, "In which year did the old bridge over the river burn down?") == []


def test_what_stood_in_the_skill_before_is_no_leak():
    before = f"Skill.\n\n{write(Example('forty-two', '42'))}\n"
    assert leaks(NUMBERS, "More.", before) == []
    assert [leak.item_id for leak in leaks(NUMBERS, "ninety: 90", before)] == ["v2"]


def test_every_part_is_looked_at():
    before = Candidate({"SKILL.md": "x", "notes.md": "y"})
    assert find_leaks(before, before.with_part("notes.md", "forty-two = 42"), NUMBERS, answers)


def test_text_without_spaces_is_found_too():
    splits = Splits((), (item("v", "这座古老的教堂是在十八世纪由当地居民建造的", "x"),), ())
    assert [leak.kind for leak in leaks(splits, "请记住古老的教堂是在十八世纪由当地居民")] == [LeakKind.INPUT]


def test_long_matches_are_shortened():
    splits = Splits((), (item("v", "word " * 3, " ".join(f"token{n}" for n in range(30))),), ())
    (leak,) = leaks(splits, " ".join(f"token{n}" for n in range(30)))
    assert len(leak.match) == 80 and leak.match.endswith("…")


words = st.text(alphabet="abcdefgh", min_size=1, max_size=4)
sentences = st.lists(words, min_size=1, max_size=9).map(" ".join)
surroundings = st.sampled_from(["", "Note:", "- ", "xyz xyz"])


@st.composite
def data(draw: st.DrawFn) -> Splits:
    texts = draw(st.lists(sentences, min_size=3, max_size=9, unique=True))
    items = [item(f"i{n}", text, draw(sentences)) for n, text in enumerate(texts)]
    third = len(items) // 3
    return Splits(tuple(items[:third]), tuple(items[third : 2 * third]), tuple(items[2 * third :]))


@settings(max_examples=150, deadline=None)
@given(data(), st.data())
def test_train_items_alone_are_never_a_leak_and_held_out_ones_always(splits: Splits, draw: st.DataObject):
    index = LeakIndex(splits, answers)
    start = Candidate("Skill.\n")
    train = "\n\n".join(write(Example(i.text, i.reference)) for i in splits.train)
    assert index.find(start, start.with_part("SKILL.md", f"Skill.\n\n{train}\n")) == []
    held = draw.draw(st.sampled_from([*splits.val, *splits.test]))
    block = write(Example(held.text, held.reference))
    found = index.find(start, start.with_part("SKILL.md", f"Skill.\n\n{block}\n"))
    in_train = any(f" {held.text} " in f" {i.text} {i.reference} " for i in splits.train)
    assert in_train or held.id in {leak.item_id for leak in found}


@settings(max_examples=100, deadline=None)
@given(data(), sentences)
def test_an_unchanged_candidate_leaks_nothing_and_order_is_stable(splits: Splits, text: str):
    index = LeakIndex(splits, answers)
    same = Candidate(text)
    assert index.find(same, same) == []
    everything = Candidate("\n".join(f"{i.text}: {i.reference}" for i in (*splits.val, *splits.test)))
    assert index.find(same, everything) == index.find(same, everything)
    assert index.find(everything, everything.with_part("SKILL.md", everything.text + " ")) == []
