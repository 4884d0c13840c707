"""What makes two rollouts, or two model replies, the same: the keys of the ledger.

A key is the first 16 bytes of a SHA-256 over everything that may change the result and nothing else. Which worker, which
run, which trainer or which purpose asked is not part of it: that is what lets a crash, a second trainer or a re-scored
task find what is already there. The draw (job seed and sample number) counts only for models that may answer differently
the second time. The number of a repetition of one seed always counts: repetitions are there to be paid for again.
"""

from __future__ import annotations

import hashlib

from sharpen.core.candidate import Candidate
from sharpen.core.chat import Request
from sharpen.core.digest import Json, canonical
from sharpen.core.item import Item

KEY_BYTES = 16


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES]


class RolloutKeys:
    """Keys for rollouts of one task with one set of models. Built once per job; `key` is the hot path."""

    def __init__(
        self, task: str, version: str, models: Json, render: str, seed: int | None, *, repeat: int = 0
    ) -> None:
        """`seed` is None where every model is deterministic, so that all seeds share their rollouts. A `repeat` shares its
        rollouts with nobody."""
        self._setting = canonical([task, version, models, render, seed, *_repeated(repeat)])
        self._repeatable = seed is not None

    def key(self, candidate: Candidate, item: Item, sample: int) -> bytes:
        draw = sample if self._repeatable else 0
        return _key(f"rollout\n{self._setting}\n{candidate.digest}\n{item.digest}\n{draw}")


def reply_key(identity: Json, request: Request, draw: Json, *, repeat: int = 0) -> bytes:
    """The key of one model reply. `draw` is None for a deterministic model."""
    return _key("reply\n" + canonical([identity, request.key_fields(), draw, *_repeated(repeat)]))


def _repeated(repeat: int) -> list[Json]:
    """The first repetition has the keys of a job that is not repeated."""
    return [{"repeat": repeat}] if repeat else []
