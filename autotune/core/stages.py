"""The present stage of a run, for progress displays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A part of a run, such as compiling, with its progress if that can be counted, and its sizes.

    `left_s` is the time that it still takes, where that is known better than by the counts alone; `configs`
    is how many configurations a check of winners gets.
    """

    name: str
    done: int = 0
    total: int | None = None
    sizes: str = ""
    left_s: float | None = None
    configs: int | None = None

    def __str__(self) -> str:
        name = f"{self.name} at {self.sizes}" if self.sizes else self.name
        return name if self.total is None else f"{name} {self.done} of {self.total}"


def of_last_round(action: str) -> str:
    """The name of a stage of the last round."""
    return f"last round: {action}"


COMPILING, VERIFYING, TIMING = map(of_last_round, ("compiling", "verifying", "timing, round"))
OnStage = Callable[[Stage], None]


def unobserved(_: Stage) -> None:
    """Ignore a stage: for runs whose progress nobody watches."""
