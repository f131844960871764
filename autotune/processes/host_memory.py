"""The memory that this process may use (Linux)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from autotune.processes.control_groups import GROUPS, OWN, group_folders

_LIMITS = {1: "memory.limit_in_bytes", 2: "memory.max"}  # by version of control groups


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
    limit = min(_limits_bytes(groups, own), default=total)
    return HostMemory(min(total, limit), min(free, limit))


def _limits_bytes(groups: Path, own: Path) -> Iterator[int]:
    """The limits of the process's control group and its parents; a group without one has a huge number."""
    for folder, version in group_folders("memory", groups, own):
        with suppress(OSError, ValueError):  # no such file, or `max`
            yield int((folder / _LIMITS[version]).read_text())
