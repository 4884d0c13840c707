"""An optimizer model for tests that reads the questions of other packages: the rules of `codebook`, in each one's form.

What it learns stands in the question: messages such as `kind-07: please reply` with the code word that was expected. What
form an answer must have differs: GEPA wants a document between fences, DSPy fields between markers, Trace JSON or tags.
"""

from __future__ import annotations

import json
import re

from sharpen.core.chat import Request
from sharpen.core.digest import digest
from sharpen.core.rng import Stream
from sharpen.models.scripted import last_said
from sharpen.models.scripted_optimizer import RULE
from sharpen.skill import examples
from sharpen.tasks.codebook import code_words

_ANSWERED = re.compile(r"(kind-\d+): [a-z ]+(?:', 'answer': '|\s+Answer: )([a-z]+)")
_FIELD = re.compile(r"^\d+\. `(\w+)`", re.MULTILINE)
_VALUE = re.compile(r"^\(str\) (\w+)=(.*?)(?=^\(str\)|\Z)", re.MULTILINE | re.DOTALL)
_ATTEMPT = re.compile(r"(kind-\d+): .*?Expected: ([a-z]+)", re.DOTALL)


def lessons(text: str) -> dict[str, str]:
    """Kinds with their code words, as far as the question tells them."""
    found: dict[str, str] = {}
    for attempt in _ATTEMPT.findall(text):
        found.setdefault(*attempt)
    return found


def taught(document: str, text: str) -> str:
    """The document with the rules a question teaches. About one answer in five is of no use, which the question decides."""
    rules = {**dict(RULE.findall(document)), **lessons(text)}
    if int(digest(text)[:4], 16) % 5 == 0:
        rules = dict.fromkeys(rules, "basalt")
    kept = [line for line in document.strip().splitlines() if not RULE.match(line)]
    return "\n".join([*kept, *(f"- {kind}: {word}" for kind, word in sorted(rules.items()))])


def gepa(request: Request) -> str:
    said = request.messages[-1].content
    document, _, attempts = said.partition("```\n")[2].partition("\n```")
    return f"Here it is.\n```\n{taught(document, attempts)}\n```"


def dspy(request: Request) -> str:
    """The fields a DSPy question asks for. Where it shows no answered message (COPRO's never do), the rules are made up by
    its seed, some of them right."""
    said = "\n".join(message.content for message in request.messages)
    material = request.messages[-1].content
    learnt = {**dict(RULE.findall(material)), **dict(_ANSWERED.findall(material))}
    if not learnt:
        draw = Stream(request.seed or 0, digest(said))
        learnt = dict(draw.sample(list(code_words().items()), 8))
    document = "\n".join(f"- {kind}: {word}" for kind, word in sorted(learnt.items()))
    values = {
        "proposed_instruction": f"Answer with the code word.\n{document}",
        "proposed_prefix_for_output_field": "Word:",
    }
    outputs = said.partition("Your output fields are:")[2].partition("All interactions")[0]
    fields = [f"[[ ## {name} ## ]]\n{values.get(name, document)}\n" for name in _FIELD.findall(outputs)]
    return "\n".join([*fields, "[[ ## completed ## ]]"])


def by_rules_and_examples(request: Request) -> str:
    """A target that knows three kinds from the start, and others from rule lines and worked examples."""
    skill = "\n".join(message.content for message in request.messages if message.role == "system")
    shown = {example.input.partition(":")[0]: example.output for example in examples.parse(skill).examples}
    known = dict(list(code_words().items())[:3])
    return {**known, **dict(RULE.findall(skill)), **shown}.get(last_said(request).partition(":")[0], "unknown")


def trace(request: Request) -> str:
    """Suggested values as JSON, or, for TextGrad, criticism that repeats what was expected and then a text between tags."""
    said = request.messages[-1].content
    if "<VARIABLE>" in said:
        if "<IMPROVED_VARIABLE>" not in said:
            return "\n".join(f"{kind}: this one. Expected: {word}" for kind, word in lessons(said).items())
        document = said.partition("<LM_INPUT> ")[2].partition(" </LM_INPUT>")[0]
        return f"<IMPROVED_VARIABLE>{taught(document, said)}</IMPROVED_VARIABLE>"
    suggested = {name: taught(text, said) for name, text in _variables(said).items()}
    return json.dumps({"reasoning": "rules are missing", "suggestion": suggested})


def _variables(said: str) -> dict[str, str]:
    """The variables of OptoPrime's question, or the newest ones of OPRO's."""
    if "#Variables" in said:
        block = said.partition("#Variables\n")[2].partition("\n\n#Constraints")[0]
        return dict(_VALUE.findall(block))
    start = said.rindex('{\n    "variables"')
    newest, _ = json.JSONDecoder().raw_decode(said[start:])
    found: dict[str, str] = newest["variables"]
    return found
