"""The memory that this process may use (Linux)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from autotune.processes.control_groups import GROUPS, OWN, group_limits

_LIMITS = {1: ("memory.limit_in_bytes",), 2: ("memory.max",)}  # by version of control groups


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
    limits = [int(text) for (text,) in group_limits("memory", _LIMITS, groups, own) if text != "max"]
    limit = min(limits, default=total)
    return HostMemory(min(total, limit), min(free, limit))
