"""Memory of captured calls, which lives as long as the CUDA graphs that use it.

Once a graph and everything made from it are gone, the driver posts a semaphore of the C library, because its
threads must not run Python. The memory is freed at the next capture after that.
"""

from __future__ import annotations

import ctypes
from functools import cache
from threading import Lock
from typing import Any

from autotune.cuda.driver import CAPTURE_INVALIDATED, call, check
from autotune.errors import DeviceError
from autotune.hardware.cuda_driver import driver

_SEMAPHORE_BYTES = 32  # of sem_t
# From cuda.h.
_INVALIDATED = 2  # CU_STREAM_CAPTURE_STATUS_INVALIDATED: there is no graph any more
_NO_DESTRUCTOR_SYNC = 1
_MOVE = 1  # the graph takes over the reference

_held: list[tuple[Any, Any]] = []  # memory, and the semaphore that is posted once no graph uses it
_lock = Lock()  # of `_held`: threads may capture on several streams at once


def hold_for_graph(stream: ctypes.c_void_p, memory: object) -> None:
    """Keep an object alive as long as the graph that a stream is capturing; raises DeviceError."""
    with _lock:
        _held[:] = [(one, semaphore) for one, semaphore in _held if not _is_posted(semaphore)]
    state, graph, user_object = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    answers = ctypes.byref(state), None, ctypes.byref(graph), None, None
    call("cuStreamGetCaptureInfo_v2", stream, *answers)
    if state.value == _INVALIDATED:
        check("the graph's memory", CAPTURE_INVALIDATED)
    semaphore = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
    _c_library().sem_init(semaphore, 0, 0)
    released = semaphore, _c_library().sem_post, 1, _NO_DESTRUCTOR_SYNC
    call("cuUserObjectCreate", ctypes.byref(user_object), *released)
    with _lock:
        _held.append((memory, semaphore))
    try:
        call("cuGraphRetainUserObject", graph, user_object, 1, _MOVE)
    except DeviceError:
        driver().cuUserObjectRelease(user_object, 1)  # posts the semaphore
        raise


def _is_posted(semaphore: Any) -> bool:
    value = ctypes.c_int()
    _c_library().sem_getvalue(semaphore, ctypes.byref(value))
    return value.value > 0


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
