"""The number of cores that this process may use; OpenCL reports all cores of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from autotune.processes.control_groups import GROUPS, OWN, group_folders

_FILES = {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)}  # by version


def cpu_limits(groups: Path = GROUPS, own: Path = OWN) -> str:
    """The allowed cores, and the control groups' quota in cores: `4 cores, quota 2.5`."""
    quota = min(_quotas(groups, own), default=None)
    return f"{len(os.sched_getaffinity(0))} cores" + (f", quota {quota:g}" if quota is not None else "")


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Quotas in cores of the process's control group and its parents."""
    for folder, version in group_folders("cpu", groups, own):
        try:
            quota, period = " ".join((folder / name).read_text() for name in _FILES[version]).split()
        except (OSError, ValueError):  # the root has no such file
            continue
        if quota not in ("max", "-1"):
            yield int(quota) / int(period)
