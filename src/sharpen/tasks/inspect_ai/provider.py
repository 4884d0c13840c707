"""Our model as Inspect sees it: a provider that hands every call to the attempt of the sample that makes it.

Which attempt that is stands in the sample's store, and in a context variable for subtasks, whose stores are empty. Tools are
described in the system message and called by a line of text, so that any model can use them and a call is one plain request
in the ledger. A call that fails is remembered, whatever the solver makes of it: it belongs to the engine, not to the score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolCall
from inspect_ai.util import LimitExceededError, store

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import SharpenError, UsageError
from sharpen.core.task import Attempt

_CALL = re.compile(r"<tool>\s*(.*?)\s*</tool>", re.DOTALL)
_NO_LIMIT = 100_000


@dataclass(eq=False)
class Order:
    """One sample to be run for one attempt. `error` is the call that failed, if one did."""

    task: Any
    sample: Any
    skill: str
    attempt: Attempt
    max_tokens: int
    max_calls: int | None
    grader: str
    grader_calls: int
    calls: int = 0
    graded: int = 0
    abandoned: bool = False
    error: SharpenError | None = None


KEY = "sharpen:order"
"""Under which a sample's store has the number of its order."""
ORDERS: dict[int, Order] = {}
"""Orders under way, by number."""
CURRENT: ContextVar[Order | None] = ContextVar("sharpen_inspect_order", default=None)


def current() -> Order:
    """The order of the sample that is asking: solver and scorer share its store, a subtask inherits its context."""
    order = CURRENT.get() or ORDERS.get(store().get(KEY))
    if order is None:
        raise RuntimeError("a model was called outside of a sample")
    return order


class Provider(ModelAPI):  # type: ignore[misc]
    """The provider `sharpen`; the model's name is the role it plays."""

    async def generate(self, input: list[Any], tools: list[Any], tool_choice: Any, config: Any) -> Any:
        order = current()
        grading = self.model_name == "grader"
        _count(order, grading)
        offered = [] if tool_choice == "none" else tools
        request = requested(input, offered, config, order.max_tokens)
        try:
            reply = await order.attempt.complete(request, role=order.grader if grading else "target")
        except SharpenError as error:
            order.error = error
            raise
        return _output(f"sharpen/{self.model_name}", reply, bool(offered))

    def max_connections(self) -> int:
        return _NO_LIMIT

    async def count_text_tokens(self, text: str) -> int:
        """A guess, since the default looks for a table on the network."""
        return len(text) // 4 + 1


class Uncached(Model):  # type: ignore[misc]
    """A model whose answers Inspect does not keep: what is paid once is kept in our ledger."""

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        return await super().generate(*args, **{**kwargs, "cache": False})


_registered = modelapi(name="sharpen")(Provider)


def model(role: str) -> Any:
    return Uncached(get_model(f"sharpen/{role}", memoize=False).api, GenerateConfig())


def requested(messages: Sequence[Any], tools: Sequence[Any], config: Any, max_tokens: int) -> Request:
    """One call of Inspect as a request of ours: all that is said by the system in one message at the front."""
    system = [message.text for message in messages if message.role == "system"]
    if tools:
        system.append(_offer(tools))
    said = [_message(message) for message in messages if message.role != "system"]
    front = [Message("system", "\n\n".join(text for text in system if text.strip()))] if system else []
    return Request(
        messages=(*front, *said),
        max_tokens=config.max_tokens or max_tokens,
        temperature=config.temperature or 0.0,
        stop=tuple(config.stop_seqs or ()),
        shared=len(front),
    )


def calls_in(text: str) -> list[Any]:
    """The tool calls that stand in an answer."""
    found = []
    for number, match in enumerate(_CALL.finditer(text)):
        name, arguments, wrong = "", {}, None
        try:
            value = json.loads(match[1])
            name, arguments = str(value["name"]), dict(value.get("arguments") or {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            wrong = f'not a tool call; write <tool>{{"name": ..., "arguments": {{...}}}}</tool>, not {match[1][:80]!r}'
        found.append(ToolCall(id=f"call-{number}", function=name or "unknown", arguments=arguments, parse_error=wrong))
    return found


def _count(order: Order, grading: bool) -> None:
    if order.abandoned:
        raise LimitExceededError("custom", value=1, limit=0, message="nobody waits for this sample any more")
    if grading:
        order.graded += 1
        if order.graded > order.grader_calls:
            order.error = UsageError(
                f"the scorer of this Inspect task asks a grader more than {order.grader_calls} times for a sample; "
                "say how often at most with task.params.grader_calls=N, so that the budget can be kept"
            )
            raise order.error
        return
    order.calls += 1
    if order.max_calls is None and order.calls > 1:
        order.error = UsageError(
            "this Inspect task calls the model more than once for a sample; say how often at most with "
            "task.params.max_calls=N, so that the budget can be kept"
        )
        raise order.error
    if order.max_calls is not None and order.calls > order.max_calls:
        raise LimitExceededError(
            "custom",
            value=order.calls,
            limit=order.max_calls,
            message=f"more than max_calls={order.max_calls} model calls",
        )


def _message(message: Any) -> Message:
    if message.role == "tool":
        text = message.error.message if message.error is not None else message.text
        return Message("user", f"Result of {message.function or 'the tool'}: {text}")
    return Message(message.role, message.text)


def _offer(tools: Sequence[Any]) -> str:
    lines = []
    for tool in tools:
        parameters = tool.parameters.properties
        signature = ", ".join(f"{name}: {schema.type or 'any'}" for name, schema in parameters.items())
        lines.append(f"- {tool.name}({signature}): {tool.description}")
    listed = "\n".join(lines)
    return (
        f"You can use these tools:\n{listed}\n\nTo use one, answer with nothing but\n"
        '<tool>{"name": "NAME", "arguments": {...}}</tool>\nand wait for its result.'
    )


def _output(name: str, reply: Reply, tools: bool) -> Any:
    calls = calls_in(reply.text) if tools else []
    message = ChatMessageAssistant(content=reply.text, tool_calls=calls or None, model=name, source="generate")
    reason = "tool_calls" if calls else "max_tokens" if reply.finish == "length" else "stop"
    usage = ModelUsage(
        input_tokens=reply.usage.prompt_tokens,
        output_tokens=reply.usage.completion_tokens,
        total_tokens=reply.usage.tokens,
    )
    return ModelOutput(model=name, choices=[ChatCompletionChoice(message=message, stop_reason=reason)], usage=usage)
