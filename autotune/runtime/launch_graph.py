"""Launches on fixed arrays as a CUDA graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakSet

from autotune.cuda.driver import handle_of
from autotune.cuda.graph import Graph
from autotune.hardware.cuda_driver import driver
from autotune.runtime.prepared import LEGACY

NOT_HERE = -1  # none of the driver's statuses


class LaunchGraph:
    """Operations that are captured once; the driver's memory of them is freed with the last reference."""

    alive: ClassVar[WeakSet[LaunchGraph]] = WeakSet()

    def __init__(
        self, context: ctypes.c_void_p, stream: int, lock: Lock, queue: Callable[[ctypes.c_void_p], None]
    ) -> None:
        """Capture operations; raises DeviceError.

        Args:
            context: That of the stream.
            stream: Where the graph is launched.
            lock: Held while it is: a graph belongs to one thread at a time.
            queue: Queues the operations on the stream that it is given.
        """
        self._graph = Graph(context, queue)
        self.alive.add(self)
        self._lock = lock
        self._launch = partial(driver().cuGraphLaunch, handle_of(self._graph.handle.value), handle_of(stream))
        self._found: Any
        if stream == LEGACY:
            self._found, self._usual = ctypes.c_void_p(), context.value
            self._ask = partial(driver().cuCtxGetCurrent, ctypes.byref(self._found))
        else:
            self._found, self._usual = ctypes.c_int(), 0
            self._ask = partial(driver().cuStreamIsCapturing, handle_of(stream), ctypes.byref(self._found))

    def launch(self) -> Any:
        """Queue the operations; returns the driver's status, or NOT_HERE.

        NOT_HERE is for a capture of the stream, to which no graph can be added like this. It is also for the
        default stream if another context is current: there the graph would wait for other work.
        """
        with self._lock:
            if not self._ask() and self._found.value == self._usual:
                return self._launch()
        return NOT_HERE
