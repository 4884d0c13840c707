"""What is asked of the sandbox and what it reports: limits, modes, an order, and the record of one run.

An order and its report travel between processes as JSON, each behind its length in eight bytes. Pure but for reading and
writing a socket.
"""

from __future__ import annotations

import base64
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Literal

from sharpen.core.errors import UsageError

HEADER = struct.Struct("!Q")
MOST_HANDLES = 6
"""That the launcher takes at one time: a socket and two ends of pipes for each of two runs."""
_PAGE = 4096

Reason = Literal["", "time", "cpu", "memory", "processes", "files", "output", "killed"]


class Mode(StrEnum):
    """Where a program runs. `unsafe` has the limits and a folder of its own, but sees the machine: files and network."""

    BUBBLEWRAP = "bubblewrap"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. All but `file_mb` in unsafe mode are for everything the program starts, taken together."""

    seconds: float = 10.0
    cpu_seconds: int = 10
    memory_mb: int = 512
    processes: int = 16
    """Processes and threads at one time, the first included."""
    file_mb: int = 16
    """All files in the working folder; in unsafe mode, each of them."""
    output_kb: int = 256
    """Standard output and standard error together; in a conversation, one answer."""
    call_seconds: float = 10.0
    """In a conversation: time on the clock for one answer, the first aside, which waits for the program to start."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise UsageError(f"sandbox limit {name} must be above zero, not {value!r}")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended. `code` is None where it did not end of its own accord, and `reason` then says why.

    `reason` may stand beside a code too: a program that was refused memory and gave up says so itself, in its last line.
    """

    stdout: str
    stderr: str
    code: int | None
    reason: Reason
    seconds: float
    cpu_seconds: float

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.reason


@dataclass(frozen=True, slots=True)
class Order:
    """One program to be run: its files by relative name, its command, and what it may use."""

    files: Mapping[str, str]
    argv: Sequence[str]
    stdin: bytes
    limits: Limits
    mode: Mode
    packages: Sequence[str]

    def __post_init__(self) -> None:
        if not self.argv:
            raise UsageError("nothing to run in the sandbox: argv is empty")
        for word in self.argv:
            if "\0" in word:
                raise UsageError(f"a word of a sandbox command holds a zero byte: {word!r}")
        for name in self.files:
            path = PurePosixPath(name)
            if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
                raise UsageError(f"a file for the sandbox must have a relative name inside its folder, not {name!r}")
        for name in self.packages:
            if not name.isidentifier():
                raise UsageError(f"not the import name of a package: {name!r}")

    @property
    def fits(self) -> bool:
        """Whether its files are within their limit to begin with."""
        pages = sum(-(-len(encoded(text)) // _PAGE) for text in self.files.values())
        return pages * _PAGE <= self.limits.file_mb << 20

    def dump(self) -> dict[str, Any]:
        return {
            "files": dict(self.files),
            "argv": list(self.argv),
            "stdin": base64.b64encode(self.stdin).decode(),
            "limits": asdict(self.limits),
            "mode": self.mode.value,
            "packages": list(self.packages),
        }

    @staticmethod
    def load(data: Mapping[str, Any]) -> Order:
        return Order(
            data["files"], data["argv"], base64.b64decode(data["stdin"]), Limits(**data["limits"]),
            Mode(data["mode"]), data["packages"],
        )  # fmt: skip


def encoded(text: str) -> bytes:
    """A file's bytes. Half characters are kept: whether a program may hold them is for its interpreter to say."""
    return text.encode(errors="surrogatepass")


def packed(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message).encode("ascii")
    return HEADER.pack(len(body)) + body


def receive(source: socket.socket) -> dict[str, Any] | None:
    """The next message of a blocking socket; None where the other side hung up before its end."""
    header = _exactly(source, HEADER.size)
    body = None if header is None else _exactly(source, HEADER.unpack(header)[0])
    if body is None:
        return None
    message: dict[str, Any] = json.loads(body)
    return message


def _exactly(source: socket.socket, size: int) -> bytes | None:
    got = bytearray()
    while len(got) < size:
        piece = source.recv(min(size - len(got), 1 << 20))
        if not piece:
            return None
        got += piece
    return bytes(got)
