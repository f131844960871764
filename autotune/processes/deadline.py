"""Deadlines, and processes that can be killed while threads wait for them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self


class Killable:
    """Processes that threads wait for: `kill` ends all that run, and each that begins later at once."""

    def __init__(self) -> None:
        """Hold no process yet."""
        self._kills: set[Callable[[], object]] = set()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @contextmanager
    def holding(self, kill: Callable[[], object]) -> Iterator[None]:
        """Hold a process, which `kill` ends, for as long as the block waits for it."""
        self._kills.add(kill)
        try:
            if self._is_over:  # asked last: another thread may have killed all others meanwhile
                kill()
            yield
        finally:
            self._kills.discard(kill)

    def kill(self) -> None:
        """Kill them all."""
        self._is_over = True
        for kill in list(self._kills):
            kill()


@dataclass(frozen=True)
class Deadline:
    """The time at which work should end, and the processes that can be killed to end it at once."""

    at_s: float = math.inf  # on the clock of `time.perf_counter`; afterwards, no more work begins
    killable: Killable = field(default_factory=Killable)  # processes that the work waits for

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
