"""Results that `best_config` serves, for a task or for a device that is only named."""

from __future__ import annotations

from pathlib import Path

from autotune.core.records import Config, DeviceInfo, Tier
from autotune.devices.listing import find_device
from autotune.errors import InputError, NoConfig
from autotune.hardware.names import slug, traits_of_name
from autotune.serving.best import Best
from autotune.serving.cache import folders, read_roots
from autotune.serving.lookup import best_config
from autotune.tuning.task import TuningTask


def resolve_device(device: str | None, cache: Path | None) -> DeviceInfo | str:
    """Resolve a device to serve results for: one of a cache, one of this machine, or any with a known vendor.

    Args:
        device: As `--device`; None takes the device that a search would take.
        cache: The cache folder, as `--cache`.

    Raises:
        InputError: The name is none of these.
    """
    cached = [folder for root in read_roots(cache) for folder in folders(root)]
    if device is not None and slug(device) in cached:
        return device
    try:
        return find_device(device, cached)[1]
    except InputError:
        if device is not None and traits_of_name(device).vendor is not None:
            return device
        raise


def served_best(
    task: TuningTask, cache: Path | None, *, strict: bool = False, min_match: Tier = Tier.DEFAULT
) -> Best | None:
    """The result that `best_config` serves for the task's problem, if it is in the space; else None."""
    problem = task.space.problem
    try:
        best = best_config(
            task.spec.kernel,
            task.device,
            dtype=problem.dtype,
            strict=strict,
            min_match=min_match,
            on_miss=None,
            cache=cache,
            data=problem.data or None,
            **problem.sizes,
        )
    except (NoConfig, InputError):  # not tuned yet, or not since the space's sizes or types changed
        return None
    return best if best.config in task.space else None


def tuned_best(task: TuningTask, cache: Path | None) -> Config | None:
    """The cached best for exactly this device and problem, or None."""
    best = served_best(task, cache, strict=True, min_match=Tier.EXACT)
    return best.config if best else None
