"""The embedded model: what is promised of its texts, and what happens when something goes wrong.

The first part needs no engine: a pretend one that keeps track of how every token was computed. The rest runs the real
model on a few short requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharpen.core.chat import Message, Request
from sharpen.core.errors import ModelError, ModelErrorKind, UsageError
from sharpen.models.base import Model
from sharpen.models.local import NAME, LocalModel
from sharpen.models.local_worker import BLOCK, Slots, cuts, reusable


class PretendEngine:
    """Caches as the real one does: it continues behind the longest common beginning, in batches of `BLOCK` tokens.

    `held` has, for every token of a slot, the token and the batch it was computed in.
    """

    def __init__(self) -> None:
        self.held: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        self.generate: list[int] = []

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt, slot = body["prompt"], self.held.setdefault(body["id_slot"], [])
        keep = 0
        if body["cache_prompt"]:
            while keep < min(len(slot), len(prompt) - 1) and slot[keep][0] == prompt[keep]:
                keep += 1
        del slot[keep:]
        for start in range(keep, len(prompt), BLOCK):
            end = min(start + BLOCK, len(prompt))
            slot.extend((token, (start, end)) for token in prompt[start:end])
        computed = list(slot)
        if body["max_tokens"]:
            slot.extend((token, (len(slot), len(slot) + 1)) for token in self.generate)
        return {"timings": {"cache_n": keep}, "computed": computed}


def one_request(prefixes: list[list[int]]) -> st.SearchStrategy[tuple[list[int], int]]:
    rest = st.lists(st.integers(0, 2), min_size=1, max_size=5).map(lambda base: (base * 30)[: 1 + 25 * len(base)])
    return st.tuples(st.sampled_from(prefixes), rest, st.booleans()).map(
        lambda drawn: (drawn[0] + drawn[1], len(drawn[0]) if drawn[2] else 0)
    )


PREFIXES = [[], [0] * 63, [0] * 64, [0] * 130, [0] * 128 + [1] * 50, [0] * 128 + [1] * 40 + [2] * 40, [1] * 200]


@given(st.lists(st.tuples(one_request(PREFIXES), st.lists(st.integers(0, 2), max_size=3)), min_size=1, max_size=8))
def test_history_never_shows_in_how_a_request_is_computed(
    story: list[tuple[tuple[list[int], int], list[int]]],
) -> None:
    engine = PretendEngine()
    slots = Slots(engine)
    for (tokens, head), generated in story:
        engine.generate = generated
        reply, ready = slots.complete(tokens, head, {"max_tokens": 8})
        bounds = [0, *cuts(head, len(tokens))]
        batches = [(start, end) for start, end in pairwise(bounds) for _ in range(start, end)]
        assert reply["computed"] == list(zip(tokens, batches, strict=True))
        assert ready < len(tokens)


def test_two_prefixes_stay_ready_side_by_side() -> None:
    slots = Slots(PretendEngine())
    first, second = [1] * 100, [2] * 100
    ready = [
        slots.complete([*prefix, item], 100, {"max_tokens": 1})[1] for item in (3, 4, 5) for prefix in (first, second)
    ]
    assert ready == [0, 0, 100, 100, 100, 100]


def test_changed_prefix_costs_only_what_follows_the_change() -> None:
    slots = Slots(PretendEngine(), count=1)
    slots.complete([*[1] * 200, 7], 200, {"max_tokens": 1})
    assert slots.complete([*[1] * 150, *[2] * 50, 7], 200, {"max_tokens": 1})[1] == 2 * BLOCK


@given(st.integers(0, 400), st.integers(1, 400))
def test_cuts_cover_everything_in_blocks_and_part_prefix_from_rest(head: int, total: int) -> None:
    found = cuts(head, total)
    steps = [end - start for start, end in zip([0, *found], found, strict=False)]
    assert found[-1] == total and all(0 < step <= BLOCK for step in steps)
    assert not 0 < head < total or head in found


@given(st.lists(st.integers(0, 1), max_size=150), st.lists(st.integers(0, 1), min_size=1, max_size=150), st.data())
def test_reusable_leaves_something_to_compute(held: list[int], wanted: list[int], data: st.DataObject) -> None:
    head = data.draw(st.integers(0, len(wanted)))
    held_cuts = cuts(data.draw(st.integers(0, len(held))), len(held)) if held else []
    reach = reusable(held, held_cuts, wanted, cuts(head, len(wanted)))
    assert 0 <= reach < len(wanted) and held[:reach] == wanted[:reach]


def prefix(pairs: str) -> str:
    lines = (pair.split("=") for pair in pairs.split())
    return "".join(f"User: {word}\nAssistant: {digits}\n" for word, digits in lines) + "User: "


NUMBERS = prefix("five=5 twelve=12 forty-two=42 seventy=70 eighteen=18 thirty-three=33 sixty-one=61 ninety=90")
PLURALS = prefix("cat=cats box=boxes baby=babies child=children knife=knives tooth=teeth lady=ladies bus=buses")
WORDS = [
    *((NUMBERS, word) for word in ("twenty-one", "two", "seventeen", "fifty-five", "five", "sixty")),
    *((PLURALS, word) for word in ("dog", "fox", "city", "dogma", "foot", "wolf")),
]
REQUESTS = [
    Request(prompt=f"{shared}{word}\nAssistant:", shared=len(shared), max_tokens=8, stop=("\n",))
    for shared, word in WORDS
]
OTHERS = [
    Request(prompt="Once upon a time", max_tokens=6),
    Request(messages=(Message("system", "Be brief."), Message("user", "Name a colour.")), shared=1, max_tokens=6),
    Request(prompt=f"{NUMBERS}eleven\nAssistant: 11\nUser: nine\nAssistant:", max_tokens=5, stop=("\n",)),
]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def model(runner: asyncio.Runner) -> Iterator[LocalModel]:
    """A model with one worker, open for the whole module."""
    model = LocalModel(workers=1)
    runner.run(model.open())
    yield model
    runner.run(model.close())


def test_same_text_whatever_ran_before_or_runs_beside(runner: asyncio.Runner, model: LocalModel) -> None:
    async def in_order() -> list[str]:
        return [(await model.complete(request)).text for request in REQUESTS]

    async def all_at_once(fresh: LocalModel) -> list[str]:
        """Backwards, the two prefixes in turn, strangers in between, two workers."""
        await fresh.open()
        order = [*range(len(REQUESTS))][::-1]
        order = [at for pair in zip(order[:6], order[6:], strict=True) for at in pair]
        mixed = [request for at in order for request in (REQUESTS[at], OTHERS[at % len(OTHERS)])]
        replies = await asyncio.gather(*map(fresh.complete, mixed))
        await fresh.close()
        return [reply.text for _, reply in sorted(zip(order, replies[::2], strict=True), key=lambda pair: pair[0])]

    first = runner.run(in_order())
    assert len(set(first)) > 6, "a model that always says the same would pass"
    assert runner.run(all_at_once(LocalModel(workers=2))) == first
    assert runner.run(in_order()) == first


def test_repeated_chats_and_prompts_without_a_hint_agree_too(runner: asyncio.Runner, model: LocalModel) -> None:
    first = [runner.run(model.complete(request)).text for request in OTHERS]
    assert [runner.run(model.complete(request)).text for request in OTHERS[::-1]][::-1] == first


def test_prefix_is_computed_once_and_reported(runner: asyncio.Runner, model: LocalModel) -> None:
    for request in REQUESTS[:2]:
        runner.run(model.complete(request))
    usage = runner.run(model.complete(REQUESTS[2])).usage
    assert usage.calls == 1 and usage.money == 0.0
    assert usage.prompt_tokens * 0.8 < usage.cached_tokens < usage.prompt_tokens


def test_stop_ends_the_text_before_the_stop(runner: asyncio.Runner, model: LocalModel) -> None:
    reply = runner.run(model.complete(REQUESTS[0]))
    assert reply.finish == "stop" and "\n" not in reply.text and reply.text.strip()
    assert reply.usage.completion_tokens < 8
    cut = runner.run(model.complete(Request(prompt="Once upon a time", max_tokens=3)))
    assert cut.finish == "length" and cut.usage.completion_tokens == 3


def test_shared_hint_does_not_change_the_tokens(runner: asyncio.Runner, model: LocalModel) -> None:
    request = REQUESTS[0]
    counts = {
        runner.run(model.complete(dataclasses.replace(request, shared=shared, max_tokens=1))).usage.prompt_tokens
        for shared in (0, request.shared, request.shared + 3)
    }
    assert len(counts) == 1


def test_seed_decides_at_a_temperature(runner: asyncio.Runner, model: LocalModel) -> None:
    def draw(seed: int | None) -> str:
        request = Request(prompt="Once upon a time", max_tokens=8, temperature=1.5, seed=seed)
        return runner.run(model.complete(request)).text

    assert draw(1) == draw(1) and draw(None) == draw(None)
    assert len({draw(seed) for seed in (1, 2, 2**32 - 1)}) > 1


def test_schema_shapes_the_reply(runner: asyncio.Runner, model: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "maximum": 99}, "old": {"type": "boolean"}},
        "required": ["age", "old"],
        "additionalProperties": False,
    }
    reply = runner.run(model.complete(Request(prompt="Describe a person: ", max_tokens=40, schema=schema)))
    assert set(json.loads(reply.text)) == {"age", "old"}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(prompt="a " * 5000), r"prompt has \d+ tokens; .* holds 4096"),
        (Request(prompt=""), "empty"),
        (Request(), "neither a prompt nor messages"),
        (Request(prompt="a", max_tokens=0), "max_tokens must be at least 1"),
        (Request(prompt="a", tools=({"name": "f"},)), "no tools"),
        (Request(prompt="lone surrogate \ud800"), "surrogate"),
    ],
)
def test_impossible_requests_are_refused(
    runner: asyncio.Runner, model: LocalModel, request_: Request, words: str
) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        runner.run(model.complete(request_))
    assert caught.value.kind is ModelErrorKind.BAD_REQUEST


def test_bound_is_never_passed(runner: asyncio.Runner, model: LocalModel) -> None:
    for request in (REQUESTS[0], OTHERS[1], Request(prompt="\U0001f600é" * 20, max_tokens=4)):
        assert runner.run(model.complete(request)).usage.tokens <= model.bound(request)[0]
    assert model.bound(Request(prompt="a" * 10**6))[0] == 4096


def test_abandoned_call_leaves_the_model_usable(runner: asyncio.Runner, model: LocalModel) -> None:
    async def abandon() -> str:
        long = asyncio.create_task(model.complete(Request(prompt="Once upon a time", max_tokens=20)))
        await asyncio.sleep(0.05)
        long.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await long
        return (await model.complete(REQUESTS[1])).text

    assert runner.run(abandon()) == runner.run(model.complete(REQUESTS[1])).text


def command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_killed_worker_fails_its_call_and_the_next_one_works(runner: asyncio.Runner) -> None:
    async def story() -> str:
        model = LocalModel(workers=1)
        await model.open()
        try:
            call = asyncio.create_task(model.complete(Request(prompt="Once upon a time", max_tokens=500)))
            await asyncio.sleep(0.2)
            (model_worker,) = (worker.process.pid for worker in model._all)
            os.kill(model_worker, signal.SIGKILL)
            with pytest.raises(ModelError, match="ended with code -9") as caught:
                await call
            assert caught.value.kind is ModelErrorKind.UNAVAILABLE
            return (await model.complete(REQUESTS[1])).text
        finally:
            await model.close()

    assert runner.run(story()).strip()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_die_with_a_killed_parent() -> None:
    program = """
import asyncio, sys
from sharpen.core.chat import Request
from sharpen.models.local import LocalModel
async def main():
    model = LocalModel(workers=1)
    await model.open()
    print(*(worker.process.pid for worker in model._all), flush=True)
    await model.complete(Request(prompt="Once upon a time", max_tokens=2000))
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert "local_worker" in command(worker)
        parent.kill()
    patience = time.monotonic() + 20
    while "local_worker" in command(worker) and time.monotonic() < patience:
        time.sleep(0.02)
    assert "local_worker" not in command(worker)


def test_file_that_is_no_model_is_a_usage_error(
    runner: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    monkeypatch.setenv("SHARPEN_WEIGHTS", str(broken))
    model = LocalModel(workers=1)
    with pytest.raises(UsageError, match=r"engine did not start with .*broken\.gguf"):
        runner.run(model.open())
    runner.run(model.close())


def test_settings_and_names_are_checked() -> None:
    with pytest.raises(UsageError, match=r"no setting 'worker' \(did you mean 'workers'\?\)"):
        LocalModel(worker=2)
    with pytest.raises(UsageError, match="workers must be at least 1"):
        LocalModel(workers=0)
    with pytest.raises(UsageError, match="context must be from 256 to 8192"):
        LocalModel(context=10)
    with pytest.raises(UsageError, match="unknown embedded model"):
        LocalModel("local/smollm3")


def test_identity_holds_what_changes_an_answer_and_not_the_workers() -> None:
    one, many = LocalModel(workers=1), LocalModel(workers=7)
    assert isinstance(one, Model) and one.name == NAME
    assert one.identity == many.identity != LocalModel(context=512).identity
    assert many.concurrency >= 7
