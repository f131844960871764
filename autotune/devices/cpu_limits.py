"""The number of cores that this process may use; OpenCL reports all cores of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def cpu_limits(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> str:
    """The allowed cores, and the quota of the control groups in cores: `4 cores, quota 2.5`."""
    quota = min(_quotas(groups, own), default=None)
    return f"{len(os.sched_getaffinity(0))} cores" + (f", quota {quota:g}" if quota is not None else "")


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Quotas in cores of the process's control group and its parents, in both versions of control groups."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for _, controllers, place in (line.split(":", 2) for line in lines):
        if controllers and "cpu" not in controllers.split(","):
            continue
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        folder = groups / ("cpu" if controllers else "") / place.strip("/")
        while folder.is_relative_to(groups):
            try:
                quota, period = " ".join((folder / name).read_text() for name in names).split()
            except (
                OSError,
                ValueError,
            ):  # the root has no such file, and groups outside a container are not visible
                quota = "max"
            if quota not in ("max", "-1"):
                yield int(quota) / int(period)
            folder = folder.parent
