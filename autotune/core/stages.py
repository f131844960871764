"""The present stage of a run, for progress displays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A part of a run, such as compiling, with its progress if that can be counted."""

    name: str
    done: int = 0
    total: int | None = None

    def __str__(self) -> str:
        return self.name if self.total is None else f"{self.name} {self.done} of {self.total}"


OnStage = Callable[[Stage], None]


def unobserved(_: Stage) -> None:
    """Ignore a stage: for runs whose progress nobody watches."""
