"""The contexts of the CUDA driver, and how its calls are made and checked."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from autotune.errors import InputError, LaunchError, OutOfMemory
from autotune.hardware.cuda_driver import driver, error_name, require_no_fork
from autotune.runtime.graph_memory import CAPTURE_INVALIDATED
from autotune.runtime.packages import LEGACY, PER_THREAD

# From cuda.h.
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_OUT_OF_MEMORY = 2
_POINTER_CONTEXT = 1  # CU_POINTER_ATTRIBUTE_CONTEXT


def handle_of(value: int | None) -> Any:
    """A handle as ctypes passes it, without a conversion at every call."""
    return ctypes.c_void_p.from_param(value)


def check(what: str, status: int) -> None:
    """Raise LaunchError, OutOfMemory or Forked for a status of the driver that is an error."""
    if status:
        require_no_fork(status)
        error = OutOfMemory if status == _OUT_OF_MEMORY else LaunchError
        raise error(f"{what}: {error_name(status)}")


def context_of(number: int, stream: int, address: int) -> ctypes.c_void_p:
    """The context of a stream, which has the memory at an address or is the current one of the memory's GPU.

    The default streams are those of every context: then it is that of the memory, which another package may
    have allocated in a context that is not current. Memory that is mapped or of a pool may have none.
    """
    current, device, owner, found = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    if driver().cuCtxGetDevice(ctypes.byref(device)) == 0 and device.value == number:
        check("the context", driver().cuCtxGetCurrent(ctypes.byref(current)))
    driver().cuPointerGetAttribute(ctypes.byref(owner), _POINTER_CONTEXT, ctypes.c_uint64(address))
    context = next(filter(None, (owner, current)), None) or _primary_context(number)
    if stream in (LEGACY, PER_THREAD):
        return context
    with inside(context):
        status = driver().cuStreamGetCtx(ctypes.c_void_p(stream), ctypes.byref(found))
    if status == CAPTURE_INVALIDATED:
        raise InputError("the stream is in a capture that an earlier error has ended")
    if status or found.value not in (context.value, current.value):
        raise InputError("the stream is not one of the GPU that has the arrays")
    return found


def context_id(context: ctypes.c_void_p) -> int:
    """What tells a context from a later one at the same address; 0 for a driver before CUDA 12."""
    found = ctypes.c_ulonglong()
    if hasattr(driver(), "cuCtxGetId"):
        check("the context", driver().cuCtxGetId(context, ctypes.byref(found)))
    return found.value


@cache  # retained as long as the process runs
def _primary_context(number: int) -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    check(f"GPU {number}", driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
    return context


@contextmanager
def inside(context: ctypes.c_void_p) -> Iterator[None]:
    """Make a context current, and allow calls that would end a capture of this thread."""
    mode, popped = ctypes.c_int(RELAXED), ctypes.c_void_p()
    check("the context", driver().cuCtxPushCurrent_v2(context))
    driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        yield
    finally:
        driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        driver().cuCtxPopCurrent_v2(ctypes.byref(popped))
