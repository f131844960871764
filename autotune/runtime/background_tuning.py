"""Tuning on first use: searches in processes of their own for problems that no result fits.

A call never waits for them. Once a search has stored its result, the next look at the cache finds it.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread

from autotune.core.records import Sizes, Tier
from autotune.core.trials import MAX_SEARCH_S
from autotune.errors import InputError
from autotune.serving.best import Best
from autotune.serving.cache import Folder

_FITTING = (Tier.EXACT, Tier.INTERPOLATED)


class BackgroundTuning:
    """Searches problems one after another, each of them once."""

    def __init__(
        self, kernel: str, space: str | os.PathLike[str] | None, budget_s: float, cache: Folder | None
    ) -> None:
        """Start nothing yet; each problem gets `budget_s`.

        Without `space`, the space file is `spaces/<kernel>.yaml` in the current folder, else autotune's own.
        Raises InputError for a budget that no search takes.
        """
        if not isinstance(budget_s, int | float) or not 0 < budget_s <= MAX_SEARCH_S:
            raise InputError(
                f"{kernel}: budget_s: expected a positive number of seconds up to a day, found {budget_s!r}"
            )
        own = Path("spaces", f"{kernel}.yaml")
        self._kernel = kernel
        self._space = os.fspath(space or (own if own.is_file() else kernel))
        self._budget_s, self._cache = budget_s, cache
        self._known: set[tuple[str, ...]] = set()
        self._queue: SimpleQueue[tuple[str, ...]] = SimpleQueue()
        self._lock = Lock()  # of `_known` and `_thread`; held for a moment only
        self._thread: Thread | None = None
        self._process_lock = Lock()  # of `_process` and `_is_ending`
        self._process: subprocess.Popen[str] | None = None
        self._is_ending = False

    def request(self, best: Best, sizes: Sizes, data: str | None = None) -> None:
        """Search a problem if the served configuration was tuned for another problem; returns at once.

        Without `data`, the search takes the inputs' content for which this configuration was tuned.
        """
        if best.match.tier in _FITTING or best.device is None:
            return
        if data is None:
            data = best.entry.data if best.entry else ""
        given = [f"--size={name}={size}" for name, size in sorted(sizes.items())]
        words = (f"--device={best.device.slug}", f"--dtype={best.dtype}", *given)
        words += (f"--data={data}",) if data else ()
        with self._lock:
            if words in self._known:
                return
            self._known.add(words)
            self._queue.put(words)
            if self._thread is None:
                self._thread = Thread(target=self._work, name=f"tuning {self._kernel}", daemon=True)
                self._thread.start()
                atexit.register(self._stop)

    def _work(self) -> None:
        while True:
            self._search(self._queue.get())

    def _search(self, words: tuple[str, ...]) -> None:
        limit = [f"--time={self._budget_s:g}", "--quiet"]
        where = [f"--cache={os.fspath(self._cache)}"] if self._cache else []
        command = [sys.executable, "-m", "autotune", "search", self._space, *words, *limit, *where]
        try:
            process = self._started(command)
        except OSError as error:
            warnings.warn(f"{self._kernel}: cannot be tuned: {error.strerror}", stacklevel=2)
            return
        if process is None:
            return
        _, said = process.communicate()
        if process.returncode > 0:
            reason = (said.strip().splitlines() or ["no reason given"])[-1]
            warnings.warn(
                f"{self._kernel}: could not be tuned with {' '.join(words)}: {reason}", stacklevel=2
            )

    def _started(self, command: Sequence[str]) -> subprocess.Popen[str] | None:
        """A process with a command; None once the program ends, for nothing would end the process then."""
        with self._process_lock:
            if self._is_ending:
                return None
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            return self._process

    def _stop(self) -> None:
        """End the search when the program ends; the same search resumes later."""
        with self._process_lock:
            self._is_ending = True
            if self._process is not None:
                self._process.terminate()
