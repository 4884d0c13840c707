"""A skill as a DSPy program, its rollouts as predictions, and the optimizer model as a DSPy language model.

A part of the candidate is the instruction of a predictor; demonstrations of the main part's predictor are worked examples at
the end of its text. The program never asks a model itself: it attempts an item through the job, so that ledger, budget and
scorer are those of every trainer. This module imports dspy and is imported by those who run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from sharpen.core.chat import Message
from sharpen.core.item import Item
from sharpen.skill.document import find_section
from sharpen.skill.examples import Example, write
from sharpen.trainers.adapters.host import Host
from sharpen.trainers.reflact.proposers.examples import SECTION
from sharpen.trainers.reflact.rollout import FULL_MARKS


class Question(str):
    """The text of an item that still knows which item it is."""

    item_id: str

    @classmethod
    def of(cls, item: Item, text: str) -> Question:
        made = cls(text)
        made.item_id = item.id
        return made


class Link:
    """The host, and what is known of candidates so far. Programs are copied all the time; this is not."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._known: dict[tuple[tuple[tuple[str, str], ...], str], tuple[str, float]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Link:
        return self

    def examples(self, items: Sequence[Item]) -> list[Any]:
        """Items as DSPy knows them; those that can be no worked example have no answer."""
        made = []
        for item in items:
            text, answer = self.host.job.task.example(item) or (item.text, "")
            made.append(dspy.Example(input=Question.of(item, text), answer=answer).with_inputs("input"))
        return made

    def attempt(self, texts: Mapping[str, str], item_id: str) -> tuple[str, float]:
        """What one item comes to: the answer, of train items alone, and the score."""
        key = (tuple(sorted(texts.items())), item_id)
        if key not in self._known:
            self.attempt_all(texts, [item_id])
        return self._known[key]

    def attempt_all(self, texts: Mapping[str, str], ids: Sequence[str]) -> None:
        """Attempt these items side by side, so that asking for each of them afterwards costs nothing."""
        seen = self.host.measure(texts, [self.host.items[item_id] for item_id in ids], whole=True)
        answers = [outcome.answer for outcome in seen.outcomes] or [""] * len(ids)
        same = tuple(sorted(texts.items()))
        for item_id, answer, score in zip(ids, answers, seen.filled(0.0, len(ids)), strict=True):
            self._known[same, item_id] = (answer, score)


class SkillProgram(dspy.Module):  # type: ignore[misc]
    """The candidate as a program with one predictor per part."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link = link
        self.parts = {name: _predictor(text) for name, text in link.host.texts.out().items()}
        # DSPy tidies instructions up; where it finds none it writes some. What was not changed is as it was.
        self.began = {name: predictor.signature.instructions for name, predictor in self.parts.items()}

    @property
    def main(self) -> Any:
        return self.parts[self.link.host.job.initial.main]

    def texts(self) -> dict[str, str]:
        """The texts this program stands for."""
        found = self.link.host.texts.out()
        for name, predictor in self.parts.items():
            if predictor.signature.instructions != self.began[name]:
                found[name] = predictor.signature.instructions
        main = self.link.host.job.initial.main
        found[main] = _with_examples(found[main], [(demo["input"], demo["answer"]) for demo in self.main.demos])
        return found

    def forward(self, input: Question) -> Any:
        answer, score = self.link.attempt(self.texts(), input.item_id)
        prediction = dspy.Prediction(answer=answer, score=score)
        if dspy.settings.trace is not None:
            dspy.settings.trace.append((self.main, {"input": input}, dspy.Prediction(answer=answer)))
        return prediction


def _predictor(text: str) -> Any:
    return dspy.Predict(dspy.Signature("input -> answer", text))


def _with_examples(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    if not pairs:
        return text
    blocks = [write(Example(str(question), answer)) for question, answer in pairs]
    heading = [f"## {SECTION}"] if find_section(text, SECTION) is None else []
    return "\n\n".join([text.rstrip("\n"), *heading, *blocks])


def metric(example: Any, prediction: Any, trace: Any = None) -> float | bool:
    """The score the task gave; while demonstrations are collected, whether it is full marks."""
    score: float = prediction.score
    return score if trace is None else score >= FULL_MARKS


class OptimizerLM(dspy.BaseLM):  # type: ignore[misc]
    """The optimizer model of the job."""

    def __init__(self, host: Host) -> None:
        super().__init__("optimizer", cache=False)
        self._host = host

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizerLM:
        return self

    def forward(
        self, prompt: str | None = None, messages: Sequence[Mapping[str, Any]] | None = None, **given: Any
    ) -> SimpleNamespace:
        said = [{"role": "user", "content": prompt or ""}] if messages is None else messages
        question = [Message(one["role"], _plain(one["content"])) for one in said]
        answers = [self._host.ask(question) for _ in range(given.get("n") or 1)]
        choices = [SimpleNamespace(message=SimpleNamespace(content=answer), finish_reason="stop") for answer in answers]
        return SimpleNamespace(choices=choices, usage={}, model=self.model)


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(piece.get("text", "")) for piece in content)


class Steps(BaseCallback):  # type: ignore[misc]
    """Makes each evaluation of a program on val one step, and its rollouts one measurement."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        program = inputs["program"]
        examples = instance.devset if inputs.get("devset") is None else inputs["devset"]
        texts = program.texts()
        fresh = not self._link.host.judged(texts)
        if fresh:
            self._link.host.begin_step()
        self._link.attempt_all(texts, [example["input"].item_id for example in examples])
        if fresh:
            self._link.host.end_step("reject")
