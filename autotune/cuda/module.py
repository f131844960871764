"""Programs in the memory of a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from math import prod
from threading import Lock
from typing import Any

from autotune.compilers.cubins import Cubins
from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.cuda.driver import NOT_FOUND, call, check, freed_with, inside
from autotune.errors import LaunchError
from autotune.hardware.cuda_driver import driver

_MAX_PORTABLE_CLUSTER = 8
# CUfunction_attribute
_MAX_DYNAMIC_SHARED_BYTES, _NON_PORTABLE_CLUSTER_ALLOWED = 8, 14


class Module:
    """A binary that is loaded in a context, and the kernels that were looked up in the binary.

    The context has to be current for look-ups.
    """

    def __init__(self, binary: Binary, context: ctypes.c_void_p, *, stays: bool) -> None:
        """Load a binary of any compiler; raises DeviceError.

        If it `stays`, it is loaded without a reference to this object: graphs may still use it.
        """
        self.cubins = Cubins(binary)
        self._handles: dict[str, ctypes.c_void_p] = {}
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._allowed: dict[tuple[str, int], int] = {}  # by kernel and attribute
        self._lock = Lock()  # of `_allowed`
        with inside(context):
            for key, cubin in self.cubins.contents.items():
                handle = ctypes.c_void_p()
                call("cuModuleLoadData", ctypes.byref(handle), cubin)
                self._handles[key] = handle
                if not stays:
                    freed_with(self, context, "cuModuleUnload", handle)

    def function(self, step: Launch) -> ctypes.c_void_p:
        """Look up a launch's kernel, and allow it the launch's dynamic shared memory and cluster.

        A kernel has the same limits for all its launches, and a launch beyond a limit fails: so each limit is
        the most that any launch needed. Raises LaunchError.
        """
        function = self._functions.get(step.entry)
        if function is None:
            function = ctypes.c_void_p()
            self._find("kernel", step.entry, "cuModuleGetFunction", function)
            self._functions[step.entry] = function
        with self._lock:
            for attribute, value, need in _needs(step):
                if value > self._allowed.get((step.entry, attribute), 0):
                    status = driver().cuFuncSetAttribute(function, attribute, value)
                    check(f"{step.entry}: {need}", status)
                    self._allowed[step.entry, attribute] = value
        return function

    def variable(self, name: str, needed_bytes: int = 0) -> tuple[int, int]:
        """Address and size in bytes of a variable; raises LaunchError if it is missing or too small."""
        address, size_bytes = ctypes.c_uint64(), ctypes.c_size_t()
        self._find("variable", name, "cuModuleGetGlobal_v2", address, size_bytes)
        if needed_bytes > size_bytes.value:
            raise LaunchError(f"{name}: the array has {needed_bytes} bytes, the variable {size_bytes.value}")
        return address.value, size_bytes.value

    def _find(self, kind: str, name: str, question: str, *answers: Any) -> None:
        """Ask the driver for a kernel or a variable by its name."""
        handle, symbol = self._handles[self.cubins.key(name)], self.cubins.symbol(name)
        status = getattr(driver(), question)(*map(ctypes.byref, answers), handle, symbol)
        if status == NOT_FOUND:
            raise LaunchError(f"no {kind} {name!r} in the binary")
        check(name, status)


def _needs(step: Launch) -> Iterator[tuple[int, int, str]]:
    """The attributes that a launch needs of its function: number, value, and words for messages."""
    if step.shared_bytes:  # with the static shared memory this may exceed 48 KiB
        yield (
            _MAX_DYNAMIC_SHARED_BYTES,
            step.shared_bytes,
            f"{step.shared_bytes} bytes of dynamic shared memory",
        )
    if prod(step.cluster) > _MAX_PORTABLE_CLUSTER:
        yield _NON_PORTABLE_CLUSTER_ALLOWED, 1, f"clusters of {prod(step.cluster)}"
