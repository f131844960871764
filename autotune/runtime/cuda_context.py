"""The context of the CUDA driver that a call runs in."""

from __future__ import annotations

import ctypes

from autotune.cuda.driver import CAPTURE_INVALIDATED, call, inside, primary_context
from autotune.errors import InputError
from autotune.hardware.cuda_driver import driver
from autotune.runtime.prepared import LEGACY, PER_THREAD

_POINTER_CONTEXT = 1  # CU_POINTER_ATTRIBUTE_CONTEXT, from cuda.h


def context_of(number: int, stream: int, address: int) -> ctypes.c_void_p:
    """The context of a stream, which has the memory at an address or is the current one of the memory's GPU.

    The default streams are those of every context: then it is that of the memory, which another package may
    have allocated in a context that is not current. Memory that is mapped or of a pool may have none.
    """
    current, device, owner, found = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    if driver().cuCtxGetDevice(ctypes.byref(device)) == 0 and device.value == number:
        call("cuCtxGetCurrent", ctypes.byref(current))
    driver().cuPointerGetAttribute(ctypes.byref(owner), _POINTER_CONTEXT, ctypes.c_uint64(address))
    context = next(filter(None, (owner, current)), None) or primary_context(number)
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
        call("cuCtxGetId", context, ctypes.byref(found))
    return found.value
