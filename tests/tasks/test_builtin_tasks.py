"""Every built-in task for models that read and write holds to the contract, has the size it promises, and asks what its file
says. The tasks of `internal` and `algorithms` have tests of their own.
"""

from __future__ import annotations

import pytest

from sharpen.core.task import Task
from sharpen.tasks import registry
from sharpen.tasks.codebook import code_words
from sharpen.tasks.families.number_words import spell
from sharpen.testing.tasks import TaskContract

NAMES = (
    "number-words", "plural-nouns", "iso-dates", "count-letter", "one-digit-sums", "sum-json", "email-json", "intent-4",
    "sentiment-2", "codebook", "keys-and-doors",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
class TestBuiltIn(TaskContract):
    name = ""

    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name

    def make(self) -> Task:
        return registry.get(self.name)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_leave_room_for_a_gate_and_a_final_word(name: str) -> None:
    splits = registry.get(name).splits()
    assert len(splits.train) + len(splits.val) + len(splits.test) >= 200
    assert len(splits.train) >= 60 and len(splits.val) >= 60 and len(splits.test) >= 100


@pytest.mark.parametrize("name", NAMES)
def test_every_type_of_item_occurs_in_val_and_test(name: str) -> None:
    splits = registry.get(name).splits()
    assert {item.type for item in splits.val} == {item.type for item in splits.test} >= {i.type for i in splits.train}


@pytest.mark.parametrize("name", NAMES)
def test_another_split_seed_deals_the_items_out_anew(name: str) -> None:
    usual, other = registry.get(name).splits(), registry.get(name, split_seed=1).splits()
    assert {item.id for item in usual.val} != {item.id for item in other.val}


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_written_as_the_metric_wants_them(name: str) -> None:
    """No item is unfair: the answer that a careful reader gives is the reference."""
    for item in registry.get(name).splits().test[:5]:
        assert item.reference is None or str(item.reference).strip() == item.reference


def test_numbers_are_spelt_as_people_say_them() -> None:
    assert spell(42) == "forty-two"
    assert spell(300) == "three hundred"
    assert spell(317) == "three hundred and seventeen"
    assert spell(905) == "nine hundred and five"
    assert spell(20) == "twenty"


def test_sentiment_cannot_be_told_from_any_single_word() -> None:
    """Each telling word stands in as much praise as complaint over all items, within what sampling leaves."""
    items = registry.get("sentiment-2").splits()
    labels: dict[str, list[bool]] = {}
    for item in (*items.train, *items.val, *items.test):
        for word in item.text.strip(".").lower().split():
            labels.setdefault(word, []).append(item.reference == "positive")
    for word, positive in labels.items():
        if len(positive) >= 20:
            assert 0.2 < sum(positive) / len(positive) < 0.8, word


def test_the_codebook_has_twenty_kinds_with_their_own_words() -> None:
    words = code_words()
    assert len(words) == len(set(words.values())) == 20
    item = registry.get("codebook").splits().train[0]
    kind = item.text.partition(":")[0]
    assert item.type == kind and item.reference == words[kind]


def test_the_codebook_seed_gives_nothing_away() -> None:
    task = registry.get("codebook")
    text = task.seed().text + " ".join(task.brief.instructions)
    assert not any(word in text for word in code_words().values())
