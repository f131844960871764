"""Occupancy: the share of a multiprocessor that a configuration uses."""

from __future__ import annotations

from math import prod

from autotune.compilers.occupancy import Occupancy, occupancy
from autotune.core.records import Config, Launch
from autotune.core.trials import Trial
from autotune.hardware.architectures import ARCHITECTURES
from autotune.space import Space


def largest_launch(space: Space, config: Config) -> Launch:
    """The launch of a configuration with the most threads."""
    return max(space.launches(config), key=lambda step: step.threads)


def occupancy_of(space: Space, trial: Trial) -> Occupancy | None:
    """The occupancy of a configuration's largest launch; None for devices other than known NVIDIA GPUs."""
    where = ARCHITECTURES.get(space.device.architecture)
    if where is None or trial.registers is None:
        return None
    main = largest_launch(space, trial.config)
    shared_bytes = (trial.shared_bytes or 0) + main.shared_bytes
    return occupancy(where, prod(main.block), trial.registers, shared_bytes)
