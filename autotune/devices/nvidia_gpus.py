"""Lists NVIDIA GPUs through the driver's library alone: the packages for it take long to import."""

from __future__ import annotations

from dataclasses import replace

from autotune.core.records import DeviceInfo
from autotune.devices.nvml import NvmlMonitor
from autotune.hardware.cuda_driver import cuda_device, device_count, pci_address


def list_gpus(backend: str) -> list[DeviceInfo]:
    """The GPUs that the driver shows, as devices of a backend; none without a driver."""
    return [
        replace(cuda_device(number), backend=backend, limits=NvmlMonitor(pci_address(number)).limits())
        for number in range(device_count())
    ]
