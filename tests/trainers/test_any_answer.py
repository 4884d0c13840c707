"""Whatever an optimizer answers, a training comes to its end, keeps what is protected, and vouches for what it measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sharpen.core.rng import Stream
from sharpen.models.scripted_optimizer import STAGES
from sharpen.skill.document import regions
from sharpen.skill.edits import Op
from sharpen.skill.protected import APPENDIX, SLOW_UPDATE
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.tasks.splitting import Deal

Train = Callable[..., Any]
Data = dict[str, Any]
KEPT = "<!-- PROTECTED:law START -->\nThe law stands.\n<!-- PROTECTED:law END -->"
RULES = [f"- {kind}: {word}" for kind, word in code_words().items()]


class Guarded(Codebook):
    skill = "\n".join([Codebook.skill, "", *RULES[:3], "", KEPT])


NONSENSE = [
    "Take care.",
    "",
    "\n\n",
    "- Look twice.",
    "The law stands.",
    KEPT,
    "x" * 9000,
    "\u2028\x00é",
    *RULES[:12],
]
NONSENSE += [
    "<!-- SLOW_UPDATE_START -->",
    "<!-- APPENDIX_END -->",
    "[[PROTECTED 1]]",
    "[[PROTECTED 2]]",
    "---\nname: x\n---",
]
CHOICES: dict[str, tuple[Any, ...]] = {
    "epochs": (2, 3),
    "batch_size": (6, 12),
    "accumulation": (1, 2),
    "budget_control": ("fixed", "autonomous", "none"),
    "update_mode": ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch"),
    "proposers": ((), ("examples", "instructions", "prune")),
    "gate": ("strict", "sequential", "force"),
    "slow_update_gate": (True, False),
    "longitudinal_pair_policy": ("mixed", "changed", "unchanged"),
    "context_tokens": (700, 32_000),
    "max_length": (600, 20_000),
}


def babble(seed: int) -> Callable[[Data], Any]:
    """An optimizer that answers every second question as it should, and the others in the right shape with nonsense."""

    def answer(data: Data) -> Any:
        draw = Stream(seed, json.dumps(data))

        def text() -> str:
            return "\n".join(draw.choice(NONSENSE) for _ in range(1 + draw.below(5)))

        def some(make: Callable[[], Any]) -> list[Any]:
            return [make() for _ in range(draw.below(4))]

        if draw.random() < 0.5:
            return STAGES[data["stage"]](data)
        lines = [line for line in data.get("skill", "").splitlines() if line] or ["x"]
        part = draw.choice([None, None, "SKILL.md", "elsewhere.md"])
        return {
            "edits": some(
                lambda: {"op": draw.choice([*Op]).value, "target": draw.choice(lines), "content": text(), "part": part}
            ),
            "documents": some(lambda: {"part": part, "text": text()}),
            "suggestions": some(lambda: {"title": text(), "instruction": text()}),
            "notes": some(text),
            "patterns": some(lambda: {"pattern": text(), "items": some(text)}),
            "order": some(lambda: draw.below(20) - 5),
            "budget": draw.below(9) - 1,
            "content": text(),
        }

    return answer


@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_optimizer_says_a_training_ends_and_keeps_what_is_protected(train: Train, seed: int) -> None:
    draw = Stream(seed, "settings")
    params = {name: draw.choice(choices) for name, choices in CHOICES.items()}
    says = {f"{name}_says" if name in ("slow_update", "meta_skill") else name: babble(seed) for name in STAGES}
    task = Guarded(Deal(limit=24))
    played = train(task=task, slow_update=True, meta_skill=True, skill_aware=True, answer_tokens=99, **params, **says)
    for candidate in (*played.saved().values(), played.trained.best, played.trained.final):
        found = [candidate.text[region.start : region.end] for region in regions(candidate.text)]
        assert found.count(KEPT) == 1
        assert {region.name for region in regions(candidate.text)} <= {"PROTECTED:law", SLOW_UPDATE, APPENDIX}
        assert candidate.length <= max(params["max_length"], task.seed().length)
    if played.trained.raw is not None and params["gate"] != "sequential":  # which looks at some of the items only
        kept = {line for line in played.trained.best.text.splitlines() if line in RULES}
        right = sum(f"- {item.type}: {item.reference}" in kept for item in task.splits().val)
        assert played.trained.raw <= right / 24, "the best is vouched for with its own score"


def test_half_a_character_in_an_answer_does_not_end_a_training(train: Train) -> None:
    """A model that breaks an emoji in two writes it as an escape, which only the JSON parser makes a character of."""
    played = train(reflect='{"edits": [{"op": "append", "content": "' + "\\n".join(RULES[:9]) + ' \\ud83d"}]}')
    assert played.actions() == ["accept"]
