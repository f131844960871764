"""The CUDA driver's library through ctypes: properties of NVIDIA GPUs and of addresses.

Device numbers respect CUDA_VISIBLE_DEVICES, as the driver's do. No context is created on any GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import NamedTuple

from autotune.core.records import DeviceInfo
from autotune.errors import Forked, InputError
from autotune.hardware.names import slug

_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
# From the driver's header cuda.h, CUdevice_attribute.
_ATTRIBUTES = {
    "compute_units": 16,
    "warp_size": 10,
    "max_threads_per_block": 1,
    "shared_bytes_per_block": 97,
    "registers_per_block": 12,
    "clock_khz": 36,
    "bus_bits": 37,
    "integrated": 18,
    "cache_bytes": 38,
    "major": 75,
    "minor": 76,
}
_NOT_INITIALIZED = 3  # from cuda.h, as the next one
_POINTER_DEVICE = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


@cache  # a GPU does not change while a process runs
def cuda_device(number: int) -> DeviceInfo:
    """Describe the GPU with this number; raises InputError if there is none."""
    library = available_driver()
    handle = ctypes.c_int()
    status = library.cuDeviceGet(ctypes.byref(handle), number) if library else -1
    require_no_fork(status)
    if library is None or status:
        raise InputError(f"device {number}: the CUDA driver shows no GPU with this number")
    attributes = {name: _attribute(library, handle, code) for name, code in _ATTRIBUTES.items()}
    name_buffer = ctypes.create_string_buffer(256)
    memory_bytes, version = ctypes.c_size_t(), ctypes.c_int()
    library.cuDeviceGetName(name_buffer, len(name_buffer), handle)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory_bytes), handle)
    library.cuDriverGetVersion(ctypes.byref(version))
    name = name_buffer.value.decode(errors="replace")
    bus = (attributes.pop(key) for key in ("clock_khz", "bus_bits", "integrated"))
    bandwidth = _bandwidth_bytes_per_s(*bus)
    major, minor = attributes.pop("major"), attributes.pop("minor")
    return DeviceInfo(
        backend="cuda",
        name=name,
        slug=slug(name),
        kind="gpu",
        vendor="NVIDIA",
        architecture=f"sm_{major}{minor}",
        memory_bytes=memory_bytes.value,
        memory_bandwidth_bytes_per_s=bandwidth,
        has_shuffle=True,
        driver=driver_version(),
        runtime=f"CUDA {version.value // 1000}.{version.value % 1000 // 10}",
        limits="",  # only NVML knows them, and production code does not load it
        **attributes,
    )


def _bandwidth_bytes_per_s(clock_khz: int, bus_bits: int, integrated: int) -> float | None:
    """Two transfers per clock; None if the driver does not know, or the GPU shares the host's memory."""
    return None if integrated else 2.0 * clock_khz * 1e3 * bus_bits / 8 or None


def driver_version() -> str:
    """The version of NVIDIA's kernel module, which the driver API does not report."""
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii") as file:  # noqa: PTH123 - not a file one looks for
            words = file.readline().split()
    except OSError:
        return "unknown"
    return next((word for word in words if word[0].isdigit() and "." in word), "unknown")


@cache
def available_driver() -> ctypes.CDLL | None:
    """Load and initialise the CUDA driver; None if there is none or it shows no GPU."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int()
        if library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value:
            return library
    return None


@cache
def driver() -> ctypes.CDLL:
    """The CUDA driver, initialised; raises InputError if there is none or it shows no GPU."""
    library = available_driver()
    if library is None:
        raise InputError("the CUDA driver shows no GPU; `autotune doctor` says why")
    return library


def require_no_fork(status: int) -> None:
    """Raise Forked for the status by which the driver refuses all calls in a forked process."""
    if status == _NOT_INITIALIZED:  # it is initialised where it is loaded
        raise Forked("CUDA")


def error_name(status: int) -> str:
    """The driver's name for a status that is not 0, such as CUDA_ERROR_OUT_OF_MEMORY."""
    name = ctypes.c_char_p()
    driver().cuGetErrorName(status, ctypes.byref(name))
    return (name.value or b"CUDA error %d" % status).decode()


def device_count() -> int:
    """The number of GPUs that the driver shows; 0 without a driver."""
    library, count = available_driver(), ctypes.c_int()
    if library is None or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def pci_address(number: int) -> str:
    """The PCI address of the GPU with this number, such as 0000:65:00.0."""
    library, handle, text = available_driver(), ctypes.c_int(), ctypes.create_string_buffer(32)
    if library is not None and library.cuDeviceGet(ctypes.byref(handle), number) == 0:
        library.cuDeviceGetPCIBusId(text, len(text), handle)
    return text.value.decode()


def current_device() -> int | None:
    """The GPU of this thread's context, else the first one; None without a GPU."""
    library = available_driver()
    if library is None:
        return None
    number = ctypes.c_int()
    return number.value if library.cuCtxGetDevice(ctypes.byref(number)) == 0 else 0


def device_at(address: str) -> int:
    """The number of the GPU at a PCI address such as 0000:65:00.0; raises InputError if there is none."""
    library, number = available_driver(), ctypes.c_int()
    if library is None or library.cuDeviceGetByPCIBusId(ctypes.byref(number), address.encode()) != 0:
        raise InputError(f"device {address}: the CUDA driver shows no GPU at that address")
    return number.value


def _attribute(library: ctypes.CDLL, handle: ctypes.c_int, code: int) -> int:
    value = ctypes.c_int()
    library.cuDeviceGetAttribute(ctypes.byref(value), code, handle)
    return value.value


class PointerQuestion(NamedTuple):
    """A prepared query to the driver: to which GPU the memory at an address belongs."""

    ask: Callable[[], int]  # returns the driver's status: 0 if there is memory now
    device: ctypes.c_int  # the answer


@lru_cache(maxsize=4096)
def pointer_question(pointer: int) -> PointerQuestion:
    """Prepare the query about an address; threads may share it, because they get the same answer."""
    device = ctypes.c_int()
    # References, which ctypes passes as they are: it would convert anything else at every call.
    attribute, address = ctypes.c_int.from_param(_POINTER_DEVICE), ctypes.c_void_p.from_param(pointer)
    return PointerQuestion(
        partial(driver().cuPointerGetAttribute, ctypes.byref(device), attribute, address), device
    )


def pointer_device(pointer: int) -> int | None:
    """The number of an address's GPU; None for one that is not, or no longer, allocated."""
    ask, device = pointer_question(pointer)
    status = ask()
    require_no_fork(status)
    return None if status else device.value
