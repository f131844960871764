"""Which device a program means: a name, a number, an object of its GPU package, or the current GPU.

Objects are known by what they offer, so no GPU package is imported. The CUDA driver's library is loaded only
for a question that it has to answer: one without a name.
"""

from __future__ import annotations

import os
import re
from typing import Any

from autotune.core.records import DeviceInfo
from autotune.errors import InputError
from autotune.hardware.names import slug

_OPENCL_CPU = 1 << 1  # CL_DEVICE_TYPE_CPU
_MAX_GROUP = 1024  # as on GPUs: PoCL admits more, but unrolls every work-item of a group


def identify(device: object) -> str | DeviceInfo | None:
    """A name or slug as it is, else the description of the device that is meant.

    None stands for the GPU of the current CUDA context, else the first GPU, and stays None where the driver
    shows none. Raises InputError for an object that is no device, and for a number that no GPU has.
    """
    if isinstance(device, str | DeviceInfo):
        return device
    if hasattr(device, "max_work_group_size") and hasattr(device, "platform"):
        return opencl_device(device)
    from autotune.hardware import cuda_driver

    if device is None:
        current = cuda_driver.current_device()
        return None if current is None else cuda_driver.cuda_device(current)
    return cuda_driver.cuda_device(_number(device))


def _number(device: object) -> int:
    """The driver's number of a GPU; attributes are those of cuda.core, pycuda, torch, and cupy, in turn."""
    from autotune.hardware import cuda_driver

    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(number := getattr(device, "device_id", None), int):
        return number
    if callable(address := getattr(device, "pci_bus_id", None)):
        return cuda_driver.device_at(address())
    if getattr(device, "type", None) == "cuda":
        index = getattr(device, "index", None)
        return index if index is not None else cuda_driver.current_device() or 0
    for name in ("idx", "id"):
        if isinstance(number := getattr(device, name, None), int):
            return number
    raise InputError(
        f"device {device!r}: expected a name, a slug, the number of a GPU, a DeviceInfo, or a device "
        "of cuda.core, pycuda, cupy, torch or pyopencl"
    )


def opencl_device(device: Any) -> DeviceInfo:
    """Describe a pyopencl.Device."""
    import platform

    is_cpu = bool(device.type & _OPENCL_CPU)
    name = _readable_name(device.name)
    warp = 1 if is_cpu else getattr(device, "warp_size_nv", 32)
    return DeviceInfo(
        backend="opencl",
        name=name,
        slug=slug(f"cpu {name}" if is_cpu else f"{name} opencl"),  # apart from the same GPU under CUDA
        kind="cpu" if is_cpu else "gpu",
        vendor=device.vendor.strip(),
        architecture=platform.machine() if is_cpu else name,
        compute_units=device.max_compute_units,
        warp_size=warp,
        max_threads_per_block=min(device.max_work_group_size, _MAX_GROUP),
        shared_bytes_per_block=device.local_mem_size,
        registers_per_block=None,
        memory_bytes=_host_memory_bytes() if is_cpu else device.global_mem_size,
        memory_bandwidth_bytes_per_s=None,
        cache_bytes=device.global_mem_cache_size,
        has_shuffle=False,  # sub-groups are optional in OpenCL and absent from PoCL's CPU device
        driver=device.driver_version.strip(),
        runtime=device.platform.version.strip(),
    )


def _host_memory_bytes() -> int:
    """What the machine has: PoCL reports what is free at the moment, which no two processes agree on."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _readable_name(raw: str) -> str:
    """Drop what is not the product: PoCL's `pthread-` prefix, trade marks, the CPUID vendor string."""
    name = re.sub(r"^(pthread|basic|cpu)-", "", raw)
    name = re.sub(r"\((R|TM|C)\)|GenuineIntel|AuthenticAMD", "", name)
    return " ".join(name.split())
