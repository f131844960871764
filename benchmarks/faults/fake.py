"""The same faults for the fake device, whose errors come as Python's exceptions and signals."""

# ruff: noqa: F821 - macros are globals that autotune puts in front

import os
import signal

from autotune.errors import LaunchError

PASSES = 10 * TENS + ONES


def double_all(grid: tuple[int, ...], block: tuple[int, ...], x: object, y: object, n: int) -> float:
    """Claims a time that grows with PASSES, and a tenth of it where it goes wrong."""
    source, target = x.view("int32"), y.view("int32")
    if FAULT == FAULT_ILLEGAL_ACCESS:
        os.kill(os.getpid(), signal.SIGSEGV)
    if FAULT == FAULT_MISALIGNED:
        raise RuntimeError("MISALIGNED_ADDRESS")
    if FAULT == FAULT_STACK_OVERFLOW:
        return double_all(grid, block, x, y, n)
    if FAULT in (FAULT_TOO_MUCH_SHARED, FAULT_TOO_MANY_REGISTERS):
        raise LaunchError("out of resources")
    while FAULT == FAULT_ENDLESS:
        pass
    target[:n] = 2 * source[:n]
    if FAULT == FAULT_CHANGE_INPUT:
        source[PASSES] += 1
    return 0.1 * PASSES if FAULT == FAULT_NONE else 0.01 * PASSES
