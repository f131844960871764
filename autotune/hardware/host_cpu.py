"""The CPU of this machine, without asking OpenCL, which takes long to load."""

from __future__ import annotations

import os

from autotune.core.records import DeviceInfo
from autotune.hardware.names import name_words

_CPUS = "/proc/cpuinfo"


def is_host_cpu(device: DeviceInfo) -> bool:
    """Whether a device is a CPU of this machine's name with as many cores; False where that is not known."""
    if device.kind != "cpu" or device.compute_units != os.cpu_count():
        return False
    words = name_words(_name())
    return bool(words) and name_words(device.name)[-len(words) :] == words


def _name() -> str:
    """The name in Linux's list of CPUs, to which OpenCL adds words in front; empty elsewhere."""
    try:
        with open(_CPUS, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib loads slowly
            lines = (line.partition(":") for line in file)
            return next((value.strip() for key, _, value in lines if key.strip() == "model name"), "")
    except OSError:
        return ""
