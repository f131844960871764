"""Reads clocks, throttling, energy and other processes of a GPU from NVIDIA's management library (NVML).

Without the package, the library or the permission, readings are empty and nothing fails. The same library
sets the clock and the power limit. GPUs are listed without the packages for the driver, which take long to
import.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from autotune.core.records import DeviceInfo, Value
from autotune.errors import LaunchError
from autotune.hardware.cuda_driver import cuda_device, device_count, pci_address

# NVML's bits for reasons that slow a busy GPU down
_THROTTLE_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0  # NVML's numbers
_CLOCK_STEP_MHZ = 15
_MAX_SETTLING_S = 0.5  # an idle GPU may never show the clock that it was given


def list_gpus(backend: str) -> list[DeviceInfo]:
    """The GPUs that the driver shows, as devices of a backend; none without a driver."""
    return [
        replace(cuda_device(number), backend=backend, limits=NvmlMonitor(pci_address(number)).limits())
        for number in range(device_count())
    ]


class NvmlMonitor:
    """Readings of one GPU, identified by its PCI address."""

    def __init__(self, pci_bus_id: str) -> None:
        self._nvml: Any = None
        self._first_count: int | None = None
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
        reasons = self._read("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        conditions: dict[str, Value | None] = {
            "sm_clock_mhz": self._read("nvmlDeviceGetClockInfo", _SM_CLOCK),
            "temperature_c": self._read("nvmlDeviceGetTemperature", _GPU_SENSOR),
            "throttled": ", ".join(name for bit, name in _THROTTLE_REASONS.items() if bit & reasons),
            "other_processes": self._others(),
        }
        return {name: value for name, value in conditions.items() if value not in (None, "", 0)}

    def limits(self) -> str:
        """Power limit, and clocks as maximum/set: `700 W, SM 1980/1830 MHz`."""
        power_mw = self._read("nvmlDeviceGetPowerManagementLimit")
        parts = [] if power_mw is None else [f"{power_mw / 1e3:g} W"]
        for name, kind in (("SM", _SM_CLOCK), ("memory", _MEMORY_CLOCK)):
            clocks = ("nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetApplicationsClock")
            values = [str(mhz) for clock in clocks if (mhz := self._read(clock, kind))]
            parts += [f"{name} {'/'.join(values)} MHz"] if values else []
        return ", ".join(parts)

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded, in J; None if the GPU does not count it."""
        used_mj = self._read("nvmlDeviceGetTotalEnergyConsumption")
        return None if used_mj is None else used_mj * 1e-3

    def control(self) -> NvmlControl | None:
        """Sets the clock and power limit of this GPU; None without NVML."""
        uuid = self._read("nvmlDeviceGetUUID")
        try:
            return NvmlControl(uuid) if uuid else None
        except LaunchError:  # for example, the GPU is a part of another, which is hidden
            return None

    def _processes(self) -> int | None:
        running = self._read("nvmlDeviceGetComputeRunningProcesses")
        return None if running is None else len(running)

    def _others(self) -> int | None:
        """The number of other processes, the lower of now and when this one began: some may have ended."""
        now = self._processes()
        if now is None or self._first_count is None:
            return self._first_count
        return min(self._first_count, max(0, now - 1))

    def _read(self, name: str, *arguments: int) -> Any:
        """The result of an NVML function for the GPU; None if that is not supported or not permitted."""
        if self._nvml is None:
            return None
        try:
            return getattr(self._nvml, name)(self._gpu, *arguments)
        except _errors(self._nvml):
            return None


def _errors(nvml: Any) -> tuple[type[Exception], ...]:
    """The exceptions of NVML's functions; a function that the driver is too old for raises no NVMLError."""
    return nvml.NVMLError, getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)


class NvmlControl:
    """Sets the clock and the power limit of one GPU, as `ClockControl` asks; raises LaunchError."""

    def __init__(self, uuid: str) -> None:
        try:
            import pynvml
        except ImportError:
            raise LaunchError("clocks are set with the package nvidia-ml-py, which is missing") from None
        self.address = ("nvml", uuid)
        self._nvml: Any = pynvml
        self._call("nvmlInit")
        self._gpu = self._call("nvmlDeviceGetHandleByUUID", uuid)

    def read(self, name: str) -> float:
        """The power limit in W; 0 for the clock, because NVML does not tell to which it is locked."""
        if name == "sm_clock_mhz":
            return 0.0
        return float(self._call("nvmlDeviceGetPowerManagementLimit", self._gpu)) / 1e3

    def allowed(self, name: str) -> Sequence[int]:
        """The clocks that the GPU supports with its fastest memory, and its power limits in W."""
        if name == "sm_clock_mhz":
            fastest = max(self._call("nvmlDeviceGetSupportedMemoryClocks", self._gpu))
            return sorted(self._call("nvmlDeviceGetSupportedGraphicsClocks", self._gpu, fastest))
        low_mw, high_mw = self._call("nvmlDeviceGetPowerManagementLimitConstraints", self._gpu)
        return range(-(-low_mw // 1000), high_mw // 1000 + 1)

    def set(self, name: str, value: float) -> None:
        """Lock the clock, unlock it for 0, or set the power limit; wait until NVML shows it."""
        gpu = self._gpu
        if name == "power_limit_w":
            self._call("nvmlDeviceSetPowerManagementLimit", gpu, round(value * 1e3))
            _wait(lambda: self._call("nvmlDeviceGetEnforcedPowerLimit", gpu) / 1e3 - value, 1)
        elif value:
            self._call("nvmlDeviceSetGpuLockedClocks", gpu, round(value), round(value))
            clock = partial(self._call, "nvmlDeviceGetClockInfo", gpu, _SM_CLOCK)
            _wait(lambda: clock() - value, _CLOCK_STEP_MHZ)
        else:
            self._call("nvmlDeviceResetGpuLockedClocks", gpu)

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(*arguments)
        except _errors(self._nvml) as error:
            raise LaunchError(
                f"NVML refuses {name} ({error}): run the search as root, or remove `device` from the space "
                "and have an administrator set clock (nvidia-smi -lgc MHZ) and power limit (nvidia-smi -pl W)"
            ) from None


def _wait(off: Callable[[], float], tolerance: float) -> None:
    """Wait until a reading is off by less than a tolerance."""
    deadline_s = time.monotonic() + _MAX_SETTLING_S
    while abs(off()) >= tolerance and time.monotonic() < deadline_s:
        time.sleep(0.005)
