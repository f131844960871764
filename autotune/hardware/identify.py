"""Identifies the device that a program gives: a name, a number, an object of a GPU package, or nothing.

Objects are recognised by their attributes, so no GPU package is imported. The CUDA driver's library is loaded
only if no name is given.
"""

from __future__ import annotations

import os
import re
from typing import Any

from autotune.core.records import DeviceInfo
from autotune.errors import InputError
from autotune.hardware.host_cpu import INTEL_SLUG, cpu_vendor
from autotune.hardware.names import slug

_OPENCL_CPU = 1 << 1  # CL_DEVICE_TYPE_CPU
_MAX_GROUP = 1024  # as on GPUs; CPUs allow more, but run the threads of a block one after the other
_INTEL_PLATFORM = "Intel(R) OpenCL"  # the platform of Intel's runtime, which also drives other makers' CPUs
_WARPS = {
    "cl_khr_subgroup_shuffle_relative",
    "cl_intel_required_subgroup_size",
}  # extensions that portable.h needs
# Of NVIDIA, of AMD where pyopencl has it, and the standard's, which gives wavefronts and sub-groups as well.
_WARP_QUERIES = ("warp_size_nv", "wavefront_width_amd", "preferred_work_group_size_multiple")
_WARP_SIZE = 32  # portable.h needs it where there are warps


def identify(device: object) -> str | DeviceInfo | None:
    """Return a name or slug unchanged, and a description of any other device.

    None means the GPU of the current CUDA context, else the first GPU; it stays None without a GPU. Raises
    InputError for an object that is not a device, and for a number that no GPU has.
    """
    if isinstance(device, str):
        return _named(device)
    if isinstance(device, DeviceInfo):
        return device
    if hasattr(device, "max_work_group_size") and hasattr(device, "platform"):
        return opencl_device(device)
    from autotune.hardware import cuda_driver

    if device is None:
        current = cuda_driver.current_device()
        return None if current is None else cuda_driver.cuda_device(current)
    return cuda_driver.cuda_device(_number(device))


def _named(name: str) -> str | DeviceInfo:
    """A name unchanged, or the GPU for `cuda:0`, as torch and the command line write it."""
    package, _, number = name.partition(":")
    if not (package.isalpha() and number.isdigit()):
        return name
    if package == "cuda":
        from autotune.hardware import cuda_driver

        return cuda_driver.cuda_device(int(number))
    raise InputError(
        f"device {name!r}: only the command line knows {package}'s numbers; give the device's name, as "
        "`autotune devices` shows it, or its object"
    )


def _number(device: object) -> int:
    """The driver's number of a GPU, from attributes of cuda.core, pycuda, torch and cupy, in this order."""
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
    name = _readable_name(_asked(device, "board_name_amd") or device.name)
    chip = device.name.partition(":")[0]  # AMD's: `gfx942:sramecc+:xnack-`
    has_shuffle = set(device.extensions.split()) >= _WARPS
    warp = 1 if is_cpu else _asked(device, *_WARP_QUERIES) or _WARP_SIZE
    is_intel = is_intel_cpu(device)
    # a folder for each driver of a device: CUDA and OpenCL of a GPU, PoCL and Intel's runtime of a CPU
    folder = slug(f"cpu {name}" if is_cpu else f"{name} opencl") + (INTEL_SLUG if is_intel else "")
    runtime = device.platform.version.strip()
    return DeviceInfo(
        backend="opencl",
        name=name,
        slug=folder,
        kind="cpu" if is_cpu else "gpu",
        vendor=(is_cpu and cpu_vendor()) or device.vendor.strip(),
        architecture=platform.machine() if is_cpu else chip if chip.startswith("gfx") else name,
        compute_units=device.max_compute_units,
        warp_size=_WARP_SIZE if has_shuffle else warp,
        max_threads_per_block=min(device.max_work_group_size, _MAX_GROUP),
        shared_bytes_per_block=device.local_mem_size,
        registers_per_block=None,
        memory_bytes=_host_memory_bytes() if is_cpu else device.global_mem_size,
        memory_bandwidth_bytes_per_s=None,
        cache_bytes=device.global_mem_cache_size,
        has_shuffle=has_shuffle,
        driver=device.driver_version.strip(),
        runtime=f"Intel {runtime}" if is_intel else runtime,  # its version names no maker
    )


def _asked(device: Any, *queries: str) -> Any:
    """The first answer of a device to queries that not every vendor has; None without one."""
    for query in queries:
        try:
            if answer := getattr(device, query):
                return answer
        except Exception:  # noqa: BLE001 - pyopencl raises its own kinds where a driver refuses
            continue
    return None


def is_intel_cpu(device: Any) -> bool:
    """True if Intel's runtime for CPUs drives a pyopencl.Device."""
    return bool(device.type & _OPENCL_CPU) and device.platform.name == _INTEL_PLATFORM


def _host_memory_bytes() -> int:
    """The machine's memory; PoCL reports the free memory, which changes all the time."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _readable_name(raw: str) -> str:
    """Remove PoCL's `pthread-` prefix, trade marks and the CPUID vendor string."""
    name = re.sub(r"^(pthread|basic|cpu)-", "", raw)
    name = re.sub(r"\((R|TM|C)\)|GenuineIntel|AuthenticAMD", "", name)
    return " ".join(name.split())
