"""A checkpoint may come from anybody: its names stay inside its folder, and its links do not lead out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharpen.core.candidate import Candidate
from sharpen.core.errors import UsageError
from sharpen.engine import checkpoints


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    checkpoints.save(tmp_path, Candidate("be brief\n"), 1, {}, name="best")
    (tmp_path / "outside.md").write_text("kept outside\n")
    return tmp_path / "checkpoints" / "best"


@pytest.mark.parametrize("key", ["parts", "files"])
@pytest.mark.parametrize(
    "names",
    [
        ["../../../outside.md"], ["/etc/passwd"], ["a\0b"], ["..\\outside.md"], ["C:outside.md"], ["x\n.md"], [""], [7],
        "SKILL.md", {"SKILL.md": 1}, None,
    ],
)  # fmt: skip
def test_a_name_that_leads_out_is_refused(saved: Path, key: str, names: object) -> None:
    about = json.loads((saved / "metadata.json").read_text())
    (saved / "metadata.json").write_text(json.dumps(about | {key: names}))
    with pytest.raises(UsageError):
        checkpoints.load(saved)


def test_a_link_that_leads_out_is_refused(saved: Path, tmp_path: Path) -> None:
    (saved / "parts" / "SKILL.md").unlink()
    (saved / "parts" / "SKILL.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(UsageError, match="leads out"):
        checkpoints.load(saved)
    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / "SKILL.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(UsageError, match="leads out"):
        checkpoints.load(folder)


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / "long.md").write_text("be brief\n")
    (folder / "SKILL.md").symlink_to("long.md")
    assert checkpoints.load(folder).text == "be brief\n"


@pytest.mark.parametrize("text", ["[]", "7", "[" * 100_000, '"parts"'])
def test_metadata_that_are_no_mapping_say_nothing(saved: Path, text: str) -> None:
    (saved / "metadata.json").write_text(text)
    assert checkpoints.about(saved) == {}
