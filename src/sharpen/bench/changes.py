"""What changed in a trainer's code since a commit, from git: for reading beside a comparison with runs of back then.

A trainer's code is its module, or the package it is written in; other files of the distribution are counted and not listed.
It must lie in a git work tree, sharpen's own or the user's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.core.errors import UsageError
from sharpen.trainers import registry

_OF_MANY = "sharpen.trainers"
"""The package that holds trainers with nothing in common, a module each."""


@dataclass(frozen=True)
class Changes:
    """A trainer's code now against a commit: the commits in between, changed lines by file (`git diff --stat`), files git
    does not know, and how many other files of the same package changed."""

    trainer: str
    code: str
    commits: tuple[str, ...]
    stat: tuple[str, ...]
    untracked: tuple[str, ...]
    elsewhere: int

    @property
    def any(self) -> bool:
        return bool(self.stat or self.untracked)


def since(commit: str, trainers: Sequence[str]) -> list[Changes]:
    """What changed in the code of each trainer, named as a configuration names it."""
    return [_changes(commit, name) for name in dict.fromkeys(trainers)]


def code_of(name: str) -> tuple[Path, Path]:
    """The file or folder that is a trainer's own, and the package it belongs to."""
    kind = registry.get(name)
    module = sys.modules[kind.__module__]
    if module.__file__ is None:
        raise UsageError(f"the trainer {name} comes from no file: what changed in it can't be told")
    file = Path(module.__file__).resolve()
    package = module.__package__ or ""
    if not package:
        return file, file
    top = file.parents[package.count(".")]
    return (file if package == _OF_MANY else file.parent), top


def _changes(commit: str, name: str) -> Changes:
    code, package = code_of(name)
    home = code if code.is_dir() else code.parent
    try:
        root = Path(_git(home, "rev-parse", "--show-toplevel").strip())
        known = _git(root, "ls-files", "--", str(code)).strip()
    except subprocess.CalledProcessError:
        known = ""
    if not known:
        raise UsageError(
            f"the trainer {name} is in {code}, which git does not keep: --since needs its source in a git work tree"
        )
    try:
        _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        raise UsageError(f"--since: {root} has no commit {commit!r}, where the trainer {name} is kept") from None
    commits = _git(root, "log", "--oneline", "--no-decorate", f"{commit}..HEAD", "--", str(code)).splitlines()
    stat = _git(root, "diff", "--stat=100", commit, "--", str(code)).splitlines()
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "--", str(code)).splitlines()
    whole = _git(root, "diff", "--name-only", commit, "--", str(package)).splitlines()
    own = _git(root, "diff", "--name-only", commit, "--", str(code)).splitlines()
    shown = code.relative_to(root.resolve()).as_posix()
    return Changes(name, shown, tuple(commits), tuple(stat), tuple(untracked), len(set(whole) - set(own)))


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    except FileNotFoundError:
        raise UsageError("--since needs the program git, which is not here") from None
    return done.stdout
