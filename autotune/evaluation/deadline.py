"""When checks should end; the processes that they wait for can be killed at any time."""

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
    """When checks should end, on the clock of `time.perf_counter`, and what they could not do."""

    at_s: float = math.inf
    late: dict[str, None] = field(default_factory=dict)  # parts that got no time
    broken: dict[str, None] = field(default_factory=dict)  # tools that do not work here
    processes: Killable = field(default_factory=Killable)  # that the checks wait for

    def left_s(self, most_s: float) -> float:
        """The time that is left, but no more than `most_s`."""
        return min(most_s, max(0.0, self.at_s - time.perf_counter()))

    @property
    def is_over(self) -> bool:
        """True if no time is left."""
        return time.perf_counter() >= self.at_s

    def allows(self, *what: str) -> bool:
        """True if there is time for parts of a check; else the parts are noted as late."""
        is_over = self.is_over  # asked once: time goes on
        if is_over:
            self.note_late(*what)
        return not is_over

    def note_late(self, *what: str) -> None:
        """Note parts that got no time."""
        self.late.update(dict.fromkeys(what))

    def note_broken(self, tool: str) -> None:
        """Note a tool that does not work here."""
        self.broken[tool] = None
