"""A kernel for the fake device that goes wrong in every way a kernel can, one FAULT a configuration.

It doubles n numbers and claims a device time that falls with SPEED. Every faulty configuration claims to
be ten times faster than an honest one, and must lose all the same. FAULT and SPEED are macros.
"""

# ruff: noqa: F821 - macros are globals that autotune puts in front

import os
import signal


def compiling():
    if FAULT == FAULT_COMPILE_ERROR:
        raise ValueError("this configuration does not compile")
    if FAULT == FAULT_COMPILE_HANG:
        _hang()
    if FAULT == FAULT_COMPILE_CRASH:
        _crash()


def double(grid, block, x, y, n):
    source, target = x.view("int32"), y.view("int32")
    if FAULT == FAULT_HANG:
        _hang()
    if FAULT == FAULT_CRASH:
        _crash()
    if FAULT == FAULT_RAISE:
        raise RuntimeError("the device reports an error that sticks")
    if FAULT == FAULT_WRITE_NOTHING:
        return 0.1 / SPEED
    target[:n] = 2 * source[:n]
    if FAULT == FAULT_MISCOMPILE:
        target[n // 2] += 1
    if FAULT == FAULT_OUT_OF_BOUNDS:
        _memory_behind(y)[0] = 0
    if FAULT == FAULT_CHANGE_INPUT:
        source[0] += 1
    return (1.0 if FAULT == FAULT_NONE else 0.1) / SPEED


def _hang():
    while True:
        pass


def _crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def _memory_behind(view):
    """The allocation that a view is part of, from the view's end on."""
    start = view.__array_interface__["data"][0] - view.base.__array_interface__["data"][0]
    return view.base[start + view.size :]
