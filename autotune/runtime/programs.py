"""The programs of this process: what loaded kernels compile alike in one place, they share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

_MAX_KEPT = 64  # programs that no loaded kernel uses: one may be loaded for every request


class Programs:
    """Programs by what they are made from: those in use, and the latest others."""

    def __init__(self, max_kept: int = _MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._used: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._latest: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The program of a key, made if there is none; what `make` raises passes through."""
        with self._lock:
            program = self._used.get(key)
        if program is None:
            made = make()  # takes long: other threads need not wait
            with self._lock:
                program = self._used.setdefault(key, made)
        with self._lock:
            self._latest[key] = program
            self._latest.move_to_end(key)
            if len(self._latest) > self._max_kept:
                self._latest.popitem(last=False)
        return program


shared = Programs()
