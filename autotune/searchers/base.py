"""The one method every searcher has, what it is handed, and what it may be told of other devices.

A searcher proposes configurations and reads trials. It never sees kernels, devices, journals or caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.hardware.names import Traits
from autotune.space import Space

Evaluate = Callable[[Sequence[Config]], list[Trial]]
"""Answers with one trial per configuration, in order. A configuration outside the space is answered
PRUNED and costs nothing, one asked before costs nothing. Raises BudgetSpent: let it pass through."""

_NOT_KNOWN = Traits()


@dataclass(frozen=True)
class SourceResults:
    """What is known of the same kernel elsewhere: on another device, or for another problem.

    `results` are configurations with their time in milliseconds, None for a failure; `traits` are those of
    the device.
    """

    source: str
    results: tuple[tuple[Config, float | None], ...]
    traits: Traits = _NOT_KNOWN


class Searcher(Protocol):
    """A way to choose which configurations to try."""

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose until there is nothing left to propose, or `evaluate` raises BudgetSpent."""
        ...
