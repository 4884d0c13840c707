"""Which of the user's own files a Python file is made of: it, and what it imports from beside it or from the project.

Their texts are part of the version of a task, a metric or a trainer: a changed helper never meets scores from before. What
is installed (the standard library, site-packages) is not among them, nor is sharpen itself. Imports are taken from the text,
also those inside functions, and from what the loaded module holds, for modules that it loaded by name. Files that
are read as data are not seen: a task whose score depends on one bumps its `version`.
"""

from __future__ import annotations

import ast
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

_MOST = 2000
"""Files that are followed; a project that has more is no helper."""


def imported_sources(path: Path, source: str, module: ModuleType | None = None, package: str = "") -> dict[str, str]:
    """The text of every own module that the file imports, directly or not, by the module's name. Without the loaded
    `module`, as far as the text alone tells; `package` is then the one it belongs to."""
    sources: dict[str, str] = {}
    visited: set[str] = set()
    if module is not None:
        package = module.__package__ or ""
    waiting = [*_names_in(source, package), *(() if module is None else _names_held(module))]
    while waiting and len(sources) < _MOST:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        file = _file_of(name, path.parent)
        if file is None or not is_own(file) or file.resolve() == path.resolve():
            continue
        sources[name] = text = file.read_text(encoding="utf-8", errors="replace")
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        waiting += _names_in(text, package)
    return sources


def is_own(file: Path) -> bool:
    """Whether a file is the user's own, rather than installed or part of sharpen."""
    file = file.resolve()
    if {"site-packages", "dist-packages"} & set(file.parts):
        return False
    return not any(file.is_relative_to(folder) for folder in _installed())


@lru_cache(maxsize=1)
def _installed() -> frozenset[Path]:
    library = [str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    of_sharpen = Path(__file__).parents[1]
    return frozenset(path.resolve() for path in (*map(Path, library), *map(Path, packages), of_sharpen))


def _names_in(source: str, package: str) -> Iterator[str]:
    """The modules that a text names in its imports, and those above them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level and package else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from _with_parents(base)
            for alias in node.names:
                yield f"{base}.{alias.name}" if base else alias.name


def _names_held(module: ModuleType) -> Iterator[str]:
    """The modules of what a module's names stand for."""
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and name != module.__name__:
            yield from _with_parents(name)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".") if name else []
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])


def _file_of(name: str, beside: Path) -> Path | None:
    """The source of a module, found without importing anything."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return _python(getattr(loaded, "__file__", None))
    parent, dot, last = name.rpartition(".")
    if dot:
        above = _file_of(parent, beside)
        return None if above is None or above.name != "__init__.py" else _in_folder(above.parent, last)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    return _python(None if spec is None else spec.origin) or _in_folder(beside, name)


def _in_folder(folder: Path, name: str) -> Path | None:
    return next((file for file in (folder / f"{name}.py", folder / name / "__init__.py") if file.is_file()), None)


def _python(file: object) -> Path | None:
    return Path(file) if isinstance(file, str) and file.endswith(".py") and Path(file).is_file() else None
