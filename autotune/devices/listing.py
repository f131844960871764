"""Finds the devices of this machine from a child process: this process loads no driver.

A driver takes long to load: a command begins the listing before it reads files and imports the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from autotune.core.records import DeviceInfo
from autotune.devices import BACKENDS, BUILT_IN, Address, choose, list_devices
from autotune.devices.trial_kernel import device_fault
from autotune.errors import ChildFailed, InputError, SetupError
from autotune.hardware.names import is_architecture, known_gpu, slug, traits_of_name
from autotune.processes.child import Child, retry_once
from autotune.processes.fork_server import preload
from autotune.serving.cache import folders, read_roots

_TIMEOUT_S = 60.0
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")  # has a folder per GPU, if NVIDIA's driver is loaded
_NVIDIA = tuple(name for name, entry in BUILT_IN.items() if entry.is_nvidia)
ALL = "all"  # as a name: all devices that are like the first GPU
Found = list[tuple[Address, DeviceInfo]]


class Listing:
    """The devices of some backends, which a child process lists in the background."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Begin; `devices` waits for the answer."""
        self.names = names
        self._child: Child | None = None
        self._found: Found | None = None
        self._begin()

    def _begin(self) -> Child:
        preload([module for name in self.names for module in _needed(name)])
        self._child = Child(int)
        self._child.ask(_list, self.names, timeout_s=_TIMEOUT_S)
        return self._child

    @property
    def is_complete(self) -> bool:
        """True if it asks all backends."""
        return self.names == tuple(BACKENDS)

    def devices(self) -> Found:
        """Wait for the devices; raises SetupError if looking for them fails."""
        if self._found is None:
            try:
                self._found = retry_once(self._answer)
            except ChildFailed as error:
                raise SetupError(f"looking for devices failed: {error}") from None
        return self._found

    def _answer(self) -> Found:
        child = self._child or self._begin()
        try:
            devices, faults = child.answer()
            for fault in faults:
                warnings.warn(fault, stacklevel=1)  # once, however often devices are listed
            return cast("Found", devices)
        finally:
            child.kill(waits=False)
            self.abandon()

    def abandon(self) -> None:
        """Do not wait for the child: it ends by itself, because nobody reads its answer."""
        self._child = None


def _needed(name: str) -> tuple[str, ...]:
    """The modules that list a backend's devices; none for a plug-in, which the child imports itself."""
    if name in _NVIDIA:
        return "autotune.devices.nvml", "pynvml"
    return (BUILT_IN[name].module,) if name in BUILT_IN else ()


def _list(_state: object, names: tuple[str, ...]) -> tuple[Found, list[str]]:
    """Run in the child, which has no state; also returns the faults of plug-ins."""
    faults: list[str] = []
    return list_devices(names, faults.append), faults


def listing_for(device: str | None) -> Listing:
    """Begin to list the devices that a text may name: of a single backend if the text begins with a backend.

    Without a name, or for all, only CUDA is asked if there is an NVIDIA GPU, because the import of PyOpenCL
    takes half a second.
    """
    backend = (device or "").strip().lower().partition(":")[0]
    if backend in BACKENDS:
        return Listing((backend,))
    if device in (None, ALL) and _NVIDIA_GPUS.is_dir():
        return Listing(_NVIDIA)
    return Listing(tuple(BACKENDS))


def find_devices(names: Iterable[str] = BACKENDS) -> Found:
    """List the devices of these backends."""
    return Listing(tuple(names)).devices()


def find_device(
    device: str | None, others: Iterable[str] = (), listing: Listing | None = None
) -> tuple[Address, DeviceInfo]:
    """Find a device of this machine, as `--device` names it; None takes the first GPU that works, else a CPU.

    `listing` is `listing_for(device)`, if the caller has begun it. Raises InputError, whose message also
    lists `others`, if there is no such device, and SetupError if no device of the machine works.
    """
    listing = listing or listing_for(device)
    devices = listing.devices()
    if not listing.is_complete:
        with suppress(InputError):
            return _working(device, devices)
        devices = find_devices()
    return _working(device, devices, others)


def _working(device: str | None, devices: Found, others: Iterable[str] = ()) -> tuple[Address, DeviceInfo]:
    """Choose a device; without a name, skip OpenCL devices that cannot run a kernel, with a warning.

    NVIDIA's GPUs are not tried: that takes a second, and their owners do not want the CPU instead.
    """
    faults: list[str] = []
    while True:
        try:
            address, info = choose(device, devices, others)
        except InputError:
            if not faults:
                raise
            raise SetupError(f"no device works: {'; '.join(faults)}") from None
        if device is not None or address.backend != "opencl" or not (fault := device_fault(address)):
            break
        faults.append(f"{address} ({info.name}, {info.runtime}): {fault}")
        devices = [other for other in devices if other[0] != address]
    for text in faults:
        warnings.warn(f"not used, because it cannot run a kernel: {text}", stacklevel=3)
    return address, info


def resolve_device(device: str | None, cache: Path | None) -> DeviceInfo | str | None:
    """Resolve a device to serve results for: of a cache, of this machine, or any device of a known vendor.

    None takes the device that a search would take; if there is none, `best_config` decides. Raises InputError
    for any other name.
    """
    cached = [folder for root in read_roots(cache) for folder in folders(root)]
    if device is not None and slug(device) in cached:
        return device
    if device is not None and is_architecture(device) and (example := known_gpu(device)):
        return replace(example, name=device, slug=slug(device))  # any GPU of it
    try:
        return find_device(device, cached)[1]
    except InputError:
        if device is None or traits_of_name(device).vendor is not None:
            return device
        raise
