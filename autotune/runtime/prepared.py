"""Prepared calls for known arrays, independent of any GPU package.

A loaded kernel makes a `CallPlan` from the configuration and the shapes. A launcher turns the plan into
launches whose arguments are packed: a call only fills in the addresses of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np

from autotune.core.records import DeviceInfo, Launch
from autotune.core.trials import Binary

_ALIGNMENT_BYTES = 256  # arrays in a block are aligned as allocations are
_MAX_SPARE_BYTES = 2**26

# The numbers of the two default streams, for the driver and in the array interface; 0 may be either of them.
LEGACY, PER_THREAD = 1, 2


class View(NamedTuple):
    """An array as a launch takes it; dtype and shape are None for raw memory."""

    handle: Any
    dtype: str | None
    shape: tuple[int, ...] | None
    size_bytes: int
    device: Any  # equal for arrays of one device


class Hidden(NamedTuple):
    """An array that the kernel needs and no caller passes: scratch, a counter, a copy of an input."""

    name: str
    size_bytes: int
    fill: bytes = b""  # an element that is written to all of it, once: every run leaves the array as it was
    copy_of: str = ""  # the array that is copied to it before every run


class CallPlan(NamedTuple):
    """The launches of a call with the origin of every argument."""

    given: tuple[str, ...]  # arrays and numbers, in the order of a call's handles; "" for an absent array
    scalars: Mapping[str, np.generic]  # the other numbers
    hidden: tuple[Hidden, ...]
    variables: tuple[tuple[str, str, int], ...]  # of the program: name, array that is copied to it, bytes
    launches: tuple[Launch, ...]
    local: Mapping[str, int] = {}  # OpenCL's local memory: bytes by name
    views: tuple[tuple[str, str, int], ...] = ()  # pointers into arrays: name, array, offset in bytes
    pointers: tuple[tuple[str, int, str], ...] = ()  # in structures: structure, place in bytes, array or view


class Prepared(Protocol):
    """The launches of a call, complete but for the handles of its arrays and numbers."""

    def run(self, handles: Sequence[Any]) -> Any:
        """Enqueue the launches; returns an event, or None. Raises DeviceError."""

    def bind(self, handles: Sequence[Any]) -> BoundCall:
        """A run that is fixed to these handles, and takes the least work."""


class BoundCall(NamedTuple):
    """A run on fixed arrays, in two parts: functions take time, and the second is rarely needed.

    Attributes:
        enqueue: Enqueues the launches, and returns an event of OpenCL, a status of CUDA's driver, or None.
        finish: Takes an event, and returns it; or takes a status that is not 0, and enqueues the launches in
            another way, or raises DeviceError.
    """

    enqueue: Callable[[], Any]
    finish: Callable[[Any], Any] = lambda event: event


class Launcher(Protocol):
    """One stream of one device; in OpenCL, a command queue."""

    dialect: str  # of the device's compiler
    device: DeviceInfo
    place: object  # identifies device and context: a program runs on launchers of an equal place
    stream: Hashable  # work on equal streams runs in order

    def compiler(self, kind: str) -> str:
        """The compiler's name and version, as in results; `kind` is the record's."""

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> Any:
        """Compile a program with kernels of these C++ names; raises CompileError with the compiler's log."""

    def load(self, binary: Binary) -> Any:
        """Load a binary that is compiled already; raises DeviceError."""

    def number(self, value: np.generic) -> Any:
        """The handle of a number that a call gives."""

    def prepare(self, program: Any, plan: CallPlan, workspace: Workspace) -> Prepared:
        """Pack everything but the arrays' handles; raises DeviceError."""


class Workspace:
    """Memory that all calls on one stream share, because they run one after another.

    A block grows and never shrinks. Launches that were prepared with a smaller block keep that block alive.
    """

    def __init__(self) -> None:
        self.lock = Lock()  # held while a call enqueues its launches: two calls must not mix
        self._blocks: dict[str, tuple[int, Any]] = {}

    def reserve(self, name: str, size_bytes: int, allocate: Callable[[int], Any]) -> Any:
        """The block of this name, of at least this size."""
        room_bytes, block = self._blocks.get(name, (0, None))
        if block is None or size_bytes > room_bytes:
            size_bytes = max(size_bytes, min(2 * room_bytes, size_bytes + _MAX_SPARE_BYTES))
            block = allocate(size_bytes)
            self._blocks[name] = size_bytes, block
        return block


def offsets(hidden: Sequence[Hidden]) -> tuple[dict[str, int], int]:
    """The offset of each hidden array in a workspace, and the size of all together, in bytes."""
    places, end = {}, 0
    for array in hidden:
        places[array.name] = end
        end += -(-array.size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    return places, end
