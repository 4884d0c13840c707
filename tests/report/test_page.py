"""The page of a run: one file that opens offline, has what there is to say, and nothing that is not to be said."""

from __future__ import annotations

import html
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.text import Text

from sharpen.bench.layout import RunFolder
from sharpen.cli.app import run
from sharpen.core import redact
from sharpen.report.page import html as markup
from sharpen.report.page.document import page, pictures
from sharpen.report.page.gather import gather

STUDY = """
tasks:
  - {name: codebook, limit: 16}
  - {name: short-codebook, limit: 16}
trainers:
  - noop
  - {name: minibatch, params: {max_steps: 3}}
  - {name: reflact, label: "<i>evidence</i>", params: {epochs: 1, batch_size: 8}}
seeds: 2
models: {target: "scripted/rules?noise=0.1", optimizer: scripted/rules}
parallel: 2
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two tasks, three arms and two seeds, and a training."""
    home = tmp_path_factory.mktemp("page")
    (home / "study.yaml").write_text(STUDY, encoding="utf-8")
    assert run(["run", str(home / "study.yaml"), "--runs", str(home / "runs"), "--quiet"]) == 0
    train = ["train", "codebook", "--model", "scripted/rules", "--optimizer", "scripted/rules", "--limit", "24"]
    assert run([*train, "--runs", str(home / "runs"), "--quiet"]) == 0
    return home / "runs"


def single(runs: Path) -> Path:
    return next(path for path in runs.iterdir() if path.name.startswith("codebook-reflact"))


def headings(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r"<h2>(.*?)</h2>", text)]


class Nesting(HTMLParser):
    """Complains of a tag that is closed where another is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_study_has_every_section_and_refers_to_nothing_outside(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.html"
    assert run(["report", "study", "--runs", str(runs), "--html", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert headings(text) == [
        "Verdict", "Mind", "Leaderboard", "Effects", "Learning curves", "Performance profile", "Radar", "By type", "Spend",
        "Jobs",
    ]  # fmt: skip
    assert not re.search(r"https?://|<script|<link|<img|@import|url\(", text)
    assert all(target.startswith("#") for target in re.findall(r'(?:href|src)="([^"]*)"', text))
    assert "<i>evidence" not in text and "&lt;i&gt;evidence" in text
    nesting = Nesting()
    nesting.feed(text)
    assert nesting.open == []
    assert text.count("<summary><b>") >= 12


def test_a_training_shows_each_accepted_step_with_what_it_changed(runs: Path) -> None:
    folder = RunFolder(single(runs))
    found = gather(folder)
    text = page(found)
    assert headings(text) == [
        "Verdict", "Test scores", "Learning curve", "By type", "Candidates", "Steps", "Gate evidence", "Items by step",
        "Spend", "Settings",
    ]  # fmt: skip
    (job,) = found.jobs
    assert len(job.versions) > 1
    for version in job.versions:
        assert version.digest[:12] in text
    added = set(job.versions[1].candidate.text.splitlines()) - set(job.versions[0].candidate.text.splitlines())
    assert all(f'<span class="came">{html.escape(line)}</span>' in text for line in added if line.strip())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.7, 0.95])
def test_a_run_that_goes_on_has_a_page_without_what_is_not_there_yet(runs: Path, tmp_path: Path, share: float) -> None:
    for number, source in enumerate((runs / "study", single(runs))):
        folder = tmp_path / str(number)
        shutil.copytree(source, folder)
        for story in folder.glob("jobs/*/events.jsonl"):
            lines = story.read_bytes().splitlines(keepends=True)
            story.write_bytes(b"".join(lines[: int(share * len(lines))]))
        text = page(gather(RunFolder(folder)))
        assert "Verdict" in headings(text)
        assert not re.search(r"</h[23]>\s*(?:</(?:section|details)|<h[23])", text), "an empty heading"
        assert share > 0.9 or "Effects" not in headings(text)


def test_an_arm_without_a_run_at_its_end_does_not_keep_the_others_from_being_compared(
    runs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    shutil.copytree(runs / "study", folder)
    for job in gather(RunFolder(folder)).jobs:
        if job.arm == "minibatch":
            (folder / "jobs" / job.job_id / "events.jsonl").write_bytes(b"")
    found = gather(RunFolder(folder))
    assert [(one.old, one.new) for one in found.compared] == [("noop", "<i>evidence</i>")]
    text = page(found)
    assert "Not compared: minibatch has no run at its end." in text
    assert {"Effects", "Performance profile", "Radar"} <= set(headings(text))


def test_rebuild_and_a_page_beside_the_run(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "copy"
    shutil.copytree(single(runs), folder)
    for derived in folder.glob("jobs/*/results.json"):
        derived.unlink()
    assert run(["report", str(folder), "--rebuild", "--html"]) == 0
    assert (folder / "report.html").read_text(encoding="utf-8") == page(gather(RunFolder(folder)))
    assert list(folder.glob("jobs/*/results.json"))


def test_a_secret_that_was_seen_is_not_on_the_page(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "secret"
    shutil.copytree(single(runs), folder)
    monkeypatch.setattr(redact, "_known", set())
    redact.remember('hunter2&"very<secret')
    for part in folder.glob("jobs/*/checkpoints/*/parts/SKILL.md"):
        part.write_text(part.read_text(encoding="utf-8") + '\nhunter2&"very<secret\n', encoding="utf-8")
    text = page(gather(RunFolder(folder)))
    assert "hunter2" not in text and redact.BLANK in text


def test_plots_are_written_as_svg_and_png(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run(["report", str(single(runs)), "--plots", str(tmp_path / "plots")]) == 0
    names = {path.stem for path in (tmp_path / "plots").glob("*.svg")}
    assert names == {picture.name for picture in pictures(gather(RunFolder(single(runs))))}
    for path in (tmp_path / "plots").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG") and path.stem in names


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["--html", "study"], "ends in .html"), (["--html", "."], "is a folder"), (["--plots", __file__], "is a file")],
)
def test_names_that_can_not_be_meant(
    runs: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "study", "--runs", str(runs), *arguments]) == 2
    told = capsys.readouterr()
    assert complaint in told.err and told.out == ""


def test_colours_of_a_text_become_classes_and_its_words_are_escaped() -> None:
    text = Text("a <b> c")
    text.stylize("green bold", 2, 5)
    assert markup.of_text(text) == 'a <span class="came strong">&lt;b&gt;</span> c'
