"""One limit for an endpoint that several processes use: what is under way over all of them never passes it.

The jobs of a study find each other in a folder. Each endpoint has a small file there, mapped into memory by everybody: the
limit, the last cut, the end of a pause, and for each process its seat, with the number of its calls under way. A change is
made under the file's lock. A seat is a locked file of its own, and the kernel unlocks the seat of a process that was killed:
whoever finds the limit reached looks for such seats and frees what they held.

Nobody can be woken across processes, so who waits looks again after a few milliseconds. To keep one that is always on the
spot from taking everything, a slot is left for each waiting process that has fewer calls under way, or as many and waits
for longer. Times are those of the system's monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path

from sharpen.core.digest import digest
from sharpen.core.errors import StorageError
from sharpen.engine.limits import Limiter, grown, lowered
from sharpen.files import storage_error

SEATS = 1024
POLL = 0.004
_FRESH = 0.1
"""A claim is kept up by looking again; one that was not for so long holds nobody back."""
_LIMIT, _CUT_AT, _RESUME_AT, _SEATS_USED, _HEAD = range(5)


class SharedQuota:
    """One process's share in an endpoint's limit; see `sharpen.engine.limits.Quota`."""

    poll: float | None = POLL

    def __init__(self, folder: Path, endpoint: str, cap: int) -> None:
        self._cap = cap
        self._home = folder / digest(endpoint)[:16]
        self._checked = 0.0
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._home / "state", os.O_RDWR | os.O_CREAT, 0o600)
            size = 8 * (_HEAD + 3 * SEATS)
            self._lock()
            try:
                is_new = os.fstat(self._file).st_size == 0
                os.ftruncate(self._file, size)
                self._memory = mmap.mmap(self._file, size)
                self._about = memoryview(self._memory).cast("d")
                if is_new:
                    self._about[_LIMIT] = cap
                self._calls, self._since, self._beat = (
                    self._about[start : start + SEATS] for start in range(_HEAD, _HEAD + 3 * SEATS, SEATS)
                )
                self._seat, self._hold = self._sit_down()
            finally:
                self._unlock()
        except OSError as error:
            raise storage_error(self._home, error) from error

    def close(self) -> None:
        """Give everything back."""
        self._calls[self._seat] = self._since[self._seat] = 0.0
        for view in (self._calls, self._since, self._beat, self._about):
            view.release()
        self._memory.close()
        os.close(self._hold)
        os.close(self._file)

    @property
    def limit(self) -> int:
        return min(self._cap, int(self._about[_LIMIT]))

    @property
    def in_flight(self) -> int:
        return int(self._calls[self._seat])

    @property
    def resume_at(self) -> float:
        return self._about[_RESUME_AT]

    def take(self, now: float) -> bool:
        self._lock()
        try:
            seats = int(self._about[_SEATS_USED])
            room = self.limit - sum(self._calls[:seats])
            if room > 0 and room > self._ahead(seats, now):
                self._calls[self._seat] += 1.0
                if self._since[self._seat]:
                    self._since[self._seat] = now  # who was served stands at the end of the queue again
                return True
            if now - self._checked > _FRESH:
                self._checked = now
                self._free_the_dead(seats)
            if not self._since[self._seat]:
                self._since[self._seat] = now
            self._beat[self._seat] = now
            return False
        finally:
            self._unlock()

    def give_back(self) -> None:
        self._calls[self._seat] -= 1.0  # nobody else writes here while this process lives

    def withdraw(self) -> None:
        self._since[self._seat] = 0.0

    def grow(self) -> None:
        if self._about[_LIMIT] >= self._cap:
            return
        self._lock()
        try:
            if sum(self._calls[: int(self._about[_SEATS_USED])]) >= self.limit:
                self._about[_LIMIT] = grown(self._about[_LIMIT], self._cap)
        finally:
            self._unlock()

    def cut(self, started: float, now: float, cool_down: float) -> None:
        self._lock()
        try:
            exact = lowered(self._about[_LIMIT], self._about[_CUT_AT] or None, started, now, cool_down)
            if exact is not None:
                self._about[_LIMIT], self._about[_CUT_AT] = exact, now
        finally:
            self._unlock()

    def pause(self, until: float) -> None:
        self._lock()
        try:
            self._about[_RESUME_AT] = max(self._about[_RESUME_AT], until)
        finally:
            self._unlock()

    def _ahead(self, seats: int, now: float) -> int:
        """How many other processes have a better claim to the next slot."""
        if not any(self._since[:seats]):
            return 0
        mine = (self._calls[self._seat], self._since[self._seat] or now)
        return sum(
            1
            for seat in range(seats)
            if seat != self._seat
            and self._since[seat]
            and now - self._beat[seat] < _FRESH
            and (self._calls[seat], self._since[seat]) < mine
        )

    def _sit_down(self) -> tuple[int, int]:
        """A seat nobody has, and the handle that holds it."""
        for seat in range(SEATS):
            handle = self._held(seat)
            if handle is not None:
                self._calls[seat] = self._since[seat] = 0.0
                self._about[_SEATS_USED] = max(self._about[_SEATS_USED], seat + 1)
                return seat, handle
        raise StorageError(f"more than {SEATS} processes share {self._home}")

    def _free_the_dead(self, seats: int) -> None:
        for seat in range(seats):
            if seat != self._seat and (self._calls[seat] or self._since[seat]):
                handle = self._held(seat)
                if handle is not None:
                    self._calls[seat] = self._since[seat] = 0.0
                    os.close(handle)

    def _held(self, seat: int) -> int | None:
        """Hold a seat, where its process is gone or there was none."""
        handle = os.open(self._home / f"seat-{seat}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def _lock(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def _unlock(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)


def share(limiters: dict[str, Limiter], folder: Path) -> list[SharedQuota]:
    """Let each endpoint's limiter draw from what it shares with other processes that name the same folder."""
    quotas = []
    for endpoint, limiter in limiters.items():
        quotas.append(SharedQuota(folder, endpoint, limiter.cap))
        limiters[endpoint] = Limiter(limiter.cap, quota=quotas[-1])
    return quotas
