"""Little's law: what has to be in flight to keep memory or arithmetic units busy, against what is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from autotune.core.records import DeviceInfo
from autotune.diagnosis.device_rates import MULTIPLY_ADD, DeviceRates
from autotune.hardware.architectures import WARP
from autotune.serving.ceilings import Ceiling


@dataclass(frozen=True)
class LittlesLaw:
    """Bytes that a multiprocessor needs in flight to keep memory busy, against those that it has."""

    latency_s: float  # of one load
    needed_bytes: float  # latency times bandwidth, for one multiprocessor
    held_bytes: float  # what its resident threads load at once
    warps: int  # resident ones
    enough_warps: int  # those that would load as much as is needed

    def __str__(self) -> str:
        return (
            f"{self.needed_bytes / 1024:.1f} KiB in flight per multiprocessor keep memory busy "
            f"({self.latency_s * 1e9:.0f} ns); its {self.warps} warps have {self.held_bytes / 1024:.1f} KiB, "
            f"{self.enough_warps} would be enough"
        )


def littles_law(
    device: DeviceInfo, ceilings: Mapping[str, Ceiling], warps: int, bytes_per_thread: float
) -> LittlesLaw | None:
    """Apply Little's law to loads from memory; None without a measured latency, or without loads."""
    latency = ceilings.get("latency of memory")
    bandwidth = DeviceRates(device, ceilings).memory_bytes(store_share=0.0)
    if latency is None or bandwidth is None or bytes_per_thread <= 0 or device.kind != "gpu":
        return None
    needed_bytes = latency.value * bandwidth.per_s / device.compute_units
    bytes_per_warp = WARP * bytes_per_thread
    return LittlesLaw(
        latency_s=latency.value,
        needed_bytes=needed_bytes,
        held_bytes=warps * bytes_per_warp,
        warps=warps,
        enough_warps=ceil(needed_bytes / bytes_per_warp),
    )


@dataclass(frozen=True)
class ArithmeticInFlight:
    """Little's law for arithmetic: what a multiprocessor needs in flight to keep its units busy."""

    dtype: str
    latency_s: float  # of one multiply-add
    needed: float  # multiply-adds in flight: latency times throughput, for one multiprocessor
    warps: int  # resident ones

    @property
    def enough_warps(self) -> int:
        """The warps that are enough if each has one in flight."""
        return ceil(self.needed / WARP)

    def __str__(self) -> str:
        in_flight = self.enough_warps / self.warps
        return (
            f"{self.needed:.0f} multiply-adds of {self.dtype} per multiprocessor keep its units busy "
            f"({self.latency_s * 1e9:.1f} ns): {self.enough_warps} warps with one each; of {self.warps} "
            f"warps, {'one each is' if in_flight <= 1 else f'{in_flight:.1f} each are'} enough"
        )


def arithmetic_in_flight(
    device: DeviceInfo, ceilings: Mapping[str, Ceiling], warps: int, dtype: str
) -> ArithmeticInFlight | None:
    """Apply Little's law to multiply-adds; None where latency or throughput were not measured."""
    latency = ceilings.get(f"latency of {dtype} multiply-add")
    throughput = ceilings.get(f"{dtype} multiply-add")
    if latency is None or throughput is None or warps <= 0 or device.kind != "gpu":
        return None
    needed = latency.value * throughput.value / MULTIPLY_ADD / device.compute_units
    return ArithmeticInFlight(dtype, latency.value, needed, warps)
