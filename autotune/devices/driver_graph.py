"""CUDA graphs through the driver's own functions, for packages that do not wrap them."""

from __future__ import annotations

import ctypes
from typing import Any

from autotune.devices.base import DeviceLost


class DriverGraph:
    """What a stream is given between `DriverGraph(stream)` and `end()`, to be launched in one go."""

    def __init__(self, stream: int) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._stream = ctypes.c_void_p(stream)
        self._graph, self._executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, 2)  # relaxed: nobody else uses this process

    def end(self) -> None:
        """Take nothing more and make it ready."""
        self._call("cuStreamEndCapture", self._stream, ctypes.byref(self._graph))
        self._call(
            "cuGraphInstantiateWithFlags", ctypes.byref(self._executable), self._graph, ctypes.c_uint64(0)
        )
        self._call("cuGraphUpload", self._executable, self._stream)

    def launch(self) -> None:
        """Queue it on the stream."""
        self._call("cuGraphLaunch", self._executable, self._stream)

    def __del__(self) -> None:
        self._driver.cuGraphExecDestroy(self._executable)
        self._driver.cuGraphDestroy(self._graph)

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._driver, name)(*arguments):
            raise DeviceLost(f"{name} failed: CUDA error {code}")
