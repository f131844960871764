"""Programs and launches through the driver API: the same for every package."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from math import prod

import numpy as np

from autotune.compilers.triton_binary import (
    UNUSED,
    TritonKernel,
    completed,
    missing,
    scratch_bytes,
    scratch_name,
    unpack,
)
from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.devices.cuda_memory import NON_BLOCKING, DriverError, Memory, call, zeros
from autotune.errors import LaunchError
from autotune.hardware.cuda_driver import driver

MAX_PORTABLE_CLUSTER = 8
# CUfunction_attribute
MAX_DYNAMIC_SHARED_BYTES, NON_PORTABLE_CLUSTER_ALLOWED = 8, 14
# CUlaunchAttributeID
_COOPERATIVE, _CLUSTER_DIMENSION, _PROGRAMMATIC_SERIALIZATION = 2, 4, 6
_WITHOUT_TIME = 2  # flag of events


class Module:
    """A loaded cubin and the kernels that were looked up in it."""

    def __init__(self, binary: Binary, index: int) -> None:
        self._index = index
        self._binary = binary
        self._unload = driver().cuLibraryUnload
        self._triton = unpack(binary)
        images = {entry: one.cubin for entry, one in self._triton.items()} or {"": binary.data}
        self._libraries: dict[str, ctypes.c_void_p] = {}
        none = (None, None, 0)
        for entry, image in images.items():
            self._libraries[entry] = ctypes.c_void_p()
            call("cuLibraryLoadData", ctypes.byref(self._libraries[entry]), image, *none, *none)
        self._kernels: dict[tuple[object, ...], ctypes.c_void_p] = {}
        self._scratch: dict[tuple[str, int], Memory] = {}

    def triton(self, step: Launch) -> TritonKernel | None:
        """What Triton compiled for a launch; None in a program of another language. Raises LaunchError."""
        if self._triton and step.entry not in self._triton:
            raise LaunchError(missing(step.entry, list(self._triton)))
        return self._triton.get(step.entry)

    def scratch(self, step: Launch, kernel: TritonKernel) -> int:
        """The address of a launch's scratch memory, 0 if it needs none; raises OutOfMemory.

        It holds zeros: compute-sanitizer does not see how a kernel writes descriptors of tensors into it.
        """
        size_bytes = scratch_bytes(step, kernel)
        if not size_bytes:
            return 0
        key = (step.entry, size_bytes)
        if key not in self._scratch:
            self._scratch[key] = zeros(size_bytes)
        return int(self._scratch[key])

    def kernel(self, step: Launch) -> ctypes.c_void_p:
        """Look up a launch's kernel; allow it the launch's dynamic shared memory and cluster."""
        key = (step.entry, step.shared_bytes, step.cluster)
        if key not in self._kernels:
            kernel = ctypes.c_void_p()
            symbol = self._binary.symbol(step.entry).encode()
            try:
                library = self._libraries[step.entry if self._triton else ""]
                call("cuLibraryGetKernel", ctypes.byref(kernel), library, symbol)
            except DriverError as error:
                raise LaunchError(f"no kernel {step.entry!r} in the binary ({error})") from None
            try:
                if step.shared_bytes:  # with the static shared memory this may exceed 48 KiB
                    self._allow(kernel, MAX_DYNAMIC_SHARED_BYTES, step.shared_bytes)
                if prod(step.cluster) > MAX_PORTABLE_CLUSTER:
                    self._allow(kernel, NON_PORTABLE_CLUSTER_ALLOWED, 1)
            except DriverError as error:
                what = f"{step.shared_bytes} bytes of dynamic shared memory, clusters of {prod(step.cluster)}"
                raise LaunchError(f"{step.entry}: {what}: {error}") from None
            self._kernels[key] = kernel
        return self._kernels[key]

    def _allow(self, kernel: ctypes.c_void_p, attribute: int, value: int) -> None:
        call("cuKernelSetAttribute", attribute, value, kernel, self._index)

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a variable; raises LaunchError."""
        address, size_bytes = ctypes.c_uint64(), ctypes.c_size_t()
        symbol = self._binary.symbol(name).encode()
        try:
            call(
                "cuLibraryGetGlobal",
                ctypes.byref(address),
                ctypes.byref(size_bytes),
                self._libraries[""],
                symbol,
            )
        except DriverError as error:
            raise LaunchError(f"no variable {name!r} in the binary: {error}") from None
        return address.value, size_bytes.value

    def __del__(self) -> None:
        for library in self._libraries.values():
            if library:
                self._unload(library)


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute; the value is a union of 64 bytes, of which at most three numbers are used here."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("padding", ctypes.c_char * 4),
        ("value", ctypes.c_uint * 16),
    )


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class KernelLaunch:
    """A launch with its arguments; a call queues it on its stream. Raises DriverError."""

    def __init__(
        self, module: Module, step: Launch, arguments: Sequence[np.generic | int], stream: int
    ) -> None:
        """Prepare all that the driver reads, so that a call does little; an `int` is an address."""
        self._module = module
        triton = module.triton(step)
        if triton is not None:
            values = dict(zip(step.arguments, arguments, strict=True)) | {UNUSED: 0}
            values[scratch_name(step)] = module.scratch(step, triton)
            step = completed(step, triton)
            arguments = [values[name] for name in step.arguments]
        self._kernel = module.kernel(step)
        self._bytes = [_bytes_of(value) for value in arguments]
        self._pointers = (ctypes.c_void_p * max(1, len(self._bytes)))(*map(ctypes.addressof, self._bytes))
        self._config = launch_config(step, stream)

    def __call__(self) -> None:
        """Queue the launch."""
        call("cuLaunchKernelEx", ctypes.byref(self._config), self._kernel, self._pointers, None)


def launch_config(step: Launch, stream: int) -> ctypes.Structure:
    """The grid, block, stream and attributes of a launch, as the driver takes them."""
    found = list(_attributes(step))
    attributes = (_Attribute * max(1, len(found)))(*found)
    return _Config(step.grid, step.block, step.shared_bytes, stream, attributes, len(found))


def _bytes_of(value: np.generic | int) -> ctypes.Array[ctypes.c_char]:
    """An argument as it lies in a kernel's parameters."""
    content = np.uint64(value).tobytes() if isinstance(value, int) else value.tobytes()
    return ctypes.create_string_buffer(content, len(content))


def _attributes(step: Launch) -> Iterable[_Attribute]:
    given = (
        (_COOPERATIVE, step.cooperative and (1,)),
        (_CLUSTER_DIMENSION, step.cluster if prod(step.cluster) > 1 else ()),
        (_PROGRAMMATIC_SERIALIZATION, step.programmatic and (1,)),
    )
    return (_Attribute(kind, b"", value) for kind, value in given if value)


class SideStreams:
    """The streams of work that may overlap, beside a device's own; they fork from it and join it."""

    def __init__(self, main: int) -> None:
        self._main = ctypes.c_void_p(main)
        self._streams: dict[int, ctypes.c_void_p] = {}
        self._forked: set[int] = set()
        self._open = ExitStack()

    def of(self, number: int) -> int:
        """The stream for the next launch of this number; 0 waits for all others."""
        if number == 0:
            self.join()
            return self._main.value or 0
        if number not in self._streams:
            stream = self._streams[number] = ctypes.c_void_p()
            call("cuStreamCreate", ctypes.byref(stream), NON_BLOCKING)
            self._open.callback(driver().cuStreamDestroy_v2, stream)
        if number not in self._forked:
            self._order(self._main, self._streams[number])
            self._forked.add(number)
        return self._streams[number].value or 0

    def join(self) -> None:
        """Let the main stream wait for all others."""
        for number in sorted(self._forked):
            self._order(self._streams[number], self._main)
        self._forked.clear()

    def close(self) -> None:
        """Free streams and events: neither a graph nor queued work needs them any more."""
        self._open.close()

    def _order(self, earlier: ctypes.c_void_p, later: ctypes.c_void_p) -> None:
        event = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(event), _WITHOUT_TIME)
        self._open.callback(driver().cuEventDestroy_v2, event)
        call("cuEventRecord", event, earlier)
        call("cuStreamWaitEvent", later, event, 0)
