"""The CPU of this machine, without asking OpenCL, which takes long to load."""

from __future__ import annotations

import os

from autotune.core.records import DeviceInfo
from autotune.hardware.names import name_words

INTEL_SLUG = "-intel-opencl"  # the end of a CPU's slug under Intel's runtime
_CPUS = "/proc/cpuinfo"


def is_host_cpu(device: DeviceInfo) -> bool:
    """True if a device is a CPU with this machine's name and number of cores; False if unknown."""
    if device.kind != "cpu" or device.compute_units != os.cpu_count():
        return False
    words = name_words(_property("model name"))  # OpenCL may add words in front
    return bool(words) and name_words(device.name)[-len(words) :] == words


def cpu_vendor() -> str:
    """The maker of this machine's CPU, such as AuthenticAMD; empty if Linux names none."""
    return _property("vendor_id")


def _property(name: str) -> str:
    """A property of the first CPU in Linux's list; empty if there is none."""
    try:
        with open(_CPUS, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib loads slowly
            lines = (line.partition(":") for line in file)
            return next((value.strip() for key, _, value in lines if key.strip() == name), "")
    except OSError:
        return ""
