"""CUDA graphs: the driver enqueues a graph in half the time of a single launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from autotune.cuda.driver import RELAXED, call, check, freed_with, inside
from autotune.cuda.streams import Stream
from autotune.hardware.cuda_driver import driver


class Graph:
    """Work that is captured once, and freed with the last reference to it."""

    def __init__(self, context: ctypes.c_void_p, enqueue: Callable[[ctypes.c_void_p], None]) -> None:
        """Capture what `enqueue` puts on the stream that it is given; raises DeviceError."""
        graph, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        with inside(context):
            stream = Stream(context)
            call("cuStreamBeginCapture_v2", stream.handle, RELAXED)
            try:
                try:
                    enqueue(stream.handle)
                finally:
                    status = driver().cuStreamEndCapture(stream.handle, ctypes.byref(graph))
                check("a capture", status)
                flags = ctypes.c_ulonglong()
                call("cuGraphInstantiateWithFlags", ctypes.byref(self.handle), graph, flags)
            finally:
                if graph:
                    driver().cuGraphDestroy(graph)
        freed_with(self, context, "cuGraphExecDestroy", self.handle)  # the driver waits for enqueued launches

    def upload(self, stream: ctypes.c_void_p) -> None:
        """Bring the graph to the GPU: its first launch then takes no longer than later launches."""
        call("cuGraphUpload", self.handle, stream)

    def launch(self, stream: ctypes.c_void_p) -> None:
        """Enqueue the work on a stream."""
        call("cuGraphLaunch", self.handle, stream)
