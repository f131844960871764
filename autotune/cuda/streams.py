"""Streams, and events that time their work."""

from __future__ import annotations

import ctypes

from autotune.cuda.driver import call, freed_with

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


class Stream:
    """A stream that does not wait for the default one; freed with the last reference to it."""

    def __init__(self, context: ctypes.c_void_p) -> None:
        self.handle = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(self.handle), _NON_BLOCKING)
        freed_with(self, context, "cuStreamDestroy_v2", self.handle)

    def wait(self) -> None:
        """Wait for all enqueued work."""
        call("cuStreamSynchronize", self.handle)


class Event:
    """A point in the work of a stream; freed with the last reference to it."""

    def __init__(self, context: ctypes.c_void_p) -> None:
        self._handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self._handle), 0)
        freed_with(self, context, "cuEventDestroy_v2", self._handle)

    def record(self, stream: ctypes.c_void_p) -> None:
        """Enqueue the event on a stream."""
        call("cuEventRecord", self._handle, stream)

    def ms_since(self, earlier: Event) -> float:
        """Wait for the event; return the time since an earlier event in ms."""
        time_ms = ctypes.c_float()
        call("cuEventSynchronize", self._handle)
        call("cuEventElapsedTime", ctypes.byref(time_ms), earlier._handle, self._handle)
        return time_ms.value
