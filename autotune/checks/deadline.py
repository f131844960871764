"""Deadlines of checks, and processes that can be killed while a check waits for them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Killable:
    """Processes that threads wait for: `kill` ends all that run, and each that begins later at once."""

    def __init__(self) -> None:
        """Hold no process yet."""
        self._kills: set[Callable[[], object]] = set()
        self._is_over = False

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
    """The time at which checks should end, on the clock of `time.perf_counter`."""

    at_s: float = math.inf
    processes: Killable = field(default_factory=Killable)  # that the checks wait for

    def left_s(self, most_s: float) -> float:
        """The time that is left, but no more than `most_s`."""
        return min(most_s, max(0.0, self.at_s - time.perf_counter()))

    @property
    def is_over(self) -> bool:
        """True if no time is left."""
        return time.perf_counter() >= self.at_s
