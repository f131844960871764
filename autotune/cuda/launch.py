"""Launches as the CUDA driver takes them. It needs no numpy, for whose import a first call would wait."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any

from autotune.core.records import Launch
from autotune.errors import LaunchError
from autotune.hardware.architectures import MAX_GRID
from autotune.hardware.cuda_driver import driver

# CUlaunchAttributeID
_COOPERATIVE, _CLUSTER_DIMENSION, _PROGRAMMATIC_SERIALIZATION = 2, 4, 6


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute; the value is a union of 64 bytes, of which at most three numbers are used here."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("padding", ctypes.c_char * 4),
        ("value", ctypes.c_uint * 16),
    )


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


def launch_call(
    step: Launch, function: ctypes.c_void_p, arguments: Sequence[Any], stream: ctypes.c_void_p
) -> Callable[[], int]:
    """A function that enqueues a launch, for which all is prepared, and returns the driver's status.

    The arguments are objects of ctypes, whose values are read at each call. Raises LaunchError for a grid
    that is too large.
    """
    if step.grid[0] > MAX_GRID[0]:  # ctypes would pass on the lower bits
        raise LaunchError(f"{step.entry}: {step.grid[0]:,} blocks in x, at most {MAX_GRID[0]:,}")
    attributes = list(_attributes(step))
    as_array = (_Attribute * max(1, len(attributes)))(*attributes)
    config = _Config(step.grid, step.block, step.shared_bytes, stream.value, as_array, len(attributes))
    pointers: Any = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    pointers.targets = arguments  # which have to live as long as the pointers
    # References are passed as they are; ctypes would convert anything else at every call.
    handle = ctypes.c_void_p.from_param(function.value)
    passed = ctypes.byref(config), handle, ctypes.byref(pointers), None
    return partial(driver().cuLaunchKernelEx, *passed)


def _attributes(step: Launch) -> Iterable[_Attribute]:
    given = (
        (_COOPERATIVE, step.cooperative and (1,)),
        (_CLUSTER_DIMENSION, step.cluster if prod(step.cluster) > 1 else ()),
        (_PROGRAMMATIC_SERIALIZATION, step.programmatic and (1,)),
    )
    return (_Attribute(kind, b"", value) for kind, value in given if value)
