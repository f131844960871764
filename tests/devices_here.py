"""The devices of this machine, for tests that need one."""

import pytest

from autotune.core.records import DeviceInfo
from autotune.devices import backend
from autotune.errors import MissingExtra


def devices_here(name: str) -> list[DeviceInfo]:
    """The devices of a backend; skips the test if there is none, or if the package is missing."""
    try:
        found = backend(name).list_devices()
    except MissingExtra as missing:
        pytest.skip(str(missing))
    if not found:
        pytest.skip(f"no {name} device on this machine")
    return found


def pocl_here() -> int:
    """The number of PoCL's device among those of OpenCL; skips the test if there is none."""
    return _opencl_device("PoCL")


def intel_here() -> int:
    """The number of the device of Intel's runtime among those of OpenCL; skips the test if there is none."""
    return _opencl_device("Intel OpenCL")


def _opencl_device(runtime: str) -> int:
    for number, device in enumerate(devices_here("opencl")):
        if runtime in device.runtime:
            return number
    pytest.skip(f"no device of {runtime} on this machine")
