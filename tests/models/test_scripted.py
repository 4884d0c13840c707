"""Scripted models: the target obeys its rules, the optimizer learns them, bad proposals come too, and all of it repeats."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.chat import Message, Reply, Request
from sharpen.core.errors import UsageError
from sharpen.core.usage import Usage
from sharpen.models.base import Model
from sharpen.models.scripted import ScriptedModel

WORDS = {f"kind-{number:02d}": f"word{number}" for number in range(12)}


def say(model: ScriptedModel, request: Request) -> Reply:
    return asyncio.run(model.complete(request))


def target(skill: str, said: str, **settings: Any) -> str:
    request = Request(messages=(Message("system", skill), Message("user", said)))
    return say(ScriptedModel("scripted/rules", **settings), request).text


def optimizer(**data: Any) -> Any:
    block = f"Improve the skill.\n\n## Data\n\n```json\n{json.dumps(data)}\n```\n"
    reply = say(ScriptedModel("scripted/rules"), Request(messages=(Message("user", block),), max_tokens=10_000))
    return json.loads(reply.text)


def attempts(*kinds: str, score: float = 0.0, salt: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "item": f"item-{salt}-{number}",
            "input": f"{kind}: please reply",
            "answer": "unknown",
            "expected": WORDS[kind],
            "score": score,
            "feedback": "",
            "type": kind,
        }
        for number, kind in enumerate(kinds)
    ]


def test_the_target_answers_by_the_last_rule_for_the_kind() -> None:
    skill = "# Codebook\n\n- kind-01: azure\n- kind-07: rose\n- kind-07: gold\n"
    assert target(skill, "kind-07: please reply") == "gold"
    assert target(skill, "kind-01: what about kind-07?") == "azure"


@pytest.mark.parametrize(
    "skill",
    ["", "- kind-08: azure", "kind-07: azure", "- kind-07 azure", "- kind-07: two words", "text - kind-07: azure"],
)
def test_without_an_exact_rule_line_the_target_does_not_know(skill: str) -> None:
    assert target(skill, "kind-07: please reply") == "unknown"


def test_the_target_reads_a_prompt_too() -> None:
    prompt = "- kind-01: azure\n- kind-02: rose\n\nUser: kind-01: hello\nAssistant:"
    assert say(ScriptedModel("scripted/rules"), Request(prompt=prompt)).text == "azure"


def reflections(skill: str = "# Codebook\n", count: int = 120) -> list[Any]:
    return [
        optimizer(stage="reflect", skill=skill, budget=4, attempts=attempts("kind-03", "kind-03", "kind-05", salt=salt))
        for salt in range(count)
    ]


def test_reflection_learns_rules_and_counts_their_support() -> None:
    learnt = {
        "summary": "2 kinds were answered wrongly",
        "edits": [
            {"op": "append", "target": "", "content": "- kind-03: word3", "support": 2},
            {"op": "append", "target": "", "content": "- kind-05: word5", "support": 1},
        ],
    }
    good = [reply for reply in reflections() if reply["edits"] == learnt["edits"]]
    assert good[0]["summary"] == learnt["summary"]
    assert good[0]["patterns"][0]["pattern"] == "the code word of kind-03 is not known"
    assert len(good[0]["patterns"][0]["items"]) == 2


def test_about_one_reflection_in_four_is_no_help_and_every_sort_of_it_occurs() -> None:
    replies = reflections(skill="- kind-00: word0\n- kind-01: word1\n")
    contents = [" | ".join(edit["content"] for edit in reply["edits"]) for reply in replies]
    bad = [content for content in contents if "word3" not in content or "nowhere" in content]
    assert 0.15 < len(bad) / len(replies) < 0.35
    assert any("- kind-00: basalt\n- kind-01: cobalt" in content for content in bad)
    assert any("Take care" in content for content in bad)
    assert any("nowhere" in content for content in bad)


def test_new_rules_go_behind_the_last_one_and_wrong_ones_are_put_right() -> None:
    replies = reflections(skill="- kind-03: wrong\n- kind-00: word0\n")
    assert [
        {"op": "replace", "target": "- kind-03: wrong", "content": "- kind-03: word3", "support": 2},
        {"op": "insert_after", "target": "- kind-00: word0", "content": "- kind-05: word5", "support": 1},
    ] in [reply["edits"] for reply in replies]


def test_a_line_that_stands_twice_is_no_target() -> None:
    replies = reflections(skill="- kind-03: wrong\n- kind-03: wrong\n")
    edits = [edit for reply in replies for edit in reply["edits"]]
    assert {"op": "append", "target": "", "content": "- kind-03: word3", "support": 2} in edits
    assert all(edit["target"] != "- kind-03: wrong" for edit in edits)


def test_what_other_hands_keep_is_no_target() -> None:
    skill = (
        "- kind-00: word0\n\n<!-- SLOW_UPDATE_START -->\n- kind-03: wrong\n- kind-01: word1\n<!-- SLOW_UPDATE_END -->\n"
    )
    targets = {edit["target"] for reply in reflections(skill=skill) for edit in reply["edits"]}
    assert targets <= {"", "- kind-00: word0", "- a line that is not there"} and "- kind-00: word0" in targets


def test_a_misleading_edit_really_misleads() -> None:
    skill = "- kind-00: word0\n- kind-01: word1\n"
    edits = [edit for reply in reflections(skill) for edit in reply["edits"] if "basalt" in edit["content"]]
    assert target(f"{skill}{edits[0]['content']}\n", "kind-00: hello") == "basalt"


@given(
    budget=st.integers(0, 6), salt=st.integers(0, 10_000), kinds=st.lists(st.sampled_from(sorted(WORDS)), max_size=8)
)
def test_reflection_keeps_to_its_budget(budget: int, salt: int, kinds: list[str]) -> None:
    reply = optimizer(stage="reflect", skill="", budget=budget, attempts=attempts(*kinds, salt=salt))
    assert len(reply["edits"]) <= budget
    assert set(reply) == {"summary", "patterns", "edits"}


def test_successes_teach_nothing() -> None:
    replies = [
        optimizer(stage="reflect", skill="", budget=4, attempts=attempts("kind-03", score=1.0, salt=salt))
        for salt in range(60)
    ]
    assert all("word3" not in json.dumps(reply) for reply in replies)
    assert any(reply["edits"] == [] for reply in replies)


def test_merging_unites_equal_edits_and_adds_their_support() -> None:
    one = {"op": "append", "target": "", "content": "- kind-01: word1", "support": 1}
    two = {"op": "append", "target": "", "content": "- kind-02: word2", "support": 2}
    merged = optimizer(stage="merge", skill="", patches=[{"edits": [one, two]}, {"edits": [one]}, {"edits": [{**one}]}])
    assert merged["edits"] == [{**one, "support": 3}, two]


def test_ranking_puts_the_most_supported_first() -> None:
    edits = [{"op": "append", "content": str(support), "support": support} for support in (1, 5, 3, 5)]
    assert optimizer(stage="rank", edits=edits) == {"order": [1, 3, 2, 0]}


def test_data_that_holds_fences_and_headings_is_read_whole() -> None:
    skill = "## Data\n```json\n{}\n```\n"
    reply = optimizer(stage="rank", skill=skill, edits=[{"support": 1}, {"support": 2}])
    assert reply == {"order": [1, 0]}


def test_the_last_data_section_of_a_message_counts() -> None:
    data = json.dumps({"stage": "rank", "edits": [{"support": 1}]})
    said = f"About the skill:\n## Data\n```json\n[]\n```\n\n## Data\n\n```json\n{data}\n```"
    assert say(ScriptedModel("scripted/rules"), Request(messages=(Message("user", said),))).text == '{"order": [0]}'


def test_asked_again_it_answers_the_same_question() -> None:
    block = f"## Data\n```json\n{json.dumps({'stage': 'rank', 'edits': [{'support': 1}]})}\n```"
    messages = (Message("user", block), Message("assistant", "hm"), Message("user", "That reply cannot be used."))
    assert say(ScriptedModel("scripted/rules"), Request(messages=messages)).text == '{"order": [0]}'


def test_echo_repeats_the_last_user_message() -> None:
    request = Request(messages=(Message("user", "one"), Message("assistant", "two"), Message("user", "three four")))
    assert say(ScriptedModel("scripted/echo"), request) == Reply("three four", Usage(1, 4, 0, 2, 0.0))


def test_a_function_of_ones_own_plays_too_and_keeps_to_max_tokens() -> None:
    model = ScriptedModel("scripted/mine", lambda request: "a b c d", render="turns")
    reply = say(model, Request(prompt="x y", max_tokens=2))
    assert (reply.text, reply.finish, reply.usage.tokens) == ("a b", "length", 4)
    assert model.render == "turns"
    assert model.bound(Request(prompt="x y", max_tokens=2)) == (4, 0.0)


def test_noise_flips_its_share_of_answers_and_the_same_draw_repeats() -> None:
    model = ScriptedModel("scripted/rules?noise=0.25&seed=3")
    skill = Message("system", "- kind-01: azure")

    def draws() -> list[str]:
        return [
            say(model, Request(messages=(skill, Message("user", "kind-01: hello")), seed=draw)).text
            for draw in range(400)
        ]

    first = draws()
    assert first == draws()
    assert 0.17 < first.count("unknown") / 400 < 0.33
    assert set(first) == {"azure", "unknown"}
    assert not model.deterministic


def test_noise_leaves_the_optimizer_alone() -> None:
    block = f"## Data\n```json\n{json.dumps({'stage': 'rank', 'edits': []})}\n```"
    request = Request(messages=(Message("user", block),))
    assert say(ScriptedModel("scripted/rules?noise=1"), request).text == '{"order": []}'


def test_identity_tells_noise_but_not_latency() -> None:
    plain = ScriptedModel("scripted/rules")
    assert isinstance(plain, Model)
    assert plain.deterministic
    assert plain.identity == ScriptedModel("scripted/rules?latency=0.5").identity
    assert plain.identity != ScriptedModel("scripted/rules", noise=0.1).identity
    assert (
        ScriptedModel("scripted/rules?noise=0.1&seed=1").identity != ScriptedModel("scripted/rules?noise=0.1").identity
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scripted/ruls", "did you mean 'rules'"),
        ("scripted/rules?latncy=1", "did you mean 'latency'"),
        ("scripted/rules?latency=soon", "latency: .*valid number"),
        ("scripted/rules?noise=2", "noise must be a share from 0 to 1"),
        ("scripted/rules?latency=-1", "latency must be at least 0"),
    ],
)
def test_a_name_with_a_mistake_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ScriptedModel(name)
