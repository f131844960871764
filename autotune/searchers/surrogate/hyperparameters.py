"""What the models of a search hand on to the next ones."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.searchers.surrogate.encoding import Floats


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Hyperparameters of the latest fits, from which the next ones start."""

    time: Floats | None = None
    time_without_sources: Floats | None = None
    failure: Floats | None = None
