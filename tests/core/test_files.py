"""Files are written whole or not at all, lines are appended whole, and a disk that won't take them is named."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.core.errors import StorageError
from sharpen.files import append_line, complete_lines, storage_error, sweep, write_atomic, write_json
from sharpen.testing.ledgers import small_disk


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.txt"
    write_atomic(path, "ß\r\n")
    assert path.read_bytes() == "ß\r\n".encode()
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_in_between_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "file.txt"
    write_atomic(path, "old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StorageError, match=r"cannot write .*file\.txt: the disk is full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_in_between_leaves_the_old_content(tmp_path: Path, step: str) -> None:
    path = tmp_path / "file.txt"
    write_atomic(path, "old")
    script = f"""
import os, signal
from pathlib import Path
from sharpen.files import write_atomic
os.{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_atomic(Path({str(path)!r}), "new")
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2, "the temporary file was left behind"
    sweep(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_json_is_written_for_reading_and_without_secrets(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "ß", "api_key": "anything"})
    assert (tmp_path / "a.json").read_text() == '{"name": "ß", "api_key": "[redacted]"}\n'
    with pytest.raises(ValueError):
        write_json(tmp_path / "b.json", float("nan"))
    assert not (tmp_path / "b.json").exists()


def opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


line = st.binary(max_size=30).filter(lambda text: b"\n" not in text)


@settings(max_examples=50)
@given(st.lists(line, max_size=6), st.data())
def test_a_file_cut_anywhere_reads_as_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("lines") / "events"
    descriptor = opened(path)
    for text in lines:
        append_line(descriptor, text, path)
    os.close(descriptor)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    os.truncate(path, cut)
    found = list(complete_lines(path))
    kept = whole[:cut].count(b"\n")
    assert [text for _, text in found] == lines[:kept]
    assert [end for end, _ in found] == [sum(len(text) + 1 for text in lines[: n + 1]) for n in range(kept)]


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert list(complete_lines(tmp_path / "nothing")) == []


def test_a_line_that_does_not_fit_is_not_left_half_written(tmp_path: Path) -> None:
    script = f"""
import os, resource
from pathlib import Path
from sharpen.core.errors import StorageError
from sharpen.files import append_line
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
path = Path({str(tmp_path)!r}) / "events"
descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for number in range(20):
    try:
        append_line(descriptor, b"x" * 99 if number else b"y" * 49, path)
    except StorageError as error:
        print(error)
        break
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cannot write {tmp_path / 'events'}: ")
    assert (tmp_path / "events").read_bytes() == b"y" * 49 + b"\n" + (b"x" * 99 + b"\n") * 9


def test_a_full_disk_is_called_full_and_the_old_file_stays(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        path = disk / "file.txt"
        write_atomic(path, "old")
        with pytest.raises(StorageError, match=r"cannot write .*file\.txt: the disk is full"):
            write_atomic(path, "x" * (128 << 10))
        assert path.read_text() == "old"
        assert [entry.name for entry in disk.iterdir()] == ["file.txt"]
        descriptor = opened(disk / "events")
        append_line(descriptor, b"first", disk / "events")
        with pytest.raises(StorageError, match="the disk is full"):
            append_line(descriptor, b"x" * (128 << 10), disk / "events")
        os.close(descriptor)
        assert (disk / "events").read_bytes() == b"first\n"


@pytest.mark.parametrize(
    "number,words",
    [(errno.EROFS, "the file system is read-only"), (errno.EACCES, "no permission"), (errno.EIO, "Input/output error")],
)
def test_other_reasons_are_named_too(number: int, words: str) -> None:
    assert str(storage_error(Path("a/b"), OSError(number, os.strerror(number)))) == f"cannot write a/b: {words}"


@pytest.mark.parametrize(
    ("umask", "file", "folder"), [(0o077, 0o600, 0o700), (0o002, 0o664, 0o775), (0o022, 0o644, 0o755)]
)
def test_the_umask_decides_who_may_read_what_a_run_leaves(tmp_path: Path, umask: int, file: int, folder: int) -> None:
    words = ("train", "codebook", "--model", "scripted/rules", "--trainer", "noop", "--limit", "6", "-q")
    command = f"import os; os.umask({umask}); from sharpen.cli.app import run; raise SystemExit(run({words!r}))"
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    left = list((tmp_path / "runs").rglob("*"))
    rights = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in left}
    assert rights == {(True, folder), (False, file)}
