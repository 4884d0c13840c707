"""The process that jobs come from: everything heavy is imported, and gone through once, before the first job begins.

Run as `python -m sharpen.bench.nursery FD [MODULE]...`, with a socket to the parent as FD. It is single-threaded, so
that forking is safe. It has a keeper (`keeper.py`) for each job that runs at the same time and passes on messages
between them and the parent: in `start`, `stop` and `kill`, out `{"ready": true}` and `ended`. If the parent dies,
everything dies.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sharpen.bench.keeper import PACKET, die_with_parent, serve

_LATER = {
    "sharpen.models.openai": ("openai.resources.chat", "openai.resources.completions", "httpx_aiohttp"),
}
"""What a module imports only when it is used."""


@dataclass
class Keeper:
    """One keeper, from the nursery's side. `key` is that of the job it has, empty where it is free."""

    process: int
    line: socket.socket
    key: str = ""


def main(handle: int, modules: Sequence[str]) -> None:
    """Serve until the parent hangs up."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's business
    _warm_up(modules)
    from sharpen.bench.rehearsal import rehearse

    rehearse()
    gc.collect()
    gc.freeze()  # so that collecting garbage in a job does not copy every page it shares with this process
    parent = socket.socket(fileno=handle)
    keepers: list[Keeper] = []
    parent.send(json.dumps({"ready": True}).encode())
    while True:
        ready, _, _ = select.select([parent, *(keeper.line for keeper in keepers)], [], [])
        for keeper in [keeper for keeper in keepers if keeper.line in ready]:
            _pass_on(keeper, parent, keepers)
        if parent in ready:
            packet, handles, _, _ = socket.recv_fds(parent, PACKET, 1)
            if not packet:
                break
            _obey(json.loads(packet), packet, handles, parent, keepers)
    for keeper in keepers:
        keeper.line.close()
    for keeper in keepers:
        os.waitpid(keeper.process, 0)


def _obey(
    message: dict[str, Any], packet: bytes, handles: list[int], parent: socket.socket, keepers: list[Keeper]
) -> None:
    if "start" in message:
        keeper = next((one for one in keepers if not one.key), None) or _new_keeper(parent, keepers)
        keeper.key = message["start"]
        with suppress(OSError):  # one that has died is heard of by its line's end
            socket.send_fds(keeper.line, [packet], handles)
        for one in handles:
            os.close(one)
        return
    for keeper in keepers:
        if keeper.key in message.values():
            with suppress(OSError):
                keeper.line.send(packet)


def _pass_on(keeper: Keeper, parent: socket.socket, keepers: list[Keeper]) -> None:
    """Tell the parent what a keeper says; the silence of one that was killed is the end of its job too."""
    try:
        told = keeper.line.recv(PACKET)
    except ConnectionResetError:
        told = b""
    if not told:
        keepers.remove(keeper)
        keeper.line.close()
        os.waitpid(keeper.process, 0)
        told = json.dumps({"ended": keeper.key, "code": None, "signal": signal.SIGKILL}).encode()
    keeper.key = ""
    parent.send(told)


def _new_keeper(parent: socket.socket, keepers: list[Keeper]) -> Keeper:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = os.fork()
    if process == 0:
        try:
            for line in (parent, ours, *(keeper.line for keeper in keepers)):
                line.close()
            serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    keepers.append(Keeper(process, ours))
    return keepers[-1]


def _warm_up(modules: Sequence[str]) -> None:
    """Import what every job needs, and what those of this study do."""
    import sharpen.bench.job_process
    import sharpen.engine.comparing
    import sharpen.gates.sequential
    import sharpen.models.schema
    import sharpen.models.scripted
    import sharpen.tasks.datatask
    import sharpen.trainers.reflact.loop  # noqa: F401

    for module in modules:
        importlib.import_module(module)
        for later in _LATER.get(module, ()):
            if importlib.util.find_spec(later.partition(".")[0]) is not None:
                importlib.import_module(later)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
