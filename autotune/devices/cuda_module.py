"""Programs and launches through the driver API: the same for every package."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable

import numpy as np

from autotune.compilers.cubins import Cubins
from autotune.compilers.triton_binary import UNUSED, scratch_name
from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.cuda.driver import call
from autotune.devices.base import Arguments, Buffer
from autotune.devices.cuda_graph import DriverGraph
from autotune.devices.cuda_memory import Memory, zeros
from autotune.errors import DeviceError, LaunchError
from autotune.hardware.cuda_driver import driver
from autotune.hardware.cuda_launch import Permissions, launch_config


class Module:
    """A loaded cubin and the kernels that were looked up in it."""

    def __init__(self, binary: Binary, index: int) -> None:
        self._index = index
        self.cubins = Cubins(binary)
        self._unload = driver().cuLibraryUnload
        self.graphs: dict[Hashable, DriverGraph] = {}  # of its kernels; they end before it is unloaded
        self._libraries: dict[str, ctypes.c_void_p] = {}
        none = (None, None, 0)
        for key, cubin in self.cubins.contents.items():
            self._libraries[key] = ctypes.c_void_p()
            call("cuLibraryLoadData", ctypes.byref(self._libraries[key]), cubin, *none, *none)
        self._kernels: dict[str, ctypes.c_void_p] = {}
        self._permissions = Permissions()
        self._scratch: dict[tuple[str, int], Memory] = {}

    def scratch(self, step: Launch) -> int:
        """The address of a launch's scratch memory, 0 if it needs none; raises OutOfMemory.

        It holds zeros: compute-sanitizer does not see how a kernel writes descriptors of tensors into it.
        """
        size_bytes = self.cubins.scratch_bytes(step)
        if not size_bytes:
            return 0
        key = (step.entry, size_bytes)
        if key not in self._scratch:
            self._scratch[key] = zeros(size_bytes)
        return int(self._scratch[key])

    def kernel(self, step: Launch) -> ctypes.c_void_p:
        """Look up a launch's kernel; allow it the launch's dynamic shared memory and cluster."""
        if step.entry not in self._kernels:
            kernel = ctypes.c_void_p()
            library = self._libraries[self.cubins.key(step.entry)]
            try:
                call("cuLibraryGetKernel", ctypes.byref(kernel), library, self.cubins.symbol(step.entry))
            except DeviceError as error:
                raise LaunchError(f"no kernel {step.entry!r} in the binary ({error})") from None
            self._kernels[step.entry] = kernel
        found = self._kernels[step.entry]

        def change(attribute: int, value: int, what: str) -> None:
            try:
                call("cuKernelSetAttribute", attribute, value, found, self._index)
            except DeviceError as error:
                raise LaunchError(f"{step.entry}: {what}: {error}") from None

        self._permissions.allow(step, change)
        return found

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a variable; raises LaunchError."""
        address, size_bytes = ctypes.c_uint64(), ctypes.c_size_t()
        library, symbol = self._libraries[self.cubins.key(name)], self.cubins.symbol(name)
        found = ctypes.byref(address), ctypes.byref(size_bytes)
        try:
            call("cuLibraryGetGlobal", *found, library, symbol)
        except DeviceError as error:
            raise LaunchError(f"no variable {name!r} in the binary: {error}") from None
        return address.value, size_bytes.value

    def __del__(self) -> None:
        self.graphs.clear()
        for library in self._libraries.values():
            if library:
                self._unload(library)


class KernelLaunch:
    """A launch with its arguments; a call queues it on its stream. Raises DeviceError."""

    def __init__(self, module: Module, step: Launch, arguments: Arguments, stream: ctypes.c_void_p) -> None:
        """Prepare all that the driver reads, so that a call does little and no host work is timed."""
        self._module = module
        completed = module.cubins.completed(step)
        values = {**arguments, UNUSED: 0, scratch_name(step): module.scratch(step)}
        self._kernel = module.kernel(completed)
        self._values = [_in_memory(values[name]) for name in completed.arguments]
        self._pointers = (ctypes.c_void_p * max(1, len(self._values)))(*map(ctypes.addressof, self._values))
        self._config = launch_config(completed, stream.value or 0)

    def __call__(self) -> None:
        """Queue the launch."""
        call("cuLaunchKernelEx", ctypes.byref(self._config), self._kernel, self._pointers, None)


def _in_memory(value: Buffer | np.generic) -> ctypes.c_uint64 | ctypes.Array[ctypes.c_char]:
    """An argument as it lies in a kernel's parameters; a buffer is an address."""
    if not isinstance(value, np.generic):
        return ctypes.c_uint64(int(value))
    content = value.tobytes()
    return ctypes.create_string_buffer(content, len(content))
