"""The rates that a device can reach: as measured, else by its data sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from autotune.core.records import DeviceInfo
from autotune.hardware.architectures import WARP
from autotune.hardware.peak_rates import (
    SHARED_BYTES_PER_CLOCK,
    SPECIAL_PER_CLOCK,
    boost_mhz,
    host_bytes_per_s,
    lanes_per_clock,
    tensor_operations_per_s,
)
from autotune.serving.ceilings import TENSOR, Ceiling

_FEW_STORES, _MOSTLY_STORES = 0.2, 0.8  # shares of stores below and above which memory only reads or writes
MULTIPLY_ADD = 2  # operations, as ceilings and spaces count them


@dataclass(frozen=True)
class Rate:
    """A device's rate per second; nominal unless it was measured."""

    per_s: float
    is_measured: bool

    def scaled(self, factor: float) -> Rate:
        """The rate of something of which there is more or less."""
        return Rate(self.per_s * factor, self.is_measured)


def nominal(device: DeviceInfo, name: str) -> float | None:
    """A ceiling according to the driver or the data sheet, by its name; None if they do not have it."""
    if name == "memory read":
        return device.memory_bandwidth_bytes_per_s
    if device.kind != "gpu":
        return None
    if name.startswith(("copy to", "copy from")):
        return host_bytes_per_s(device.architecture)
    if name == TENSOR:
        return tensor_operations_per_s(device)
    lanes = lanes_per_clock(device.architecture, name.removesuffix(" multiply-add"))
    per_clock = SHARED_BYTES_PER_CLOCK if name == "shared memory" else MULTIPLY_ADD * (lanes or 0)
    mhz = boost_mhz(device.architecture)
    return per_clock * device.compute_units * mhz * 1e6 if per_clock and mhz else None


class DeviceRates:
    """The rates of a device; None for those that are neither measured nor known."""

    def __init__(self, device: DeviceInfo, ceilings: Mapping[str, Ceiling]) -> None:
        self._device, self._ceilings = device, ceilings

    def memory_bytes(self, store_share: float) -> Rate | None:
        """Bytes of memory, for accesses of which this share is stores."""
        kind = "read" if store_share < _FEW_STORES else "write" if store_share > _MOSTLY_STORES else "copy"
        return self._rate(f"memory {kind}", "memory read")

    def cache_bytes(self) -> Rate | None:
        """Bytes of the fastest cache that was measured."""
        rates = [ceiling.value for name, ceiling in self._ceilings.items() if name.startswith("read of")]
        return Rate(max(rates), True) if rates else None

    def shared_passes(self) -> Rate | None:
        """Passes of a warp to shared memory, one in a clock."""
        rate = self._rate("shared memory")
        return rate.scaled(1 / SHARED_BYTES_PER_CLOCK) if rate else None

    def operations(self, pipe: str) -> Rate | None:
        """Operations of threads on one of `PIPES`, a multiply-add as one."""
        if pipe == "special":
            lanes, rate = lanes_per_clock(self._device.architecture, "float32"), self.operations("float32")
            return rate.scaled(SPECIAL_PER_CLOCK / lanes) if rate and lanes else None
        name = TENSOR if pipe == "tensor" else f"{'int32' if pipe == 'integer' else pipe} multiply-add"
        rate = self._rate(name)
        return rate.scaled(1 / MULTIPLY_ADD) if rate else None

    def atomics(self, counters: float) -> Rate | None:
        """Atomics of warps whose threads have this many counters.

        Rates are measured for one counter and for one of each thread. Between them, the logarithm of the rate
        is taken to be linear in that of the number.
        """
        single, many = self._rate("atomics to one counter"), self._rate("atomics to many counters")
        if single is None or many is None:
            return None
        part = log2(max(1.0, min(counters, WARP))) / log2(WARP)
        return Rate(float(single.per_s ** (1 - part) * many.per_s**part), True)

    def _rate(self, name: str, like: str = "") -> Rate | None:
        """The measured ceiling of a name; else the nominal one, of another name if that stands for it."""
        ceiling = self._ceilings.get(name)
        if ceiling and ceiling.value:
            return Rate(ceiling.value, True)
        per_s = nominal(self._device, like or name)
        return Rate(per_s, False) if per_s else None
