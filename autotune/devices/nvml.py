"""Reads clocks, throttling, energy and other processes of a GPU from NVIDIA's management library (NVML).

Without the package, the library or the permission the readings are empty, and nothing fails.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from autotune.core.records import Value

# NVML's bits for reasons that slow a busy GPU down
_THROTTLE_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


class NvmlMonitor:
    """Readings of one GPU, found by its PCI address."""

    def __init__(self, pci_bus_id: str) -> None:
        self._nvml: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._gpu = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
        except (ImportError, OSError):
            return
        except pynvml.NVMLError:
            return
        self._nvml = pynvml
        self._first_count = self._processes()  # before this process uses the GPU

    def conditions(self) -> dict[str, Value]:
        """Clock in MHz, temperature, throttle reasons and the number of other processes, as far as known."""
        if self._nvml is None:
            return {}
        nvml, gpu = self._nvml, self._gpu
        reasons = self._read(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
        found: dict[str, Value | None] = {
            "sm_clock_mhz": self._read(lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            "temperature_c": self._read(
                lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
            ),
            "throttled": ", ".join(name for bit, name in _THROTTLE_REASONS.items() if bit & (reasons or 0)),
            "other_processes": self._others(),
        }
        return {name: value for name, value in found.items() if value not in (None, "", 0)}

    def limits(self) -> str:
        """Power limit, and clocks as maximum/set: `700 W, SM 1980/1830 MHz`."""
        if self._nvml is None:
            return ""
        nvml, gpu = self._nvml, self._gpu
        power_mw = self._read(lambda: nvml.nvmlDeviceGetPowerManagementLimit(gpu))
        found = [] if power_mw is None else [f"{power_mw / 1e3:g} W"]
        for name, kind in (("SM", nvml.NVML_CLOCK_SM), ("memory", nvml.NVML_CLOCK_MEM)):
            clocks = (nvml.nvmlDeviceGetMaxClockInfo, nvml.nvmlDeviceGetApplicationsClock)
            values = [str(mhz) for clock in clocks if (mhz := self._read(partial(clock, gpu, kind)))]
            found += [f"{name} {'/'.join(values)} MHz"] if values else []
        return ", ".join(found)

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded, in J; None if the GPU does not count it."""
        if self._nvml is None:
            return None
        used_mj = self._read(lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._gpu))
        return None if used_mj is None else used_mj * 1e-3

    def _processes(self) -> int | None:
        """How many processes compute on the GPU."""
        nvml, gpu = self._nvml, self._gpu
        found: int | None = self._read(lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(gpu)))
        return found

    def _others(self) -> int | None:
        """How many others computed before this process, and do so beside it: one may have been ending."""
        now = self._processes()
        if now is None or self._first_count is None:
            return self._first_count
        return min(self._first_count, max(0, now - 1))

    def _read(self, reading: Any) -> Any:
        try:
            return reading()
        except self._nvml.NVMLError:  # not supported, or not permitted
            return None
