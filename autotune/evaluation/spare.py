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
    """One process that stands by; another one may begin once it is taken."""

    def __init__(self, new_child: Callable[[], Child], timeout_s: float) -> None:
        """Begin nothing yet; opening the device may take `timeout_s`."""
        self._new_child, self._timeout_s = new_child, timeout_s
        self._lock = threading.Lock()  # one thread may take what another one begins
        self._child: Child | None = None  # that began last
        self._opened: Future[None] | None = None  # None: it leaves the device alone
        self._stands_by = self._has_ended = False

    def begin(self, *, opens: bool, then: Callable[[], object] = lambda: None) -> None:
        """Begin the process, unless one stands by; with `opens`, let the one that stands by open its device.

        `then` is called once that is open.
        """
        with self._lock:
            if self._has_ended:
                return
            if self._child is None or not self._stands_by:
                self._child, self._opened, self._stands_by = self._new_child(), None, True
            if opens and self._opened is None:
                self._child.ask(open_device, timeout_s=self._timeout_s)
                aside = ThreadPoolExecutor(1, thread_name_prefix="spare")
                self._opened = aside.submit(self._child.answer)
                self._opened.add_done_callback(lambda opened: opened.exception() or then())
                aside.shutdown(wait=False)

    def settle(self, timeout_s: float) -> None:
        """Wait until a device that is being opened is open, or cannot be opened."""
        if (opened := self._opened) is not None:
            with suppress(ChildFailed, Late):
                opened.result(timeout_s)

    def take(self, timeout_s: float | None = None) -> Child:
        """The process; a new one if none stands by, or if its device could not be opened next to others."""
        with self._lock:
            child, opened = (self._child, self._opened) if self._stands_by else (None, None)
            self._stands_by = False
        try:
            if opened is not None:
                opened.result(timeout_s)
        except (ChildFailed, Late):
            if child is not None:
                child.kill()
            child = None
        return child or self._new_child()

    def end(self, *, waits: bool = True) -> None:
        """Kill the process for good: no other one begins."""
        with self._lock:
            self._has_ended = True
        if self._child is not None:
            self._child.kill(waits=waits)
