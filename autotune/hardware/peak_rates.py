"""Peak arithmetic rates of NVIDIA GPUs, as ceilings of a roofline.

Sources: CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions"; boost clocks from
NVIDIA's data sheets for the example GPU of each architecture.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.core.records import DeviceInfo
from autotune.hardware.architectures import ARCHITECTURES

# Results of one type per clock of a multiprocessor; those of floating point may be fused multiply-adds.
_PER_CLOCK = {
    #          float16 float32 float64 int32
    "sm_75": (128, 64, 2, 64),
    "sm_80": (256, 64, 32, 64),
    "sm_86": (128, 128, 2, 64),
    "sm_87": (128, 128, 2, 64),
    "sm_89": (128, 128, 2, 64),
    "sm_90": (256, 128, 64, 64),
    "sm_100": (256, 128, 64, 64),
    "sm_120": (128, 128, 2, 128),
}
_TYPES = {"float16": 0, "float32": 1, "float64": 2, "int32": 3, "uint32": 3}
SPECIAL_PER_CLOCK = 16  # of every architecture here: reciprocals, roots, sines, powers of 2
SHARED_BYTES_PER_CLOCK = 128  # likewise
_BOOST_MHZ = {
    **{"sm_75": 1590, "sm_80": 1410, "sm_86": 1695, "sm_87": 1300, "sm_89": 2040},
    **{"sm_90": 1980, "sm_100": 1965, "sm_120": 2407},
}
# Of tensor cores: multiply-adds of float16 or bfloat16 with sums in float32, and the data sheets' clock.
_TENSOR_PER_CLOCK_AND_MHZ = {
    **{"sm_80": (1024, 1410), "sm_86": (512, 1695), "sm_89": (512, 2040)},
    **{"sm_90": (2048, 1830), "sm_120": (256, 2407)},
}
# Of the connection to the host in one direction: 16 lanes of PCI Express 3, 4 or 5.
_HOST_BYTES_PER_S = {
    **{"sm_75": 15.75e9, "sm_80": 31.5e9, "sm_86": 31.5e9, "sm_89": 31.5e9},
    **{"sm_90": 63.0e9, "sm_100": 63.0e9, "sm_120": 63.0e9},
}


@dataclass(frozen=True)
class PeakRate:
    """A ceiling: what kind of operations, how many in a second, and where the figure is from."""

    name: str
    gflops: float
    origin: str


def peak_rates(device: DeviceInfo, dtype: str, clock_mhz: float | None = None) -> tuple[PeakRate, ...]:
    """The ceilings of a device's arithmetic without tensor cores; none where they are not known.

    Args:
        device: The device; its multiprocessors count.
        dtype: The type that is calculated with.
        clock_mhz: The clock that was measured; None takes the boost clock of the architecture's example GPU.
    """
    if device.architecture not in _PER_CLOCK or dtype not in _TYPES or device.kind != "gpu":
        return ()
    mhz = clock_mhz or _BOOST_MHZ[device.architecture]
    example = ARCHITECTURES[device.architecture].device.name
    clock = "the highest clock of the trials" if clock_mhz else f"the boost clock of {example}"
    origin = f"calculated for {mhz:,.0f} MHz, {clock}"
    gflops = _PER_CLOCK[device.architecture][_TYPES[dtype]] * device.compute_units * mhz * 1e-3
    if not dtype.startswith("float"):
        return (PeakRate(f"{dtype} additions", gflops, origin),)
    return (
        PeakRate(f"{dtype} multiply-adds", 2 * gflops, origin),
        PeakRate(f"{dtype} additions", gflops, origin),
    )


def lanes_per_clock(architecture: str, dtype: str) -> int | None:
    """Operations of one type that a multiprocessor starts per clock; None where not known."""
    known = architecture in _PER_CLOCK and dtype in _TYPES
    return _PER_CLOCK[architecture][_TYPES[dtype]] if known else None


def tensor_operations_per_s(device: DeviceInfo) -> float | None:
    """What tensor cores do with float16 or bfloat16 and sums in float32; None where not known."""
    per_clock, mhz = _TENSOR_PER_CLOCK_AND_MHZ.get(device.architecture, (0, 0))
    return 2 * per_clock * device.compute_units * mhz * 1e6 or None


def host_bytes_per_s(architecture: str) -> float | None:
    """The bandwidth of the connection to the host, in one direction; None where not known."""
    return _HOST_BYTES_PER_S.get(architecture)


def boost_mhz(architecture: str) -> float | None:
    """The boost clock of an architecture's example GPU; None where not known."""
    return _BOOST_MHZ.get(architecture)
