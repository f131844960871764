"""A process that is begun before it is needed, and opens its device meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress

from autotune.errors import ChildFailed
from autotune.evaluation.device_process import open_device
from autotune.processes.child import Child


class Spare:
    """One process at a time, begun by one thread and taken by another one."""

    def __init__(self, new_child: Callable[[], Child], timeout_s: float) -> None:
        """Begin nothing yet; opening the device may take `timeout_s`."""
        self._new_child, self._timeout_s = new_child, timeout_s
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._opened: Future[None] | None = None  # None: the device is left alone
        self._is_taken = False

    def begin(self, *, opens: bool = True, then: Callable[[], object] = lambda: None) -> None:
        """Begin the process, unless it has begun; `then` is called once its device is open."""
        with self._lock:
            if self._child is not None:
                return
            self._child = child = self._new_child()
            if opens:
                child.ask(open_device, timeout_s=self._timeout_s)
                aside = ThreadPoolExecutor(1, thread_name_prefix="spare")
                self._opened = aside.submit(child.answer)
                self._opened.add_done_callback(lambda opened: opened.exception() or then())
                aside.shutdown(wait=False)

    def settle(self, timeout_s: float) -> None:
        """Wait until a device that is being opened is open, or cannot be opened."""
        if (opened := self._opened) is not None:
            with suppress(ChildFailed, Late):
                opened.result(timeout_s)

    def take(self, timeout_s: float | None = None) -> Child:
        """The process; a new one if none has begun, or if its device could not be opened next to others."""
        with self._lock:
            if self._child is None or self._is_taken:
                return self._new_child()
            child, opened, self._is_taken = self._child, self._opened, True
        try:
            if opened is not None:
                opened.result(timeout_s)
        except (ChildFailed, Late):
            child.kill()
            child = self._new_child()
        with self._lock:
            self._child = self._opened = None
            self._is_taken = False
        return child

    def end(self, *, waits: bool = True) -> None:
        """Kill the process, if it has not been taken; once a call has waited, another one may be begun."""
        with self._lock:
            child = self._child
            if waits and not self._is_taken:
                self._child = self._opened = None
        if child is not None:
            child.kill(waits=waits)
