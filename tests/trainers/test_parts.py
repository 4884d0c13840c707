"""Candidates of several parts, trained from end to end: a reference file, a program, a number."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Message, Request
from sharpen.core.item import Item
from sharpen.core.outcome import Outcome, scored
from sharpen.core.task import Attempt, Splits, Task
from sharpen.engine.replay import read_events
from sharpen.models.scripted import ScriptedModel, last_said
from sharpen.skill.kinds import number
from sharpen.tasks.codebook import Codebook
from sharpen.testing.jobs import make_setup, running_job
from sharpen.trainers.base import Trained
from sharpen.trainers.reflact.loop import ReflACT


class Thresholds(Task):
    """Readings that the part `limit.number` and the function in `rule.py` must tell apart: the truth is `x > 70`."""

    name = "thresholds"

    def splits(self) -> Splits:
        def items(split: str, shift: float) -> tuple[Item, ...]:
            values = [n * 2.5 + shift for n in range(40)]
            return tuple(
                Item(f"{split}-{n}", {"input": f"{x}"}, "high" if x > 70 else "low") for n, x in enumerate(values)
            )

        return Splits(items("train", 0.1), items("val", 0.2), items("test", 0.3))

    def seed(self) -> Candidate:
        rule = "def high(x, limit):\n    return x < limit\n"
        return Candidate({"SKILL.md": "Tell high from low.\n", "limit.number": "50  # 0 to 100\n", "rule.py": rule})

    async def rollout(self, item: Item, candidate: Candidate, attempt: Attempt) -> Outcome:
        request = Request(messages=(Message("user", item.text),), max_tokens=4)
        reply = await attempt.complete(request)
        names: dict[str, Any] = {}
        exec(compile(candidate["rule.py"], "rule.py", "exec"), names)
        said = "high" if names["high"](float(item.text), number(candidate["limit.number"]).value) else "low"
        right = said == item.reference
        trajectory = (*request.messages, Message("assistant", reply.text))
        return scored(item.id, right, answer=said, feedback="" if right else "wrong side", trajectory=trajectory)

    def answers(self, item: Item) -> tuple[str, ...]:
        return ()


def turn_the_sign(request: Request) -> str:
    """An optimizer that mends the program, and breaks its form at the same time with another edit."""
    data = json.loads(last_said(request).partition("```json")[2].partition("\n```")[0])
    if data["stage"] != "reflect" or "x < limit" not in data["other_parts"]["rule.py"]:
        return json.dumps({"edits": [], "order": [], "content": ""})
    good = {"op": "replace", "target": "x < limit", "content": "x > limit", "part": "rule.py", "support": 3}
    broken = {"op": "append", "content": "def (", "part": "rule.py", "support": 2}
    return json.dumps({"edits": [broken, good]})


def train(task: Task, folder: Path, models: dict[str, Any], **params: Any) -> Trained:
    async def go() -> Trained:
        async with running_job(make_setup(task, models), folder) as job:
            return await ReflACT(ReflACT.Params.model_validate(params)).train(job)

    return asyncio.run(go())


def test_a_program_and_a_number_are_trained_together(tmp_path: Path) -> None:
    models = {"target": ScriptedModel("scripted/echo"), "optimizer": ScriptedModel("own/optimizer", turn_the_sign)}
    trained = train(Thresholds(), tmp_path, models, epochs=12, batch_size=40, slow_update=False, meta_skill=False)
    assert "x > limit" in trained.best["rule.py"]
    assert 55 <= number(trained.best["limit.number"]).value <= 85
    revised = [event for event in read_events(tmp_path / "events.jsonl") if event["type"] == "revised"]
    assert "breaks_part" in {row["status"] for event in revised for row in event["report"]}


def test_a_reference_file_learns_while_the_main_document_stays(tmp_path: Path) -> None:
    class TwoParts(Codebook):
        def seed(self) -> Candidate:
            return Candidate({"SKILL.md": super().seed().text, "references/codes.md": "# Codes\n\n- kind-99: none\n"})

    models = {"target": ScriptedModel("scripted/rules"), "optimizer": ScriptedModel("scripted/rules")}
    for mode in ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch"):
        folder = tmp_path / mode
        trained = train(TwoParts(), folder, models, epochs=4, batch_size=40, proposers=[], update_mode=mode)
        assert trained.best["references/codes.md"].count("- kind-") > 12, mode
        assert "- kind-" not in trained.best.text.partition("<!-- SLOW_UPDATE_START -->")[0], mode
        assert trained.raw is not None and trained.raw > 0.5, mode
