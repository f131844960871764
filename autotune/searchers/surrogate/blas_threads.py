"""Limits BLAS to one thread while any search models: on matrices this small, threads wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import scipy
from threadpoolctl import OpenBLASController, threadpool_limits

_lock = Lock()
_users = 0  # concurrent searches: the limit applies to the process, and theirs may overlap
_limit: threadpool_limits | None = None


def load_scipy() -> None:
    """Load the parts of scipy that models need: scipy loads each part at its first use, which takes long."""
    for part in ("linalg", "optimize", "special"):
        getattr(scipy, part)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the limit; the last of several concurrent searches removes it."""
    global _users, _limit
    load_scipy()  # the limit applies to what is loaded
    with _lock:
        if not _users:
            with _any_thread_decides():
                _limit = threadpool_limits(1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users and _limit is not None:
                with _any_thread_decides():
                    _limit.restore_original_limits()
                _limit = None


@contextmanager
def _any_thread_decides() -> Iterator[None]:
    """Let this thread set a limit: threadpoolctl 3.8 ignores all threads but the first that set one."""
    forget_first = getattr(OpenBLASController, "clear_controlling_thread", lambda *, force: None)
    forget_first(force=True)  # earlier versions have no such rule
    yield
    forget_first(force=True)
