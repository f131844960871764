"""Streams, and events to order and to time their work."""

from __future__ import annotations

import ctypes

from autotune.cuda.driver import call, freed_with

_NON_BLOCKING, _WITHOUT_TIME = 1, 2  # flags of streams and events, from cuda.h


class Stream:
    """A stream that does not wait for the default one; freed with the last reference to it."""

    def __init__(self, context: ctypes.c_void_p) -> None:
        self.handle = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(self.handle), _NON_BLOCKING)
        freed_with(self, context, "cuStreamDestroy_v2", self.handle)

    def wait(self) -> None:
        """Wait for all that is queued."""
        call("cuStreamSynchronize", self.handle)


class Event:
    """A point in the work of a stream; freed with the last reference to it."""

    def __init__(self, context: ctypes.c_void_p, *, is_timed: bool) -> None:
        self._handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self._handle), 0 if is_timed else _WITHOUT_TIME)
        freed_with(self, context, "cuEventDestroy_v2", self._handle)

    def record(self, stream: ctypes.c_void_p) -> None:
        """Queue the event on a stream."""
        call("cuEventRecord", self._handle, stream)

    def hold(self, stream: ctypes.c_void_p) -> None:
        """Let a stream wait for the event."""
        call("cuStreamWaitEvent", stream, self._handle, 0)

    def ms_since(self, earlier: Event) -> float:
        """Wait for the event; return the time since an earlier one in ms."""
        time_ms = ctypes.c_float()
        call("cuEventSynchronize", self._handle)
        call("cuEventElapsedTime", ctypes.byref(time_ms), earlier._handle, self._handle)
        return time_ms.value


class SideStreams:
    """The streams of work that may overlap, beside a main one; they fork from it and join it.

    They are freed with the last reference: neither a graph nor queued work needs them then.
    """

    def __init__(self, context: ctypes.c_void_p, main: ctypes.c_void_p) -> None:
        self._context, self._main = context, main
        self._streams: dict[int, Stream] = {}
        self._forked: set[int] = set()
        self._events: list[Event] = []

    def of(self, number: int) -> ctypes.c_void_p:
        """The stream for the next launch of this number; 0 waits for all others."""
        if number == 0:
            self.join()
            return self._main
        if number not in self._streams:
            self._streams[number] = Stream(self._context)
        stream = self._streams[number].handle
        if number not in self._forked:
            self._order(self._main, stream)
            self._forked.add(number)
        return stream

    def join(self) -> None:
        """Let the main stream wait for all others."""
        for number in sorted(self._forked):
            self._order(self._streams[number].handle, self._main)
        self._forked.clear()

    def _order(self, earlier: ctypes.c_void_p, later: ctypes.c_void_p) -> None:
        event = Event(self._context, is_timed=False)
        self._events.append(event)
        event.record(earlier)
        event.hold(later)
