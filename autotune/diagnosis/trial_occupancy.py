"""Occupancy: the share of a multiprocessor that a configuration uses."""

from __future__ import annotations

from math import prod

from autotune.compilers.occupancy import Occupancy, occupancy
from autotune.core.records import Config, DeviceInfo, Launch
from autotune.core.trials import Trial
from autotune.hardware.architectures import ARCHITECTURES
from autotune.space import ValidSpace


def largest_launch(space: ValidSpace, config: Config) -> Launch:
    """The launch of a configuration with the most threads."""
    return max(space.launches(config), key=lambda step: step.threads)


def occupancy_of(space: ValidSpace, trial: Trial) -> Occupancy | None:
    """The occupancy of a trial's largest launch; None where `occupancy_in` has none."""
    if trial.registers is None:
        return None
    return occupancy_in(space.device, largest_launch(space, trial.config), trial)


def occupancy_in(device: DeviceInfo, launch: Launch, trial: Trial) -> Occupancy | None:
    """The occupancy of a launch of a trial; None on unknown architectures, and without known registers."""
    where, threads = ARCHITECTURES.get(device.architecture), prod(launch.block)
    if where is None or trial.registers is None or threads > where.device.max_threads_per_block:
        return None
    return occupancy(where, threads, trial.registers, (trial.shared_bytes or 0) + launch.shared_bytes)
