"""CPU use of other programs, which makes times unsteady (Linux)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_GOVERNORS = Path("/sys/devices/system/cpu")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)  # idle and waiting for disks, among the numbers of /proc/stat
_COUNTED = 8  # what follows counts guests' time, which the first numbers contain


@dataclass(frozen=True)
class CpuTimes:
    """CPU time in seconds: of the whole machine, and of this process and its descendants."""

    at_s: float
    machine_s: float
    own_s: float

    def cores_of_others(self, later: CpuTimes) -> float:
        """Mean number of cores that other programs kept busy from here until `later`."""
        elapsed_s = later.at_s - self.at_s
        if elapsed_s <= 0:
            return 0.0
        used_s = (later.machine_s - self.machine_s) - (later.own_s - self.own_s)
        return min(cores(), max(0.0, used_s / elapsed_s))


def cpu_times() -> CpuTimes:
    """The CPU time used until now."""
    counts = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]][:_COUNTED]
    busy = sum(count for place, count in enumerate(counts) if place not in _IDLE)
    return CpuTimes(time.monotonic(), busy / _TICKS_PER_S, _own_ticks() / _TICKS_PER_S)


def cores() -> int:
    """Number of cores of the machine."""
    return os.cpu_count() or 1


def governors() -> tuple[str, ...]:
    """The frequency governors of the CPU's cores, each once; none where the system does not tell."""
    paths = _GOVERNORS.glob("cpu*/cpufreq/scaling_governor")
    return tuple(sorted({path.read_text().strip() for path in paths}))


def _own_ticks() -> int:
    """CPU time of this process, of its living descendants, and of those that they have waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in os.scandir("/proc"):
        if not folder.name.isdigit():
            continue
        try:
            words = Path(folder.path, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(words[1])
        ticks[int(folder.name)] = sum(map(int, words[11:15]))
    own, members = 0, {os.getpid()}
    while members:
        own += sum(ticks.get(member, 0) for member in members)
        members = {child for child, parent in parents.items() if parent in members}
    return own
