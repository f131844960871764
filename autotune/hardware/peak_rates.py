"""Peak arithmetic rates of NVIDIA GPUs, as ceilings of a roofline.

Sources: CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions"; boost clocks and
tensor rates from NVIDIA's data sheets for the example GPU of each architecture. Tensor rates of product lines
are from NVIDIA's white papers on GA102 (RTX 3090, RTX A6000), Ada (RTX 4090) and RTX Blackwell (RTX 5090, RTX
PRO 6000), "with FP32 Accumulate", and from the data sheets of L20, L40, L40S and H20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from autotune.core.records import DeviceInfo
from autotune.hardware.architectures import ARCHITECTURES

SPECIAL_PER_CLOCK = 16  # of every architecture here: reciprocals, roots, sines, powers of 2
SHARED_BYTES_PER_CLOCK = 128  # likewise


class _Rates(NamedTuple):
    """The rates of one architecture; None if unknown.

    Of each type, they are results per clock of a multiprocessor; a fused multiply-add counts as one. Tensor
    cores multiply and add float16 or bfloat16 with sums in float32; some product lines do less.
    """

    float16: int
    float32: int
    float64: int
    int32: int
    boost_mhz: float  # of the example GPU
    tensor: int | None  # multiply-adds per clock
    tensor_mhz: float | None  # for which the data sheet gives these
    host_bytes_per_s: float | None  # one direction of 16 lanes of PCI Express 3, 4 or 5


_RATES = {
    #               float16 float32 float64 int32 MHz tensor MHz host
    "sm_75": _Rates(128, 64, 2, 64, 1590, None, None, 15.75e9),
    "sm_80": _Rates(256, 64, 32, 64, 1410, 1024, 1410, 31.5e9),
    "sm_86": _Rates(128, 128, 2, 64, 1695, 512, 1695, 31.5e9),
    "sm_87": _Rates(128, 128, 2, 64, 1300, None, None, None),
    "sm_89": _Rates(128, 128, 2, 64, 2040, 512, 2040, 31.5e9),
    "sm_90": _Rates(256, 128, 64, 64, 1980, 2048, 1830, 63.0e9),
    "sm_100": _Rates(256, 128, 64, 64, 1965, None, None, 63.0e9),
    "sm_120": _Rates(128, 128, 2, 128, 2407, 512, 2407, 63.0e9),
}
_TENSOR_SHARE = {"geforce": 1 / 2, "l20": 1 / 2, "l40": 1 / 2, "h20": 1 / 4}  # by words of names
_TYPES = ("float16", "float32", "float64", "int32")


@dataclass(frozen=True)
class PeakRate:
    """A ceiling: the kind of operations, their rate, and the origin of the figure."""

    name: str
    gflops: float
    origin: str


def peak_rates(device: DeviceInfo, dtype: str, clock_mhz: float | None = None) -> tuple[PeakRate, ...]:
    """The ceilings of a device's arithmetic without tensor cores; empty if unknown.

    Without a measured clock, the boost clock of the architecture's example GPU counts.
    """
    lanes = lanes_per_clock(device.architecture, dtype)
    if lanes is None or device.kind != "gpu":
        return ()
    mhz = clock_mhz or _RATES[device.architecture].boost_mhz
    example = ARCHITECTURES[device.architecture].device.name
    clock = "the highest clock of the trials" if clock_mhz else f"the boost clock of {example}"
    origin = f"calculated for {mhz:,.0f} MHz, {clock}"
    gflops = lanes * device.compute_units * mhz * 1e-3
    if not dtype.startswith("float"):
        return (PeakRate(f"{dtype} additions", gflops, origin),)
    return (
        PeakRate(f"{dtype} multiply-adds", 2 * gflops, origin),
        PeakRate(f"{dtype} additions", gflops, origin),
    )


def lanes_per_clock(architecture: str, dtype: str) -> int | None:
    """Operations of one type that a multiprocessor starts per clock; None if unknown."""
    plain = dtype.removeprefix("u")
    if architecture not in _RATES or plain not in _TYPES:
        return None
    lanes: int = getattr(_RATES[architecture], plain)
    return lanes


def tensor_operations_per_s(device: DeviceInfo) -> float | None:
    """Operations of tensor cores with float16 or bfloat16 and sums in float32; None if unknown."""
    rates = _RATES.get(device.architecture)
    if rates is None or rates.tensor is None or rates.tensor_mhz is None:
        return None
    share = min(_TENSOR_SHARE.get(word, 1.0) for word in device.name.lower().split())
    return 2 * rates.tensor * share * device.compute_units * rates.tensor_mhz * 1e6


def host_bytes_per_s(architecture: str) -> float | None:
    """The bandwidth of the connection to the host, in one direction; None if unknown."""
    return _RATES[architecture].host_bytes_per_s if architecture in _RATES else None


def boost_mhz(architecture: str) -> float | None:
    """The boost clock of an architecture's example GPU; None if unknown."""
    return _RATES[architecture].boost_mhz if architecture in _RATES else None
