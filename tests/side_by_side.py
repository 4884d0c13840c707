"""The whole check on two cores: the linters and the types, and the test suite as two runs that share its files.

What the runs print is shown when all have ended; while they run, a line now and then says how far they are. The last line
adds them up, as pytest closes a run. Options given on the command line go to all of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
CHECKS = {
    "ruff check": [BIN / "ruff", "check", "."],
    "ruff format": [BIN / "ruff", "format", "--check", "."],
    "mypy": [BIN / "mypy"],
}
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed|warnings?|deselected)")
_EVERY = 20.0
BEGINNINGS = ("first", "last")


def check() -> bool:
    """Run the linters and the type checker, and say what they say."""
    fine = True
    for name, command in CHECKS.items():
        print(f"== {name}", flush=True)
        fine &= subprocess.run([str(word) for word in command], cwd=ROOT).returncode == 0
    return fine


def start(share: Path, log: Path, *more: str) -> subprocess.Popen[bytes]:
    # The folder of tests is named, and `--share` written in one word: so pytest finds the options before it looks for them.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests",
        f"--share={share}",
        "-p",
        "no:cacheprovider",
        "--durations=12",
        *more,
    ]
    with log.open("wb") as out:
        return subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)


def closing_line(logs: list[Path]) -> dict[str, int]:
    """What the runs counted, added up from their closing lines."""
    counts: dict[str, int] = {}
    for log in logs:
        lines = log.read_text(errors="replace").strip().splitlines()
        for number, kind in _COUNT.findall(lines[-1] if lines else ""):
            counts[kind] = counts.get(kind, 0) + int(number)
    return counts


def main(given: list[str]) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sharpen-tests-") as folder:
        share = Path(folder) / "share"
        share.mkdir()
        logs = [Path(folder) / begin for begin in BEGINNINGS]
        runs = [start(share, log, f"--begin={log.name}", *given) for log in logs]
        fine = check()
        print(f"== pytest, {len(runs)} runs side by side", flush=True)
        told = time.monotonic()
        while any(run.poll() is None for run in runs):
            time.sleep(0.2)
            if time.monotonic() - told > _EVERY:
                told = time.monotonic()
                files = sum(1 for _ in share.iterdir())
                print(f"   {time.monotonic() - began:.0f} s: {files} files of tests begun", flush=True)
        for log in logs:
            print(log.read_text(errors="replace"), flush=True)
        counts = closing_line(logs)
    said = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    print(f"== {said} in {time.monotonic() - began:.2f}s ==")
    # A run that finds every file taken has run no test, which is no failure here.
    return 0 if fine and counts.get("passed") and all(run.returncode in (0, 5) for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
