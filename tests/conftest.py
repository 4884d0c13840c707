"""Two runs of the suite beside each other share its files: one begins with the first file, the other goes backwards from the
last, and each takes a file only if the other has not. `tests/side_by_side.py` starts them; without `--share` nothing of
this applies.

No test depends on the clock: examples of hypothesis may take as long as a busy machine makes them."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A shell that starts the suite in the background ignores SIGINT, and so would every program that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", metavar="FOLDER", help="take only files that nobody took before, and note them here")
    parser.addoption("--begin", choices=("first", "last"), default="first", help="which file to begin with")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--begin") == "last":
        files = dict.fromkeys(item.path for item in items)
        place = {path: -number for number, path in enumerate(files)}
        items.sort(key=lambda item: place[item.path])


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--share")
    if folder is not None:
        config.pluginmanager.register(_Share(Path(folder)))


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the tests allow to run is remembered apart from what the user did."""
    os.environ["SHARPEN_STATE"] = str(tmp_path_factory.mktemp("state"))


class _Share:
    """The files this run has taken."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: dict[Path, bool] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Says that a test is done with, without a word, where the other run has its file."""
        if item.path not in self._mine:
            self._mine[item.path] = self._take(item.path)
        return None if self._mine[item.path] else True

    def _take(self, path: Path) -> bool:
        name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
        try:
            (self._folder / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True
