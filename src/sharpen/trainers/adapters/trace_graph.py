"""A skill as Trace's parameters, a batch of attempts as a node that depends on them, and the optimizer model as its LLM.

A part of the candidate is a trainable node. The answers to a batch of train items are one node made of all parts, and what
the scorer says about them is the feedback that is sent back from it. This module imports opto and is imported by those who
run it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from opto.optimizers import OPRO, OptoPrime, TextGrad
from opto.trace.nodes import GRAPH, MessageNode, node

from sharpen.core.chat import Message
from sharpen.core.item import Item
from sharpen.trainers.adapters.host import Host, Seen
from sharpen.trainers.adapters.showing import course, remark

_TASK = "[attempt] the answers an agent gives when it works from these documents"


class OptimizerLLM:
    """The optimizer model of the job, as Trace calls one."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, *, messages: Sequence[Mapping[str, Any]], **given: Any) -> SimpleNamespace:
        answer = self._host.ask([Message(said["role"], said["content"]) for said in messages])
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=answer))])

    create = __call__


class _AnyText:
    """Takes a suggested text as it is. Trace takes what holds `def` for a program, and drops it where it is none."""

    parameters: list[Any]

    def construct_update_dict(self, suggestion: Mapping[str, Any]) -> dict[Any, str]:
        return {part: str(suggestion[part.py_name]) for part in self.parameters if part.py_name in suggestion}


class PlainOptoPrime(_AnyText, OptoPrime):  # type: ignore[misc]
    pass


class PlainOPRO(_AnyText, OPRO):  # type: ignore[misc]
    pass


OPTIMIZERS: Mapping[str, Any] = {"optoprime": PlainOptoPrime, "opro": PlainOPRO, "textgrad": TextGrad}


class Parameters:
    """The parts of a candidate as trainable nodes, and the optimizer that changes them."""

    def __init__(self, host: Host, optimizer: str, settings: Mapping[str, Any]) -> None:
        # Nodes are numbered within the process, and their numbers stand in questions: every training begins with the first.
        GRAPH.clear()
        self._nodes = {
            name: node(
                text, name=_identifier(name), trainable=True, description=f"document {name} that an agent works from"
            )
            for name, text in host.texts.out().items()
        }
        self._optimizer = OPTIMIZERS[optimizer](list(self._nodes.values()), llm=OptimizerLLM(host), **settings)

    @property
    def texts(self) -> dict[str, str]:
        return {name: str(part.data) for name, part in self._nodes.items()}

    def take_back(self, texts: Mapping[str, str]) -> None:
        """Set the parts to texts they had before."""
        for name, part in self._nodes.items():
            part._data = texts[name]

    def step(self, items: Sequence[Item], seen: Seen) -> None:
        """Let the optimizer change the parts after what became of a batch."""
        shown = [
            (number, *attempt)
            for number, attempt in enumerate(zip(items, seen.outcomes, seen.scores, strict=True), start=1)
            if attempt[1].scored
        ]
        answers = [f"ID [{number}]: {outcome.answer}" for number, _, outcome, _ in shown]
        remarks = [
            "\n".join(
                [
                    f"ID [{number}]: {item.text}",
                    *course(outcome),
                    f"Answer: {outcome.answer}",
                    remark(item, outcome, score),
                ]
            )
            for number, item, outcome, score in shown
        ]
        inputs = {part.py_name: part for part in self._nodes.values()}
        output = MessageNode("\n".join(answers), inputs=inputs, description=_TASK, name="answers")
        self._optimizer.zero_feedback()
        self._optimizer.backward(output, "\n\n".join(remarks))
        self._optimizer.step()


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)
