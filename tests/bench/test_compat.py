"""The classic files of a job: each says what the events say, for a finished job and for one that stopped anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sharpen.bench.compat import Source, files, open_source
from sharpen.bench.compat.story import spans
from sharpen.bench.config import load
from sharpen.bench.runner import Session, make_task, prepare
from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.core.usage import NOTHING, Usage

Line = dict[str, Any]

TASK = '''
from dataclasses import replace
from sharpen.tasks.codebook import Codebook

class Halves(Codebook):
    """Soft is never below a half, so that it can't be taken for hard."""
    sizes = (40, 40, 40)

    async def rollout(self, item, candidate, attempt):
        outcome = await super().rollout(item, candidate, attempt)
        return replace(outcome, soft=0.5 + outcome.hard / 2)
'''
EVERYTHING = {
    "epochs": 3, "batch_size": 10, "accumulation": 2, "minibatch_size": 4, "budget_control": "autonomous",
    "gate_metric": "mixed", "longitudinal_pair_policy": "changed", "slow_update_samples": 10, "skill_aware": True,
    "consolidate_threshold": 4, "proposers": [],
}  # fmt: skip
RUNS: dict[str, dict[str, Any]] = {
    "everything": EVERYTHING,
    "suggestions": {**EVERYTHING, "update_mode": "rewrite_from_suggestions", "gate": "strict", "epochs": 2},
    "rewritings": {"epochs": 2, "batch_size": 10, "update_mode": "full_rewrite_minibatch", "slow_update_gate": False},
    "forced": {"epochs": 2, "batch_size": 20, "gate": "force"},
}


@dataclass(frozen=True)
class Told:
    """A job's source and the files made of it."""

    source: Source
    texts: dict[str, str]

    def json(self, name: str) -> Any:
        return json.loads(self.texts[name])

    def rows(self, name: str) -> list[Line]:
        return [json.loads(line) for line in self.texts[name].splitlines()]

    def events(self, kind: str) -> list[Line]:
        return [line for line in self.source.lines if line["type"] == kind]

    def digest_of(self, name: str) -> str | None:
        return Candidate(self.texts[name]).digest if name in self.texts else None


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Told]]:
    home = tmp_path_factory.mktemp("compat")
    (home / "halves.py").write_text(TASK)
    found, held = {}, []
    for name, params in RUNS.items():
        noise = "?noise=0.1" if name == "everything" else ""
        models = {"target": f"scripted/rules{noise}", "optimizer": "scripted/rules"}
        task = f"{home / 'halves.py'}:Halves"
        config = load(None, {"task": task, "models": models, "trainer": {"params": params}})
        run, parts = prepare(config, home / name)
        asyncio.run(Session(parts, run).run())
        opened = open_source(run.jobs()[0], run.ledger, make_task(config.task).splits(), models)
        held.append(opened)
        source = opened.__enter__()
        found[name] = Told(source, files(source))
    yield found
    for opened in held:
        opened.__exit__(None, None, None)


@pytest.fixture(params=list(RUNS))
def told(request: pytest.FixtureRequest, trained: dict[str, Told]) -> Told:
    return trained[request.param]


@pytest.fixture
def everything(trained: dict[str, Told]) -> Told:
    return trained["everything"]


def test_the_runs_reach_what_is_to_be_told(trained: dict[str, Told]) -> None:
    """If this fails, the tests below have become easier than they look."""
    actions = {done["action"] for told in trained.values() for done in told.events("step_done")}
    assert {"accept", "draft"} <= actions
    assert any(action.startswith("skip") for action in actions)
    kinds = {line["type"] for told in trained.values() for line in told.source.lines}
    assert {"notes_kept", "slow_updated", "meta_skill_written", "budget_chosen", "promoted"} <= kinds
    slow = {line["action"] for told in trained.values() for line in told.events("slow_updated")}
    assert {"accept", "reject", "force_accept"} <= slow


def test_every_line_belongs_to_one_piece(told: Told) -> None:
    assert [line for span in spans(told.source.lines) for line in span.lines] == list(told.source.lines)


def test_every_text_is_the_one_that_was_measured(told: Told) -> None:
    current = {done["step"]: done["current"] for done in [*told.events("step_done"), *told.events("epoch_done")]}
    for step, candidate in {0: told.source.started["candidate"], **current}.items():
        assert told.digest_of(f"skills/skill_v{step:04d}.md") == candidate
    for line in told.events("revised"):
        assert told.digest_of(f"steps/step_{line['step']:04d}/candidate_skill.md") == line["candidate"]
    for line in told.events("slow_updated"):
        assert told.digest_of(f"slow_update/epoch_{line['epoch']:02d}/candidate_skill.md") == line["candidate"]
    assert told.digest_of("best_skill.md") == told.events("best_confirmed")[0]["candidate"]


def test_a_record_says_what_the_events_say(told: Told) -> None:
    history = told.json("history.json")
    assert [record["step"] for record in history] == [done["step"] for done in told.events("step_done")]
    reflected = {line["step"]: line for line in told.events("reflected")}
    decided = {line["new"]: line for line in told.events("decided")}
    for record, done in zip(history, told.events("step_done"), strict=True):
        assert record == told.json(f"steps/step_{done['step']:04d}/step_record.json")
        assert (record["rollout_hard"], record["rollout_soft"]) == (done["batch_score"], done["batch_soft"])
        assert record["sharpen"]["action"] == done["action"]
        if done["step"] in reflected:
            batches = [[b["n_envs"], b["hard"], b["soft"]] for b in record["accumulation_batches"]]
            assert batches == [batch[:3] for batch in reflected[done["step"]]["batches"]]
            readings = reflected[done["step"]]["readings"]
            assert record["n_patches"] == sum(reading["changes"] > 0 for reading in readings)
        if record["sharpen"]["decision"] is not None:
            told_effect = decided[record["sharpen"]["candidate"]]
            assert record["sharpen"]["decision"]["effect"] == told_effect["effect"]


def test_the_gate_score_is_the_one_the_gate_went_by(told: Told) -> None:
    saved = {
        line["candidate"]: line["metrics"]["val"] for line in told.events("checkpointed") if "val" in line["metrics"]
    }
    accepted = [r for r in told.json("history.json") if r["sharpen"]["action"] == "accept"]
    assert accepted
    for record in accepted:
        assert record["candidate_gate_score"] == pytest.approx(saved[record["sharpen"]["candidate"]])


def test_actions_have_their_classic_names(trained: dict[str, Told]) -> None:
    known = {"accept_new_best", "accept", "reject", "skip_no_patches", "skip_no_rewrite"}
    ours = {"skip_no_promise", "skip_no_change", "skip_leak", "skip_tried"}
    for name, told in trained.items():
        for record in told.json("history.json"):
            action = record["action"]
            assert action in known | ours | ({"force_accept"} if name == "forced" else set())
            assert (action == "accept_new_best") == (record["sharpen"]["action"] == "accept" and name != "forced"
                                                     and record["best_step"] == record["step"])  # fmt: skip
            assert (action == "reject") == (record["sharpen"]["action"] in ("reject", "draft"))


def test_every_step_is_counted_once(told: Told) -> None:
    summary, done = told.json("summary.json"), told.events("step_done")
    stats = summary["epoch_stats"]
    skips = sum(line["action"].startswith("skip") for line in done)
    assert summary["total_skips"] == skips == sum(epoch["skips"] for epoch in stats)
    assert summary["total_accepts"] == sum(line["action"] == "accept" for line in done)
    assert summary["total_steps"] == len(done) == sum(epoch["steps"] for epoch in stats)
    assert summary["total_steps"] == sum(summary[f"total_{how}"] for how in ("accepts", "rejects", "skips"))
    for epoch, ended in zip(stats, told.events("epoch_done"), strict=True):
        assert epoch["best_score_at_epoch_end"] == ended["best_score"]
        assert epoch["current_score_at_epoch_end"] == ended["current_score"]


def test_tokens_add_up_to_what_the_job_used(told: Told) -> None:
    summary = told.json("summary.json")["token_summary"]
    rows = [row for roles in told.events("job_ended")[0]["usage"].values() for row in roles.values()]
    used = sum(map(Usage.from_told, rows), NOTHING)
    assert (summary["_total"]["calls"], summary["_total"]["total_tokens"]) == (used.calls, used.tokens)
    stages = [stage for name, stage in summary.items() if name != "_total"]
    assert sum(stage["total_tokens"] for stage in stages) == used.tokens
    purposes = summary["rollout"]["by_purpose"]
    assert {"train", "gate", "confirm", "test"} <= set(purposes)
    assert sum(part["calls"] for part in purposes.values()) == summary["rollout"]["calls"]
    epochs = sum(epoch["sharpen"]["tokens"]["_total"]["calls"] for epoch in told.json("summary.json")["epoch_stats"])
    after = sum(purposes.get(name, {"calls": 0})["calls"] for name in ("confirm", "test", "promote"))
    promoting = sum(row[0] for line in told.events("measured") if (line["stage"], line["purpose"]) == ("promote", "gate")
                    for row in line["usage"].values())  # fmt: skip
    assert epochs == used.calls - after - promoting


def first_draws(told: Told, candidate: str) -> dict[str, tuple[float, float]]:
    """Hard and soft on the deciding items, read from the events in another way than the code does."""
    found = {}
    val = [item.id for item in told.source.splits.val] if told.source.splits else []
    for line in told.events("measured"):
        for group in line["groups"]:
            if line["purpose"] in ("gate", "promote") and (group["candidate"], group["sample"]) == (candidate, 0):
                items = val if group["items"] == "val" else group["items"]
                soft = group["soft"] or group["hard"]
                found |= {item: (group["hard"][n], soft[n]) for n, item in enumerate(items)}
    return found


def test_selection_scores_are_hard_and_of_all_items_or_absent(trained: dict[str, Told]) -> None:
    seen = set()
    for told in trained.values():
        summary, deciding = told.json("summary.json"), told.events("planned")[0]["deciding"]
        roles = {"baseline": told.source.started["candidate"], "best": told.events("best_confirmed")[0]["candidate"]}
        for role, candidate in roles.items():
            draws, said = first_draws(told, candidate), summary[f"{role}_selection_hard"]
            seen.add((role, said is None))
            if len(draws) < deciding:
                assert said is None
            else:
                assert said == pytest.approx(sum(hard for hard, _ in draws.values()) / deciding)
    assert {("baseline", False), ("best", False)} <= seen


def test_with_a_mixed_metric_the_best_hard_score_is_still_hard(everything: Told) -> None:
    summary = everything.json("summary.json")
    best, score = summary["best_selection_hard"], summary["sharpen"]["best_score"]
    digest = everything.events("step_done")[-1]["best"]
    measured = [group for line in everything.events("measured") if line["purpose"] in ("gate", "promote")
                for group in line["groups"] if group["candidate"] == digest and group["sample"] == 0]  # fmt: skip
    whole = [group["hard"] for group in measured if isinstance(group["items"], str)]  # a split's name: all of its items
    known = {item: score for group in measured for item, score in zip(group["items"], group["hard"], strict=not whole)}
    hard = whole[-1] if whole else list(known.values())
    assert best == pytest.approx(sum(hard) / len(hard)) and best < score < 1.0
    assert summary["sharpen"]["best_confirmed"]["value"] == everything.events("best_confirmed")[0]["value"]


def test_test_scores_come_with_rows_types_and_intervals(told: Told) -> None:
    summary = told.json("summary.json")
    tested = {line["which"]: line for line in told.events("tested")}
    for which, name, field in (("initial", "test_eval_baseline", "baseline_test"), ("best", "test_eval", "test"),
                               ("final", "test_eval_final", "final_test")):  # fmt: skip
        rows, types = told.rows(f"{name}/results.jsonl"), told.json(f"{name}/summary.json")
        assert len({row["id"] for row in rows}) == len(rows) == sum(row["total"] for row in types.values()) == 40
        assert summary[f"{field}_hard"] == pytest.approx(tested[which]["score"][0])
        assert summary[f"{field}_soft"] == pytest.approx(sum(row["soft"] for row in rows) / 40)
        right = sum(row["hard"] for row in rows if row["task_type"] == "kind-03")
        assert types["kind-03"]["hard_acc"] == pytest.approx(right / types["kind-03"]["total"])
    gained = {line["new"]: line for line in told.events("gained")}
    assert summary["test_delta_hard"] == gained["best"]["mean"]
    assert summary["sharpen"]["test_delta_hard"]["best"]["low"] == gained["best"]["low"]


def test_rows_hold_what_the_agent_said(everything: Told) -> None:
    (group,) = next(line for line in everything.events("measured") if line["purpose"] == "train")["groups"]
    rows = everything.rows("steps/step_0001/rollout/results.jsonl")
    assert [(row["id"], row["hard"]) for row in rows] == list(zip(group["items"], group["hard"], strict=True))
    assert {row["batch_idx"] for row in rows} == {0, 1}
    assert all(row["predicted_answer"] and row["task_description"].startswith(row["task_type"]) for row in rows)
    assert all(bool(row["fail_reason"]) == (row["hard"] < 1) for row in rows)
    said = everything.rows("steps/step_0001/rollout/conversations.jsonl")
    assert [row["conversation"][-1]["content"] for row in said] == [row["predicted_answer"] for row in rows]


def test_answers_are_found_for_every_attempt_with_drafts_too(told: Told) -> None:
    """The text of a draft that notes were added to is nowhere saved, and without it no attempt with it can be looked up."""
    written = [name for name in told.texts if name.endswith("results.jsonl")]
    assert all("predicted_answer" in row for name in written for row in told.rows(name))


def test_the_long_view_is_told_pair_by_pair(everything: Told) -> None:
    line = everything.events("slow_updated")[-1]
    home = f"slow_update/epoch_{line['epoch']:02d}"
    result, pairs = everything.json(f"{home}/slow_result.json"), everything.json(f"{home}/comparison_pairs.json")
    assert [pair["id"] for pair in pairs] == [pair[0] for pair in line["pairs"]]
    every = everything.json(f"{home}/comparison_pairs_all.json")
    assert len(every) == line["tried"]
    assert all(pair in every for pair in pairs)
    assert {pair["category"] for pair in every} <= {"improved", "regressed", "persistent_fail", "stable_success"}
    assert result["prev_hard"] == pytest.approx(sum(pair["prev_hard"] for pair in every) / len(every))
    assert result["slow_update_content"] == line["content"]
    written = everything.events("meta_skill_written")[-1]
    meta = everything.json(f"meta_skill/epoch_{written['epoch']:02d}/meta_skill_result.json")
    assert meta["meta_skill_content"] == written["content"]


def test_edits_and_budgets_of_a_step_are_told(everything: Told) -> None:
    for line in everything.events("revised"):
        home = f"steps/step_{line['step']:04d}"
        rows = everything.json(f"{home}/edit_apply_report.json")
        assert [row["status"].startswith("applied") for row in rows] == [
            row["status"] == "applied" for row in line["report"]
        ]
        new = line["edits"][-len(rows) :]
        assert [edit["content"] for edit in everything.json(f"{home}/ranked_edits.json")["edits"]] == [
            edit["content"] for edit in new
        ]
    chosen = [line["budget"] for line in everything.events("budget_chosen")]
    assert [row["learning_rate"] for row in everything.rows("lr_history.jsonl")] == chosen
    noted = everything.events("notes_kept")[0]
    assert everything.json(f"steps/step_{noted['step']:04d}/appendix_notes.json")["appendix_notes_added"] == len(
        noted["added"]
    )


@pytest.mark.parametrize(
    ("run", "name", "key"),
    [
        ("suggestions", "rewrite_result", "revise_suggestions"),
        ("rewritings", "full_rewrite_result", "skill_candidates"),
    ],
)
def test_rewritings_are_told_as_such(trained: dict[str, Told], run: str, name: str, key: str) -> None:
    told = trained[run]
    written = [line for line in told.events("revised") if line["texts"]]
    assert written
    for line in written:
        home = f"steps/step_{line['step']:04d}"
        result = told.json(f"{home}/{name}.json")
        assert result["new_skill"] == line["texts"]["SKILL.md"] == told.texts[f"{home}/candidate_skill.md"]
        assert told.json(f"{home}/merged_patch.json")[key]
        assert f"{home}/edit_apply_report.json" not in told.texts


def test_wherever_a_job_stopped_its_files_say_what_was_known_by_then(everything: Told) -> None:
    lines = everything.source.lines
    whole = everything.json("history.json")
    for end in [*range(1, len(lines), 11), len(lines) - 1]:
        cut = replace(everything.source, lines=lines[:end], ledger=None)
        texts = files(cut)
        done = [line for line in lines[:end] if line["type"] == "step_done"]
        assert json.loads(texts["history.json"]) == whole[: len(done)]
        state, summary = json.loads(texts["runtime_state.json"]), json.loads(texts["summary.json"])
        assert state["last_completed_step"] == len(done)
        assert summary["sharpen"]["status"] == "unfinished"
        assert (summary["test_hard"] is None) == ("test_eval/results.jsonl" not in texts)
        assert "best_skill.md" in texts or end < 3


def test_of_a_step_that_was_not_finished_there_is_what_there_is(everything: Told) -> None:
    lines = everything.source.lines
    at = next(n for n, line in enumerate(lines) if line["type"] == "revised")
    texts = files(replace(everything.source, lines=lines[: at + 1]))
    home = "steps/step_0001"
    there = {name for name in ("rollout/results.jsonl", "merged_patch.json", "candidate_skill.md", "step_record.json")
             if f"{home}/{name}" in texts}  # fmt: skip
    assert there == {"rollout/results.jsonl", "merged_patch.json", "candidate_skill.md"}


def test_without_task_and_ledger_the_numbers_are_the_same(everything: Told) -> None:
    bare = files(replace(everything.source, splits=None, ledger=None))
    assert json.loads(bare["summary.json"]) == everything.json("summary.json")
    row = json.loads(bare["test_eval/results.jsonl"].splitlines()[0])
    assert (row["id"], "predicted_answer" in row) == (None, False)


def test_a_failed_rollout_has_no_score_and_says_why(everything: Told) -> None:
    lines = json.loads(json.dumps(list(everything.source.lines)))
    group = next(line for line in lines if line["type"] == "measured")["groups"][0]
    group["hard"][0] = group["soft"][0] = None
    group["failed"] = {group["items"][0]: ["timeout", "no end after 600 s", {}]}
    row = json.loads(
        files(replace(everything.source, lines=lines))["steps/step_0001/rollout/results.jsonl"].splitlines()[0]
    )
    assert (row["hard"], row["soft"], row["error"]) == (None, None, "timeout")


def test_only_the_jobs_own_items_are_used(everything: Told, tmp_path: Path) -> None:
    folder, splits = everything.source.folder, everything.source.splits
    assert splits is not None
    other = replace(splits, val=splits.val[1:])
    with open_source(folder, tmp_path / "no.db", other) as source:
        assert (source.splits, source.ledger) == (None, None)


def test_a_job_of_another_trainer_has_no_such_files(everything: Told, tmp_path: Path) -> None:
    started = {**everything.source.lines[0], "trainer": "other"}
    (tmp_path / "events.jsonl").write_text(json.dumps(started) + "\n")
    with pytest.raises(UsageError, match="trained by other"), open_source(tmp_path, tmp_path / "no.db", None):
        pass
