"""Launches on fixed arrays as a CUDA graph: the driver queues one in half the time of a single launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any
from weakref import finalize

from autotune.hardware.cuda_driver import driver
from autotune.hardware.cuda_launch import NON_BLOCKING
from autotune.runtime.cuda_context import NOT_AS_GRAPH, RELAXED, check, handle_of, inside
from autotune.runtime.packages import LEGACY


class LaunchGraph:
    """Operations that are captured once; the driver's memory of them is freed with the last reference."""

    def __init__(
        self, context: ctypes.c_void_p, stream: int, lock: Lock, queue: Callable[[ctypes.c_void_p], None]
    ) -> None:
        """Capture operations; raises LaunchError.

        Args:
            context: That of the stream.
            stream: Where the graph is launched.
            lock: Held while it is: a graph belongs to one thread at a time.
            queue: Queues the operations on the stream that it is given.
        """
        ready = _captured(context, queue)
        finalize(self, _destroy, ready, context).atexit = False
        self.launch = _launcher(ready, context, stream, lock)


def _captured(context: ctypes.c_void_p, queue: Callable[[ctypes.c_void_p], None]) -> ctypes.c_void_p:
    """What `queue` queues, ready to be launched."""
    stream, graph, ready = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    with inside(context):
        check("a stream", driver().cuStreamCreate(ctypes.byref(stream), NON_BLOCKING))
        try:
            check("a capture", driver().cuStreamBeginCapture_v2(stream, RELAXED))
            try:
                queue(stream)
            finally:
                status = driver().cuStreamEndCapture(stream, ctypes.byref(graph))
            check("a graph", status)
            flags = ctypes.c_ulonglong()
            status = driver().cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, flags)
            driver().cuGraphDestroy(graph)
            check("a graph", status)
        finally:
            driver().cuStreamDestroy_v2(stream)
    return ready


def _launcher(ready: ctypes.c_void_p, context: ctypes.c_void_p, stream: int, lock: Lock) -> Callable[[], int]:
    """A function that launches a graph; it returns the driver's status, or NOT_AS_GRAPH.

    The latter in a capture of the stream, to which a graph cannot be added like this. And on the default
    stream, which every context has, if another context is current: there the graph would wait for others.
    """
    found: Any
    launch = partial(driver().cuGraphLaunch, handle_of(ready.value), handle_of(stream))
    if stream == LEGACY:
        found, usual = ctypes.c_void_p(), context.value
        ask = partial(driver().cuCtxGetCurrent, ctypes.byref(found))
    else:
        found, usual = ctypes.c_int(), 0
        ask = partial(driver().cuStreamIsCapturing, handle_of(stream), ctypes.byref(found))

    def queue() -> Any:
        with lock:
            if not ask() and found.value == usual:
                return launch()
        return NOT_AS_GRAPH

    return queue


def _destroy(ready: ctypes.c_void_p, context: ctypes.c_void_p) -> None:
    with inside(context):
        driver().cuGraphExecDestroy(ready)  # not before what is queued has ended
