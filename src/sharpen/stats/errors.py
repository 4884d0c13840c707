"""What is wrong with the numbers somebody gave: one class, so that whoever reads files can say where they came from."""

from __future__ import annotations


class BadData(ValueError):
    """The numbers can't be used as asked. The message says which, and what would be right."""
