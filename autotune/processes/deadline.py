"""Deadlines of work, and the end of work whose processes threads wait for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Self


@dataclass(frozen=True)
class Deadline:
    """The time at which work should end; the end of its block ends the work at once.

    Then the processes that threads wait for are killed: all that run, and each that begins later.
    """

    at_s: float = math.inf  # on the clock of `time.perf_counter`; afterwards, no more work begins
    _kills: set[Callable[[], object]] = field(default_factory=set, compare=False)
    _has_ended: Event = field(default_factory=Event, compare=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        for kill in list(self._kills):
            kill()

    @contextmanager
    def holding(self, kill: Callable[[], object]) -> Iterator[None]:
        """Hold a process, which `kill` ends, for as long as the block waits for it."""
        self._kills.add(kill)
        try:
            if self._has_ended.is_set():  # asked last: another thread may have killed all others meanwhile
                kill()
            yield
        finally:
            self._kills.discard(kill)

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """The deadline of work that begins now; None sets no limit."""
        return cls(math.inf if seconds is None else time.perf_counter() + seconds)

    def left_s(self, most_s: float = math.inf) -> float:
        """The time that is left, but no more than `most_s`."""
        return min(most_s, max(0.0, self.at_s - time.perf_counter()))

    @property
    def is_over(self) -> bool:
        """True if no time is left."""
        return time.perf_counter() >= self.at_s

    def share(self, count: int) -> Deadline:
        """The deadline of the next of `count` equal parts of the work that is left."""
        now_s = time.perf_counter()
        return replace(self, at_s=now_s + (self.at_s - now_s) / count)
