"""CUDA graphs through the driver API: the same for every package, and the fastest to replay."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from autotune.devices.cuda_memory import call
from autotune.hardware.cuda_driver import driver


class DriverGraph:
    """A graph of the work that `enqueue` puts into a stream. Raises DriverError."""

    def __init__(self, stream: int, enqueue: Callable[[], None]) -> None:
        self._driver = driver()
        self._stream = ctypes.c_void_p(stream)
        self._graph, self._executable = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamBeginCapture_v2", self._stream, 2)  # relaxed mode: no other thread uses CUDA
        try:
            enqueue()
        except BaseException:
            # makes the stream usable again
            self._driver.cuStreamEndCapture(self._stream, ctypes.byref(self._graph))
            raise
        call("cuStreamEndCapture", self._stream, ctypes.byref(self._graph))
        call("cuGraphInstantiateWithFlags", ctypes.byref(self._executable), self._graph, ctypes.c_uint64(0))
        call("cuGraphUpload", self._executable, self._stream)

    def launch(self) -> None:
        """Queue the graph on the stream."""
        call("cuGraphLaunch", self._executable, self._stream)

    def __del__(self) -> None:
        if self._executable:
            self._driver.cuGraphExecDestroy(self._executable)
        if self._graph:
            self._driver.cuGraphDestroy(self._graph)
