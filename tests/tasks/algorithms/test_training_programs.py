"""Training programs without a model: a search improves one and can be resumed; the ready configuration is valid."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sharpen.bench.config import load
from sharpen.bench.layout import read_json
from sharpen.bench.runner import Session, build, prepare
from sharpen.engine.replay import read_events

CONFIG = Path(__file__).parents[3] / "configs" / "circle-packing.yaml"


def test_a_search_without_a_model_improves_a_program_and_a_resumed_one_runs_nothing_again(tmp_path: Path) -> None:
    params = {"iterations": 3, "num_proposals": 6, "proposers": ["syntax"], "finalists": 1, "batch_size": 1}
    config = load(
        None,
        {"task": {"name": "oscillator", "limit": 2}, "trainer": {"name": "basic-search", "params": params}},
    )
    folder, parts = prepare(config, tmp_path)
    assert asyncio.run(Session(parts, folder).run()) == "done"
    job = folder.job(parts.setup.spec.job_id)
    tested = read_json(job / "results.json")["test"]
    assert tested["best"]["mean"] > tested["initial"]["mean"]
    story = [{**event, "clock": None} for event in read_events(job / "events.jsonl")]
    assert asyncio.run(Session(build(config, folder), folder).run()) == "done"
    assert [{**event, "clock": None} for event in read_events(job / "events.jsonl")] == story


def test_the_ready_configuration_needs_no_model() -> None:
    parts = build(load(CONFIG))
    assert parts.setup.task.name == "circle-packing" and not parts.setup.models
    assert parts.how.caps.seconds == 600
