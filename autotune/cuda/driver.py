"""Calls of the CUDA driver: their errors, and the context that they are made in."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from weakref import finalize

from autotune.errors import DeviceError, DeviceLost, Forked, LaunchError, OutOfMemory
from autotune.hardware.cuda_driver import driver, error_name, require_no_fork

# Statuses, from cuda.h
NOT_FOUND = 500
CAPTURE_INVALIDATED = 901
_OUT_OF_MEMORY = 2
_REFUSED = frozenset(  # the program or launch did not start; after any other error the context may be lost
    {
        1,  # INVALID_VALUE
        200,  # INVALID_IMAGE
        209,  # NO_BINARY_FOR_GPU
        218,  # INVALID_PTX
        222,  # UNSUPPORTED_PTX_VERSION
        701,  # LAUNCH_OUT_OF_RESOURCES
        720,  # COOPERATIVE_LAUNCH_TOO_LARGE
        801,  # NOT_SUPPORTED
        912,  # INVALID_CLUSTER_SIZE
    }
)
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


def check(action: str, status: int) -> None:
    """Raise the error that a status of the driver stands for, unless it is success.

    Args:
        action: The action, for the message.
        status: The driver's status after it.

    Raises:
        OutOfMemory: There is too little memory.
        LaunchError: The driver refused this call only.
        DeviceLost: Any other error.
        Forked: The process was forked from one that had used the driver.
    """
    if status:
        require_no_fork(status)
        others = LaunchError if status in _REFUSED else DeviceLost
        error = OutOfMemory if status == _OUT_OF_MEMORY else others
        raise error(f"{action}: {error_name(status)}")


def call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; raises what `check` does."""
    check(name, getattr(driver(), name)(*arguments))


def handle_of(value: int | None) -> Any:
    """A handle as ctypes passes it, without a conversion at every call."""
    return ctypes.c_void_p.from_param(value)


@contextmanager
def inside(context: ctypes.c_void_p) -> Iterator[None]:
    """Make a context current, and allow calls that would end a capture of this thread."""
    mode, popped = ctypes.c_int(RELAXED), ctypes.c_void_p()
    call("cuCtxPushCurrent_v2", context)
    driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        yield
    finally:
        driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        driver().cuCtxPopCurrent_v2(ctypes.byref(popped))


@cache  # retained as long as the process runs
def primary_context(number: int) -> ctypes.c_void_p:
    """The context of the GPU with this number that all packages share."""
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
    return context


def freed_with(owner: object, context: ctypes.c_void_p, name: str, handle: object) -> None:
    """Have a function of the driver free a handle once nothing refers to its owner.

    At the process's exit, the driver frees what is left.
    """
    finalize(owner, _free, context, name, handle).atexit = False


def _free(context: ctypes.c_void_p, name: str, handle: object) -> None:
    # The context may be gone, with everything in it; a forked process has no context.
    with suppress(DeviceError, Forked), inside(context):
        getattr(driver(), name)(handle)
