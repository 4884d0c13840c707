"""The command line: one file per command, and nothing heavy imported until a command runs."""

from __future__ import annotations

import sys


def main() -> None:
    """The program `sharpen`."""
    from sharpen.cli.app import run
    from sharpen.cli.terminal import keep_clean

    keep_clean()
    sys.exit(run(sys.argv[1:]))
