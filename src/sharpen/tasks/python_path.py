"""Finding a Python object by path: `path/to/file.py:name` or `package.module:name`. Used for own metrics, tasks and
trainers.

Such a file is somebody's own work, perhaps half done. What it raises when it is loaded is a problem like any other, with the
line it came from; what it prints goes to standard error, since standard output may be somebody's JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from sharpen.core.digest import digest
from sharpen.core.errors import SharpenError, UsageError, in_a_line, nearest
from sharpen.core.exits import forbid_exits
from sharpen.tasks.own_imports import imported_sources, is_own


@dataclass(frozen=True, slots=True)
class Found:
    """A Python object, and the digest of the source it came from (of the module's name where there is no source) together
    with that of the user's own files it imports. `own` says whether it comes from such a file rather than from an installed
    package."""

    value: object
    source: str
    own: bool = True


class _AsItStands(SourceFileLoader):
    """Runs a file from its source and keeps no bytecode. Kept bytecode is told from a changed file by the second and the
    size of the change alone: the digest could speak of one text while another runs."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def find(spec: str, what: str) -> Found:
    """The object called `spec`; `what` names it in messages (`metric`, `task`)."""
    where, _, name = spec.rpartition(":")
    if not where or not name:
        raise UsageError(f"{what} {spec!r}: write it as path/to/file.py:name or package.module:name")
    module = _from_file(Path(where), what) if is_file(spec) else _from_module(where, what)
    if not hasattr(module, name):
        public = [known for known in vars(module) if not known.startswith("_")]
        own = [known for known in public if getattr(getattr(module, known), "__module__", "") == module.__name__]
        there = f"; it has {', '.join(own)}" if own else ""
        raise UsageError(f"{what} {spec!r}: {where} has no {name!r}{nearest(name, public)}{there}")
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return Found(getattr(module, name), digest(where)[:16], own=False)
    source = Path(file).read_text(encoding="utf-8", errors="replace")
    of_the_user = is_file(spec) or is_own(Path(file))
    helpers = imported_sources(Path(file), source, module) if of_the_user else {}
    return Found(getattr(module, name), digest([source, helpers] if helpers else source)[:16], of_the_user)


def file_of(spec: str) -> Path | None:
    """The file that `spec` names an object by; None for one of a module."""
    return Path(spec.rpartition(":")[0]) if is_file(spec) else None


def is_file(spec: str) -> bool:
    """Whether `spec` names an object by its file, as in `path/to/file.py:name`."""
    return spec.rpartition(":")[0].endswith(".py")


def _from_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{what}: no such file: {path} (looked for in {path.resolve().parent})")
    name = f"sharpen_user_{digest(str(path.resolve()))[:12]}"
    loader = _AsItStands(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # it is one wherever a loader is given
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look a class up by its module's name
    with own_code(what, path):
        try:
            loader.exec_module(module)
        except SyntaxError as error:
            where = path if error.filename in (None, str(path)) else f"{path}, in {error.filename}"
            raise UsageError(f"{what}: {where}, line {error.lineno}: {error.msg}") from error
        except ModuleNotFoundError as error:
            raise UsageError(
                f"{what}: {path} imports {error.name!r}, which is not installed here; a file beside it is not importable, "
                "so put what it needs into the file itself or into a package"
            ) from error
    return module


@contextmanager
def own_code(what: str, path: Path | None = None) -> Iterator[None]:
    """While somebody's own code runs, in the file `path` where it has one: what it raises is a problem that can be told
    beside others, and what it prints stays off standard output."""
    forbid_exits()
    with redirect_stdout(sys.stderr):
        try:
            yield
        except SharpenError:
            raise
        except (Exception, SystemExit) as error:
            # It may raise anything, and leave altogether: neither is a bug of ours.
            raise UsageError(f"{what}: {_where(error, path)}{in_a_line(error)}") from error


def _where(error: BaseException, path: Path | None) -> str:
    """The place in a file that an exception came from last; the file alone where it did not pass through it."""
    if path is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return f"{path}, line {own[-1]}: " if own else f"{path}: "


def _from_module(where: str, what: str) -> ModuleType:
    with own_code(f"{what}: the module {where}"):
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            if error.name is not None and (where == error.name or where.startswith(error.name + ".")):
                raise UsageError(
                    f"{what}: no Python module {where!r}; for a file, write path/to/file.py:name"
                ) from error
            raise
