"""From an order to a command line: what bubblewrap is told, which limits stand before the program, what it finds around it.

Pure. Inside, the root folder is read-only and nearly empty: /usr with its usual links, the interpreter in /python, asked-for
packages in /packages, four harmless devices, and /work, which alone can be written to and has a size. There is no /proc,
no /etc but the loader's index, no home folder. The limits are set by prlimit inside of the new namespaces, since the kernel
counts a user's processes there apart from those outside.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sharpen.sandbox.contract import Limits
from sharpen.sandbox.places import Places

WORK = "/work"
_MEGABYTE = 1 << 20
_OPEN_FILES = 64
_PRLIMIT = "/usr/bin/prlimit"
_NOBODY = "65534"
_PYTHON = "/python"
_PACKAGES = "/packages"
_FIXED = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    # Threads count as processes, and a library that starts one for each processor would use the limit up.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def program(argv: Sequence[str], python: str) -> list[str]:
    """The program's own command; `python` stands for the interpreter, without site packages and without writing caches."""
    if argv[0] in ("python", "python3"):
        return [python, "-s", "-S", "-B", *argv[1:]]
    return list(argv)


def limited(argv: Sequence[str], limits: Limits, *, process_limit: int) -> list[str]:
    """A command under limits that it can't raise again."""
    # Killed a second after the signal that it may catch.
    cpu = f"{limits.cpu_seconds}:{limits.cpu_seconds + 1}"
    settings = {
        "as": limits.memory_mb * _MEGABYTE,
        "fsize": limits.file_mb * _MEGABYTE,
        "nproc": process_limit,
        "nofile": _OPEN_FILES,
        "core": 0,
        "msgqueue": 0,
    }
    return [
        _PRLIMIT, f"--cpu={cpu}", *(f"--{name}={value}:{value}" for name, value in settings.items()), "--", *argv
    ]  # fmt: skip


def environment(home: str, *, library_path: str = "", packages: str = "") -> dict[str, str]:
    """All the variables a program sees."""
    found = {**_FIXED, "HOME": home, "TMPDIR": home}
    if library_path:
        found["LD_LIBRARY_PATH"] = library_path
    if packages:
        found["PYTHONPATH"] = packages
    return found


def bubblewrap(
    bwrap: str,
    argv: Sequence[str],
    limits: Limits,
    places: Places,
    packages: Sequence[Path],
    *,
    files: Mapping[str, int],
    status: int,
    filter: int,
) -> list[str]:
    """The whole command line. `files` are descriptors to copy from, by name; `status` and `filter` are descriptors too."""
    root = places.prefix if places.in_usr else Path(_PYTHON)
    variables = environment(
        WORK, library_path="" if places.in_usr else f"{_PYTHON}/lib", packages=_PACKAGES if packages else ""
    )
    command = [
        bwrap, "--unshare-user", "--unshare-all", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox",
        "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
        "--seccomp", str(filter), "--json-status-fd", str(status),
    ]  # fmt: skip
    for name, value in variables.items():
        command += ["--setenv", name, value]
    command += ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    command += _links()
    for device in ("null", "zero", "random", "urandom"):
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    if not places.in_usr:
        command += ["--ro-bind", str(places.prefix), _PYTHON]
    for path in places.hidden:
        # Whoever has the tasks has their instances; and a package is there for those who asked for it.
        shown = root / path.relative_to(places.prefix) if path.is_relative_to(places.prefix) else path
        command += ["--tmpfs", str(shown), "--remount-ro", str(shown)]
    for path in packages:
        command += ["--ro-bind", str(path), f"{_PACKAGES}/{path.name}"]
    command += ["--size", str(limits.file_mb * _MEGABYTE), "--tmpfs", WORK, "--symlink", WORK, "/tmp"]
    for name, descriptor in files.items():
        command += ["--perms", "0644", "--file", str(descriptor), f"{WORK}/{name}"]
    command += ["--remount-ro", "/", "--chdir", WORK, "--"]
    # One more than the program may have: process 1 of the namespace is bubblewrap's own.
    inner = limited(program(argv, str(root / places.executable)), limits, process_limit=limits.processes + 1)
    return [*command, *inner]


def _links() -> list[str]:
    """The folders beside /usr that programs and the loader are found through, as they are on this machine."""
    words = []
    for name in ("/bin", "/lib", "/lib64"):
        if os.path.islink(name):
            words += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            words += ["--ro-bind", name, name]
    return words
