"""Defects B1 to B12 that trainers of this kind are known for, each with a test that shows what is right here instead."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.config import load
from sharpen.bench.layout import RunFolder
from sharpen.bench.runner import Session, build, prepare
from sharpen.core import redact
from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.errors import ModelError, ModelErrorKind, TooManyFailures
from sharpen.engine.job import Job
from sharpen.engine.replay import read_events
from sharpen.gates.strict import Strict
from sharpen.models.scripted import ScriptedModel
from sharpen.models.scripted_rules import rules
from sharpen.skill.document import regions
from sharpen.skill.edits import Edit, Op, Status, apply
from sharpen.tasks.codebook import Codebook, code_words
from sharpen.tasks.splitting import Deal
from sharpen.testing.http import FakeEndpoint, answer_with
from sharpen.testing.jobs import make_setup, running_job
from sharpen.testing.models import Watched
from sharpen.testing.trainers import left_behind
from sharpen.trainers.reflact.answers import Pattern
from sharpen.trainers.reflact.loop import ReflACT
from sharpen.trainers.reflact.memory import belonging

SETTINGS: dict[str, Any] = {
    "task": {"name": "codebook", "limit": 16},
    "models": {"target": "scripted/rules", "optimizer": "scripted/rules"},
    "trainer": {"params": {"epochs": 2, "batch_size": 8, "minibatch_size": 3, "screen_items": 8}},
}
KNOWING = Candidate("\n".join(f"- {kind}: {word}" for kind, word in code_words().items()))


def trained(home: Path, settings: dict[str, Any] = SETTINGS) -> Session:
    folder, parts = prepare(load(None, settings), home)
    session = Session(parts, folder)
    assert asyncio.run(session.run()) == "done"
    return session


def resumed(folder: RunFolder, settings: dict[str, Any] = SETTINGS, **models: Any) -> Session:
    parts = build(load(None, settings), folder)
    setup = dataclasses.replace(parts.setup, models={**parts.setup.models, **models})
    session = Session(dataclasses.replace(parts, setup=setup), folder)
    assert asyncio.run(session.run()) == "done"
    return session


@pytest.mark.parametrize(
    "variable", ["SHARPEN_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "QWEN_CHAT_API_KEY", "MINIMAX_API_KEY"]
)
def test_b1_no_key_of_any_kind_is_in_any_file_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """B1: whoever holds the key, and though the optimizer itself repeats it."""
    key = f"zq-{variable.lower()}-4711"
    monkeypatch.setenv(variable, key)
    used = key if variable in ("SHARPEN_API_KEY", "OPENAI_API_KEY") else None

    def telling(request: Request) -> str:
        return json.dumps({"edits": [{"op": "append", "content": f"The key is {key}."}], "summary": key})

    try:
        with FakeEndpoint(answer_with(rules), key=used).in_thread() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            models = {"target": f"{server.url}#rules", "optimizer": "scripted/rules"}
            params = {"epochs": 1, "max_steps": 1, "gate": "force", "proposers": []}
            settings = {**SETTINGS, "models": models, "trainer": {"params": params}}
            folder, _ = prepare(load(None, settings), tmp_path)
            resumed(folder, settings, optimizer=ScriptedModel("own/telling", telling))
        assert server.requests > 16
        written = [path for path in folder.path.rglob("*") if path.is_file()]
        assert any(path.name == "ledger.db" for path in written) and len(written) > 8
        assert [str(path) for path in written if key.encode() in path.read_bytes()] == []
        story = next(path for path in written if path.name == "events.jsonl")
        assert "The key is [redacted]." in story.read_text(), "it was told, and blanked"
    finally:
        redact._known.discard(key)


def test_b2_b7_a_baseline_of_nought_survives_a_resume(tmp_path: Path) -> None:
    """B2, B7: 0.0 is a score like any other: it is neither measured again nor forgotten."""
    session = trained(tmp_path)
    results = session.job_folder / "results.json"
    before = json.loads(results.read_text())
    assert before["test"]["initial"]["mean"] == 0.0
    story = (session.job_folder / "events.jsonl").read_bytes()
    lines = story.splitlines(keepends=True)
    decided = next(n for n, line in enumerate(lines) if json.loads(line)["type"] == "decided")
    (session.job_folder / "events.jsonl").write_bytes(b"".join(lines[: decided + 1]))
    watched = {role: Watched(model) for role, model in session.parts.setup.models.items()}
    again = resumed(session.folder, **watched)
    after = json.loads(results.read_text())
    assert after["test"]["initial"]["mean"] == 0.0 and {**after, "clock": 0} == {**before, "clock": 0}
    assert sum(model.calls for model in watched.values()) == 0, "nothing is measured again"
    assert again.job_folder == session.job_folder


def test_b3_a_crash_within_the_gate_never_lends_one_candidates_scores_to_another(tmp_path: Path) -> None:
    """B3: what was measured before the crash belongs to the candidate it was measured with, whoever comes next."""
    task, calls = Codebook(Deal(limit=16)), 0

    def crashing(request: Request) -> str:
        nonlocal calls
        calls += 1
        if calls > 24:  # in the middle of the second arm
            raise KeyboardInterrupt
        return rules(request)

    async def judge(new: Candidate, target: ScriptedModel) -> tuple[bool, float | None]:
        async with running_job(make_setup(task, {"target": target}), tmp_path) as job:
            found = await job.compare(new, task.seed(), job.splits.val, Strict(), step=1)
            return found.verdict.accepted, found.new_score

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(judge(KNOWING, ScriptedModel("scripted/rules", crashing)))
    (tmp_path / "events.jsonl").unlink()
    useless = Candidate("- kind-99: nothing")
    assert asyncio.run(judge(useless, ScriptedModel("scripted/rules"))) == (False, 0.0)
    (tmp_path / "events.jsonl").unlink()
    assert asyncio.run(judge(KNOWING, ScriptedModel("scripted/rules"))) == (True, 1.0)


def test_b4_the_same_seed_gives_the_same_bytes_whatever_finishes_first(tmp_path: Path) -> None:
    """B4: minibatches, merges and the story do not follow the order in which answers come in."""
    found = []
    for salt in (1, 2):
        folder, parts = prepare(load(None, SETTINGS), tmp_path / str(salt))
        models = {role: Watched(m, jitter=0.01, salt=salt) for role, m in parts.setup.models.items()}
        found.append(left_behind(resumed(folder, **models).job_folder))
    assert found[0] == found[1]


class TestB5:
    """B5: an edit is applied exactly as it says or not at all."""

    text = "# Skill\n\n- before\n\n<!-- SLOW_UPDATE_START -->\nkept\n<!-- SLOW_UPDATE_END -->\n\n- after\n"

    @pytest.mark.parametrize(
        "target",
        ["- before\n\n<!-- SLOW_UPDATE_START -->", "kept", "- before\n\n<!-- SLOW", "END -->\n\n- after", "kept\n<!--"],
    )
    @pytest.mark.parametrize("op", [Op.REPLACE, Op.DELETE])
    def test_b5_an_edit_that_begins_outside_a_protected_block_does_not_swallow_its_marker(
        self, op: Op, target: str
    ) -> None:
        revision = apply(Candidate(self.text), [Edit(op, "new" if op is Op.REPLACE else "", target)])
        assert revision.after.text == self.text and len(regions(self.text)) == 1
        assert revision.rows[0].status in (Status.PROTECTED, Status.MARKER)

    def test_b5_a_missing_target_is_not_appended_instead(self) -> None:
        revision = apply(Candidate(self.text), [Edit(Op.INSERT_AFTER, "- new", "- not there")])
        assert not revision.changed and revision.rows[0].status is Status.NOT_FOUND


def with_optimizer(folder: Path, optimizer: Any, **params: Any) -> list[dict[str, Any]]:
    """The events of a training of one step whose optimizer is this function."""
    settings = {"epochs": 1, "max_steps": 1, "batch_size": 16, "proposers": (), "screen_items": 0, **params}

    async def go() -> None:
        models = {"target": ScriptedModel("scripted/rules"), "optimizer": ScriptedModel("own/optimizer", optimizer)}
        async with running_job(make_setup(Codebook(Deal(limit=16)), models), folder) as job:
            await ReflACT(ReflACT.Params.model_validate(settings)).train(job)

    asyncio.run(go())
    return read_events(folder / "events.jsonl")


def test_b6_budget_control_none_means_that_no_edit_is_left_out(tmp_path: Path) -> None:
    """B6: also in patch mode, and whatever the schedule says."""
    seven = json.dumps({"edits": [{"op": "append", "content": f"- rule {n}"} for n in range(7)]})
    for control, expected in (("none", 7), ("fixed", 2)):
        params = {"minibatch_size": 16, "budget_control": control, "edit_budget": 2, "schedule": "constant"}
        events = with_optimizer(tmp_path / control, lambda request: seven, **params)
        (revised,) = (event for event in events if event["type"] == "revised")
        assert len(revised["report"]) == expected


def test_b8_a_pattern_names_only_items_its_own_reader_was_shown(tmp_path: Path) -> None:
    """B8: the label of one group never lands on another, though every reader claims all items."""
    everything = [item.id for item in Codebook(Deal(limit=16)).splits().train]

    def boasting(request: Request) -> str:
        said = request.messages[-1].content
        own = next(id for id in everything if f'"{id}"' in said)
        patterns = [
            {"pattern": f"seen by the reader of {own}", "items": everything},
            {"pattern": "air", "items": ["?"]},
        ]
        return json.dumps({"edits": [], "patterns": patterns})

    (reflected,) = (e for e in with_optimizer(tmp_path, boasting, minibatch_size=4) if e["type"] == "reflected")
    assert len(reflected["readings"]) == 4
    for reading in reflected["readings"]:
        (pattern,) = reading["patterns"]
        assert sorted(pattern["items"]) == sorted(reading["items"]) and pattern["count"] == 4
    assert belonging([Pattern(pattern="arithmetic", items=["a"])], ["timeout-1"]) == ()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.55, 0.9, 0.999])
def test_b9_b11_a_story_torn_anywhere_is_carried_on_and_no_step_is_told_twice(tmp_path: Path, share: float) -> None:
    """B9, B11: there is one file to tear, every line of it is whole or gone, and everything else is made from it."""
    session = trained(tmp_path)
    whole, story = left_behind(session.job_folder), session.job_folder / "events.jsonl"
    content = story.read_bytes()
    story.write_bytes(content[: int(len(content) * share)])
    (session.job_folder / "results.json").write_text('{"status": "do')
    assert left_behind(resumed(session.folder).job_folder) == whole
    steps = [event["step"] for event in read_events(story) if event["type"] == "step_done"]
    assert steps == list(range(1, len(steps) + 1))


def test_b12_a_failure_is_never_a_nought_and_is_tried_again_on_resume(tmp_path: Path) -> None:
    """B12: an item whose call failed has no score, is in no mean and not in the ledger."""
    task, broken = Codebook(Deal(limit=16)), True
    unlucky = {item.text for item in task.splits().val[:3]}

    def target(request: Request) -> str:
        if broken and request.messages[-1].content in unlucky:
            raise ModelError(ModelErrorKind.BAD_REQUEST, "not now")
        return rules(request)

    async def measure(share: float) -> tuple[float | None, list[float | None], int]:
        model = Watched(ScriptedModel("scripted/rules", target))
        async with running_job(make_setup(task, {"target": model}), tmp_path, max_failures=share) as job:  # type: ignore[dict-item]
            return await _mean(job, model)

    async def _mean(job: Job, model: Watched) -> tuple[float | None, list[float | None], int]:
        found = await job.evaluate(KNOWING, job.splits.val, purpose="gate")
        return found.mean, list(found.hard)[:4], model.calls

    with pytest.raises(TooManyFailures, match="3 of 16 rollouts failed"):
        asyncio.run(measure(0.1))
    assert asyncio.run(measure(0.5)) == (1.0, [None, None, None, 1.0], 3)
    broken = False
    (tmp_path / "events.jsonl").unlink()
    assert asyncio.run(measure(0.1)) == (1.0, [1.0, 1.0, 1.0, 1.0], 3), "only what failed is asked for again"
