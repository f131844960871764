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
from autotune.runtime.cuda_context import RELAXED, check, handle_of, inside
from autotune.runtime.packages import LEGACY


class LaunchGraph:
    """Operations that are captured once; the driver's memory of them is freed with the last reference."""

    def __init__(self, context: ctypes.c_void_p, queue: Callable[[ctypes.c_void_p], None]) -> None:
        """Capture what `queue` queues on the stream that it is given; raises LaunchError."""
        self._context, self._ready = context, ctypes.c_void_p()
        stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
        with inside(context):
            check("a stream", driver().cuStreamCreate(ctypes.byref(stream), NON_BLOCKING))
            try:
                check("a capture", driver().cuStreamBeginCapture_v2(stream, RELAXED))
                try:
                    queue(stream)
                finally:
                    status = driver().cuStreamEndCapture(stream, ctypes.byref(graph))
                check("a graph", status)
                ready, flags = ctypes.byref(self._ready), ctypes.c_ulonglong()
                status = driver().cuGraphInstantiateWithFlags(ready, graph, flags)
                driver().cuGraphDestroy(graph)
                check("a graph", status)
            finally:
                driver().cuStreamDestroy_v2(stream)
        finalize(self, _destroy, self._ready, context).atexit = False

    def on(self, stream: int, lock: Lock, otherwise: Callable[[], Any]) -> Callable[[], Any]:
        """A function that launches the graph and returns the driver's status.

        Args:
            stream: Where it is launched.
            lock: Held meanwhile: a graph belongs to one thread at a time.
            otherwise: Is called, and its answer returned, where the graph cannot be launched: in a capture of
                the stream; or, on the default stream, which every context has, if another one is current.
        """
        launch = partial(driver().cuGraphLaunch, handle_of(self._ready.value), handle_of(stream))
        found: Any
        if stream == LEGACY:
            found, usual = ctypes.c_void_p(), self._context.value
            ask = partial(driver().cuCtxGetCurrent, ctypes.byref(found))
        else:
            found, usual = ctypes.c_int(), 0
            ask = partial(driver().cuStreamIsCapturing, handle_of(stream), ctypes.byref(found))

        def queue() -> Any:
            with lock:
                if not ask() and found.value == usual:
                    return launch()
            return otherwise()

        return queue


def _destroy(ready: ctypes.c_void_p, context: ctypes.c_void_p) -> None:
    with inside(context):
        driver().cuGraphExecDestroy(ready)  # not before what is queued has ended
