"""The page of a run that trained policies: curves, the best measured again, and nothing about texts, items or gates."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sharpen.bench import tables
from sharpen.bench.layout import RunFolder
from sharpen.cli.app import run
from sharpen.report.page.document import page, pictures
from sharpen.report.page.gather import gather
from sharpen.report.page.marks import Area, Picture, Words

Policies = Callable[..., RunFolder]


def headings(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r"<h2>(.*?)</h2>", text)]


def words(picture: Picture) -> set[str]:
    return {mark.text for mark in picture.marks if isinstance(mark, Words)}


def test_a_policy_has_its_curve_and_no_sections_of_texts(policies: Policies, tmp_path: Path) -> None:
    folder = policies({"ppo": 480.0}, seeds=1)
    path = tmp_path / "page.html"
    assert run(["report", str(folder.path), "--html", str(path), "--plots", str(tmp_path / "plots")]) == 0
    text = path.read_text(encoding="utf-8")
    assert headings(text) == ["Verdict", "Test scores", "Learning curve", "Evaluations", "Time", "Settings"]
    assert "Honest best: 486.000 [474.000, 499.000], measured again on 100 episodes (fresh episodes)" in text
    assert "Normalised: 0.971 [0.946, 0.998]" in text and "raw score of 494.000" in text
    assert "skill" not in text
    assert [path.stem for path in (tmp_path / "plots").glob("*.svg")] == ["curves-000000000000"]


def test_the_best_is_marked_where_it_was_chosen_and_beside_it_what_it_came_to(policies: Policies) -> None:
    (picture,) = pictures(gather(policies({"ppo": 480.0}, seeds=1)))
    told = [mark.title for mark in picture.marks if isinstance(mark, Area)]
    assert "best, step 50000: 494" in told
    assert "best, measured again, step 50000: 486 [474, 499]" in told
    assert {"best", "best, measured again", "normalised", "50k"} <= words(picture)


def test_without_a_benchmark_nothing_is_normalised(policies: Policies) -> None:
    found = gather(policies({"ppo": 480.0, "a2c": 300.0}, benchmark=False))
    assert "normalised" not in page(found).lower()
    assert all("normalised" not in words(picture) for picture in pictures(found))


def test_a_policy_that_is_still_training_says_how_far_it_is(policies: Policies) -> None:
    text = page(gather(policies({"ppo": 480.0}, seeds=1, ended=False)))
    assert headings(text) == ["Verdict", "Learning curve", "Evaluations", "Time", "Settings"]
    assert "6 evaluations so far, no test yet." in text and "6 evaluations, the last at step 50,000" in text


def test_returns_of_several_tasks_meet_on_the_normalised_scale_alone(policies: Policies) -> None:
    """Raw returns of different games have no scale in common: they are neither pooled in a profile nor in a radar."""
    found = gather(policies({"ppo": 480.0, "a2c": 300.0}, seeds=3, tasks=("CartPole-v1", "Acrobot-v1", "Pong-v5")))
    made = {picture.name: picture for picture in pictures(found)}
    assert {"profile", "radar", "effects"} <= set(made)
    assert "normalised test score τ" in words(made["profile"])
    assert "difference in normalised test score" in words(made["effects"])
    assert all(
        "normalised" in words(picture) for name, picture in made.items() if name.startswith(("curves", "scores"))
    )
    text = page(found)
    assert text.count("Normalised: 22 is 0 and 500 is 1 (classic, 100 episodes).") >= 1
    plain = replace(found, jobs=tuple(replace(job, results={**job.results, "benchmark": None}) for job in found.jobs))
    assert not {"profile", "radar"} & {picture.name for picture in pictures(plain)}


@pytest.mark.parametrize(("arms", "tasks", "seeds"), [(1, 1, 1), (2, 1, 2), (8, 3, 2), (2, 40, 1)])
def test_pictures_stay_on_the_paper_with_few_and_many_arms_and_tasks(
    policies: Policies, all_inside: Callable[[Picture], None], arms: int, tasks: int, seeds: int
) -> None:
    folder = policies(
        {f"arm-{n}-with-a-rather-long-name": 100.0 * (n + 1) for n in range(arms)}, seeds,
        tasks=tuple(f"Task-{n}-NoFrameskip-v4-with-a-long-name" for n in range(tasks)),
    )  # fmt: skip
    found = gather(folder)
    for picture in pictures(found):
        all_inside(picture)
    assert "Verdict" in headings(page(found))


def test_a_best_that_was_chosen_by_another_metric_says_so(policies: Policies) -> None:
    folder = policies({"ppo": 480.0}, seeds=1)
    (story,) = folder.path.glob("jobs/*/events.jsonl")
    lines = [json.loads(line) for line in story.read_text().splitlines()]
    for line in lines:
        if line["type"] == "benchmark_stated":
            line["best_metric"] = "eval_length_mean"
    story.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = page(gather(folder))
    assert "chosen by eval_length_mean, which may flatter it; its mean return on val was 494.000 then" in told
    assert "raw score" not in told and "; on val 0." in told


def test_steps_of_a_policy_are_those_it_was_trained_for(policies: Policies) -> None:
    folder = policies({"ppo": 480.0, "a2c": 300.0}, seeds=1)
    rows = [tables.row(folder, job_id, about) for job_id, about in folder.manifest["jobs"].items()]
    assert [row["steps"] for row in rows] == [50_000, 50_000]
