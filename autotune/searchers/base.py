"""The interface of searchers: what one does, what it is given, and results of other devices to start from.

A searcher proposes configurations and reads trials. It knows no kernels, devices, journals or caches.
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
"""Returns one trial per configuration, in order. A configuration outside the space is PRUNED; neither it nor
a repeated one costs budget. Raises BudgetSpent: let it pass through."""

FASTER = 0.01  # share of the time by which something counts as faster
_UNKNOWN = Traits()


@dataclass(frozen=True)
class SourceResults:
    """Results of the same kernel on another device or for another problem.

    Attributes:
        source: the device and problem, for messages.
        results: configurations with their time in milliseconds, None for a failure.
        traits: of the device.
    """

    source: str
    results: tuple[tuple[Config, float | None], ...]
    traits: Traits = _UNKNOWN


class Searcher(Protocol):
    """Chooses which configurations to try."""

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose until there is nothing left to propose, or `evaluate` raises BudgetSpent."""
        ...


@dataclass(frozen=True)
class StoppingEstimate:
    """How much of a space was tried, and what the rest promises according to a model of the trials.

    Attributes:
        tried: configurations that were tried.
        valid: configurations of the space.
        improvement_probability: that an untried one is at least 1% faster than the best.
        expected_improvement: share of the best time that trying all of them is expected to save. Both are
            None where too few trials have a time.
    """

    tried: int
    valid: int
    improvement_probability: float | None
    expected_improvement: float | None
