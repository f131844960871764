"""CUDA graphs through the driver API: the same for every package, and the fastest to replay."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from autotune.cuda.driver import RELAXED, call
from autotune.hardware.cuda_driver import driver


class DriverGraph:
    """A graph of the work that `enqueue` puts into a stream. Raises DeviceError."""

    def __init__(self, stream: ctypes.c_void_p, enqueue: Callable[[], None]) -> None:
        self._driver = driver()
        self._stream = stream
        graph, self._executable = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamBeginCapture_v2", self._stream, RELAXED)
        try:
            enqueue()
            call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
            call("cuGraphInstantiateWithFlags", ctypes.byref(self._executable), graph, ctypes.c_uint64(0))
        except BaseException:
            if not graph:  # the stream is still capturing
                self._driver.cuStreamEndCapture(self._stream, ctypes.byref(graph))
            raise
        finally:
            if graph:
                self._driver.cuGraphDestroy(graph)
        call("cuGraphUpload", self._executable, self._stream)

    def launch(self) -> None:
        """Queue the graph on the stream."""
        call("cuGraphLaunch", self._executable, self._stream)

    def __del__(self) -> None:
        if self._executable:
            self._driver.cuGraphExecDestroy(self._executable)
