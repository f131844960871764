"""Calls that fail now and then, and succeed a moment later."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TypeVar

T = TypeVar("T")

_PAUSES_S = [2.0**-exponent for exponent in range(14, 1, -1)]  # 0.06 ms to 0.25 s, half a second in all


def retried(build: Callable[[], T], error: type[Exception], errno: int | None = None) -> T:
    """Call again while an error may pass by itself.

    Args:
        build: Makes the result.
        error: The class of the error.
        errno: Its number, for an error of the system.
    """
    for pause_s in _PAUSES_S:
        try:
            return build()
        except error as raised:
            if getattr(raised, "errno", None) != errno:
                raise
        sleep(pause_s)
    return build()
