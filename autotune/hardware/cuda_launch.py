"""Launches as the CUDA driver takes them. Without numpy, which a first call would wait for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from math import prod
from threading import Lock

from autotune.core.records import Launch
from autotune.errors import LaunchError
from autotune.hardware.architectures import MAX_GRID

NON_BLOCKING = 1  # flag of a stream
_MAX_PORTABLE_CLUSTER = 8
# CUfunction_attribute
_MAX_DYNAMIC_SHARED_BYTES, _NON_PORTABLE_CLUSTER_ALLOWED = 8, 14
# CUlaunchAttributeID
_COOPERATIVE, _CLUSTER_DIMENSION, _PROGRAMMATIC_SERIALIZATION = 2, 4, 6


class Permissions:
    """What the kernels of a binary are allowed: the most that any launch of them has needed so far.

    A kernel has one limit for all of its launches, and a launch beyond it fails.
    """

    def __init__(self) -> None:
        self._allowed: dict[tuple[str, int], int] = {}  # by kernel and attribute
        self._lock = Lock()

    def allow(self, step: Launch, change: Callable[[int, int, str], None]) -> None:
        """Allow a kernel what a launch needs; `change` gets the attribute, its value and what that means."""
        with self._lock:
            for attribute, value, what in _needs(step):
                if value > self._allowed.get((step.entry, attribute), 0):
                    change(attribute, value, what)
                    self._allowed[step.entry, attribute] = value


def _needs(step: Launch) -> Iterator[tuple[int, int, str]]:
    if step.shared_bytes:  # with the static shared memory this may exceed 48 KiB
        yield (
            _MAX_DYNAMIC_SHARED_BYTES,
            step.shared_bytes,
            f"{step.shared_bytes} bytes of dynamic shared memory",
        )
    if prod(step.cluster) > _MAX_PORTABLE_CLUSTER:
        yield _NON_PORTABLE_CLUSTER_ALLOWED, 1, f"clusters of {prod(step.cluster)}"


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


def launch_config(step: Launch, stream: int) -> ctypes.Structure:
    """The grid, block, stream and attributes of a launch, as the driver takes them; raises LaunchError."""
    if step.grid[0] > MAX_GRID[0]:  # ctypes would pass on the lower bits
        raise LaunchError(f"{step.entry}: {step.grid[0]:,} blocks in x, at most {MAX_GRID[0]:,}")
    found = list(_attributes(step))
    attributes = (_Attribute * max(1, len(found)))(*found)
    return _Config(step.grid, step.block, step.shared_bytes, stream, attributes, len(found))


def _attributes(step: Launch) -> Iterable[_Attribute]:
    given = (
        (_COOPERATIVE, step.cooperative and (1,)),
        (_CLUSTER_DIMENSION, step.cluster if prod(step.cluster) > 1 else ()),
        (_PROGRAMMATIC_SERIALIZATION, step.programmatic and (1,)),
    )
    return (_Attribute(kind, b"", value) for kind, value in given if value)
