"""Where the interpreter and its packages lie, and how they are made reachable for a user id that owns nothing.

A program that is started by root runs under an id of its own, which may not so much as pass through root's home folder; and
interpreters and environments do lie there. So the launcher, where it is root, moves into a mount namespace of its own and
binds what is needed below its own private /tmp, before any id is dropped. Outside of it nothing changes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_STAGE = Path("/tmp")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Places:
    """Paths as the launcher's children see them."""

    prefix: Path
    """The root of the interpreter's installation."""
    executable: Path
    """The interpreter, relative to `prefix`."""
    libraries: tuple[Path, ...]
    """Folders with packages."""
    hidden: tuple[Path, ...] = ()
    """Folders with packages that a program would see beside the interpreter."""
    unfit: str = ""
    """Why the interpreter can't be shown to a program, where that is so."""

    @property
    def in_usr(self) -> bool:
        """Whether binding /usr brings the interpreter along."""
        return self.prefix.is_relative_to("/usr")

    def package(self, name: str) -> list[Path]:
        """What must be visible for `import name`; nothing where there is no such package."""
        for library in self.libraries:
            for path in (library / name, library / f"{name}.py"):
                if path.exists():
                    bundled = library / f"{name}.libs"
                    return [path, bundled] if bundled.exists() else [path]
        return []


def found() -> Places:
    """The places of the interpreter that runs this."""
    prefix = Path(os.path.realpath(sys.base_prefix))
    executable = Path(os.path.realpath(sys.executable))
    if not executable.is_relative_to(prefix):
        executable = Path(os.path.realpath(prefix / "bin" / f"python3.{sys.version_info.minor}"))
    libraries = dict.fromkeys(Path(sysconfig.get_path(kind)) for kind in ("platlib", "purelib"))
    version = f"python3.{sys.version_info.minor}"
    beside = [prefix / "lib" / version / "site-packages", Path("/usr/lib/python3/dist-packages")]
    beside += [Path("/usr/local/lib") / version / name for name in ("site-packages", "dist-packages")]
    real = dict.fromkeys(Path(os.path.realpath(path)) for path in (*libraries, *beside))
    seen = [path for path in real if path.is_dir() and _is_below(path, prefix, "/usr")]
    # All below the prefix is shown to the program, so it must not be more than an interpreter.
    places = Places(prefix, executable.relative_to(prefix), tuple(libraries), tuple(seen))
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if home.is_relative_to(prefix) and not places.in_usr:
        return replace(places, unfit=f"this Python is installed in {prefix}, and the home folder would be seen with it")
    return places


def staged(places: Places) -> Places:
    """The same places, bound below a private /tmp where this process may do that; else as they are."""
    if os.geteuid() != 0 or _libc.unshare(_CLONE_NEWNS) != 0:
        return places
    try:
        targets = _bound(places)
    except OSError:  # a container that forbids mounting forbids sandboxes too, and those then say so
        return places
    prefix = places.prefix if places.in_usr else targets[0]
    moved = (
        prefix / path.relative_to(places.prefix) if _is_below(path, places.prefix) else path for path in places.hidden
    )
    return replace(places, prefix=prefix, libraries=tuple(targets[1:]), hidden=tuple(moved))


def _is_below(path: Path, *folders: str | Path) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _bound(places: Places) -> list[Path]:
    """Bind what the places name below a private /tmp: where it is then found, in their order."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    if not proc_is_ours():
        _mount_proc()
    # Opened before /tmp is covered, since they may lie there themselves.
    sources = [os.open(path, os.O_PATH) for path in (places.prefix, *places.libraries)]
    _mount("tmpfs", str(_STAGE), "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")
    targets = [_STAGE / "python", *(_STAGE / f"packages{n}" for n in range(len(places.libraries)))]
    for source, target in zip(sources, targets, strict=True):
        target.mkdir()
        _mount(f"/proc/self/fd/{source}", str(target), None, _MS_BIND | _MS_REC)
        os.close(source)
    return targets


def proc_is_ours() -> bool:
    """Whether the numbers in /proc are those this process knows; not so in a PID namespace with its parent's /proc."""
    return os.readlink("/proc/self") == str(os.getpid())


def leave_for_own_proc() -> bool:
    """Let an ordinary user's next child be where /proc can be its own; False where there is no need, or no way.

    A job of a study is in a PID namespace with a /proc that tells of another, which neither bubblewrap nor a keeper can
    work with. Root mounts it anew; anyone else needs namespaces of their own for that.
    """
    if os.geteuid() == 0 or proc_is_ours():
        return False
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def arrive_at_own_proc() -> None:
    """Be the child that `leave_for_own_proc` was for."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount_proc()


def _mount_proc() -> None:
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {target}: {os.strerror(number)}")
