"""The cores and the memory that this process may use, on the machine or in a container (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Files of a control group, by version of control groups
_MEMORY = {1: ("memory.limit_in_bytes",), 2: ("memory.max",)}
_CORES = {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)}


class HostMemory(NamedTuple):
    """The memory of the machine, or of the container that this process is in."""

    total_bytes: int
    free_bytes: int  # at the moment, for programs


def host_memory(
    meminfo: Path = Path("/proc/meminfo"), groups: Path = GROUPS, own: Path = OWN
) -> HostMemory | None:
    """Read it; None where the system does not tell."""
    try:
        rows = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        total, free = (int(rows[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (OSError, ValueError, LookupError):
        return None
    limits = [int(text) for (text,) in _group_limits("memory", _MEMORY, groups, own) if text != "max"]
    limit = min(limits, default=total)
    return HostMemory(min(total, limit), min(free, limit))


def cpu_limits(groups: Path = GROUPS, own: Path = OWN) -> str:
    """The allowed cores, and the control groups' quota in cores: `4 cores, quota 2.5`."""
    limits = _group_limits("cpu", _CORES, groups, own)
    quotas = [int(quota) / int(period) for quota, period in limits if quota not in ("max", "-1")]
    quota = min(quotas, default=None)
    return f"{len(os.sched_getaffinity(0))} cores" + (f", quota {quota:g}" if quota is not None else "")


def _group_limits(
    controller: str, files: Mapping[int, Sequence[str]], groups: Path, own: Path
) -> Iterator[list[str]]:
    """The words in files of the process's group, which `own` names, and of its parents.

    The names of the files are by version of control groups. Groups outside a container are not visible in it,
    and the root has no limits: files may not exist.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for _, controllers, place in (line.split(":", 2) for line in lines):
        if controllers and controller not in controllers.split(","):
            continue
        folder = groups / (controller if controllers else "") / place.strip("/")
        while folder.is_relative_to(groups):
            with suppress(OSError):
                yield " ".join((folder / name).read_text() for name in files[1 if controllers else 2]).split()
            folder = folder.parent
