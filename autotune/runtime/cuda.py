"""Prepared launches on NVIDIA GPUs, through the driver's library and ctypes.

No CUDA package is imported: a kernel whose binary is at hand needs only the driver. Arguments, grids and
streams are ctypes objects that are made once. A call writes the addresses of its arrays into them, and calls
the driver.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock, get_ident
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

import numpy as np

from autotune.compilers.cubins import Cubins
from autotune.compilers.known_compilers import lazy_compiler
from autotune.compilers.triton_binary import UNUSED, scratch_name
from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.cuda.driver import CAPTURE_INVALIDATED, call, check, handle_of, inside, primary_context
from autotune.cuda.launch import launch_call
from autotune.cuda.memory import Memory, fill
from autotune.cuda.module import Module
from autotune.errors import DeviceError, InputError
from autotune.hardware.cuda_driver import cuda_device, driver
from autotune.runtime.prepared import LEGACY, PER_THREAD, BoundCall, CallPlan, Hidden, Workspace, offsets

_OTHER_CONTEXT = (201, 400)  # from cuda.h: no context is current, or not the context of the kernel
_REPEATS = 100  # calls in a row on the same arrays, after which a graph is made
_MAX_GRAPHS = 256  # with so many graphs in a process, repeated calls make no more: each takes device memory
_NOT_HERE = -1  # the driver has no such status
_ADDRESS_BYTES = 8
_POINTER_CONTEXT = 1  # CU_POINTER_ATTRIBUTE_CONTEXT, from cuda.h


class _Operation(NamedTuple):
    """One call of the driver; addresses of arrays are read from memory."""

    enqueue: Callable[[], int]  # returns the driver's status
    what: str  # for messages


class _Packed(NamedTuple):
    """The operations of a call, which read the handles of its arrays from `slots`."""

    first: _Operation  # most calls have no other
    others: list[_Operation]
    slots: Any
    views: list[tuple[Any, Any, int]]  # an address, the address of its array, and the bytes between


class CudaLauncher:
    """One stream of one GPU, in the context that has the memory at an address."""

    dialect = "cuda"

    def __init__(self, number: int, stream: int, address: int) -> None:
        self.device = cuda_device(number)
        self._context = _context_of(number, stream, address)
        self.place: object = (self._context.value, _context_id(self._context))
        self.stream: Hashable = (self.place, stream, get_ident() if stream == PER_THREAD else 0)
        self._handle = stream

    def compiler(self, kind: str) -> str:
        """The name and version of NVRTC or nvcc."""
        return lazy_compiler(self.device.architecture, kind).name

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> Module:
        """Load the binary, which the binary cache may have; raises SetupError where nvcc is missing."""
        compiler = lazy_compiler(self.device.architecture, kind)
        return self.load(compiler.compile(source, options, names))

    def load(self, binary: Binary) -> Module:
        """Load a binary into the context."""
        return Module(binary, self._context, stays=True)

    def number(self, value: np.generic) -> int:
        """The bits of a number, in place of an address; raises InputError if an address has fewer bits."""
        if value.nbytes > _ADDRESS_BYTES:
            raise InputError(
                f"{value!r}: expected a number of at most 8 bytes; make it an array of one element"
            )
        return int.from_bytes(value.tobytes(), "little")

    def prepare(self, program: Module, plan: CallPlan, workspace: Workspace) -> _Prepared:
        """Pack the launches; raises DeviceError."""
        plan = plan._replace(hidden=plan.hidden + _scratch(program.cubins, plan.launches))
        with inside(self._context):
            if plan.hidden or plan.variables:
                return _PreparedWithMemory(program, plan, self._context, self._handle, workspace)
            return _Prepared(program, plan, self._context, self._handle)


class _Prepared:
    """Launches that use nothing but the caller's arrays and numbers: no thread has to wait for another."""

    def __init__(self, program: Module, plan: CallPlan, context: ctypes.c_void_p, stream: int) -> None:
        self._plan, self._context, self._stream = plan, context, ctypes.c_void_p(stream)
        self._launches = [program.cubins.completed(step) for step in plan.launches]
        self._functions = [program.function(step) for step in self._launches]
        self._variables = [
            ctypes.c_uint64(program.variable(name, size_bytes)[0]) for name, _, size_bytes in plan.variables
        ]
        self._addresses: Mapping[str, int] = {}  # of hidden arrays
        self._spare: list[_Packed] = []  # as many as threads have called at the same time
        self._lock = Lock()  # of the graphs
        self._latest: Sequence[int] | None = None  # the handles of the latest call
        self._in_a_row = 0  # calls with these handles
        self._repeated: tuple[Sequence[int], LaunchGraph] | None = None

    def run(self, handles: Sequence[int]) -> None:
        """Enqueue the operations: as a graph, once the same handles have come again and again.

        Raises DeviceError.
        """
        repeated = self._repeated  # read once, because another thread may replace it
        if repeated is not None and repeated[0] == handles:
            if repeated[1].launch():  # the graph cannot be launched here or now
                self._enqueue(handles)
            return
        self._enqueue(handles)
        if handles != self._latest:
            self._latest, self._in_a_row = handles, 0
            return
        self._in_a_row += 1
        if self._in_a_row == _REPEATS and (graph := self._graph(handles, _MAX_GRAPHS)):
            self._repeated = handles, graph

    def _enqueue(self, handles: Sequence[int]) -> None:
        """Enqueue the operations one by one; raises DeviceError."""
        try:
            packed = self._spare.pop()
        except IndexError:
            packed = self._pack(self._addresses, handles, self._stream)
        operation, others, slots, views = packed
        slots[:] = handles
        if views:  # faster than a loop over an empty list
            for address, start, offset_bytes in views:
                address.value = start.value + offset_bytes
        if status := operation[0]():
            self._retry(*operation, status)
        if others:
            for enqueue, label in others:
                if status := enqueue():
                    self._retry(enqueue, label, status)
        self._spare.append(packed)

    def bind(self, handles: Sequence[int]) -> BoundCall:
        """The operations on these arrays, as a graph if the driver makes one."""
        graph = self._graph(handles)
        if graph is None:
            return BoundCall(partial(self._enqueue, handles))
        return BoundCall(graph.launch, lambda _: self._enqueue(handles))

    def _graph(self, handles: Sequence[int], limit: float = math.inf) -> LaunchGraph | None:
        """The operations as a graph; None if the driver makes none, or there are `limit` graphs already."""

        def capture(stream: ctypes.c_void_p) -> None:
            self._run_all(self._pack(self._addresses, handles, stream))

        # The stream per thread is a different stream in each thread.
        if self._stream.value != PER_THREAD and len(LaunchGraph.alive) < limit:
            with suppress(DeviceError):
                return LaunchGraph(self._context, self._stream.value or LEGACY, self._lock, capture)
        return None

    def _run_all(self, packed: _Packed) -> None:
        """Enqueue operations, on the arrays with which they were packed."""
        if status := packed.first.enqueue():
            self._retry(*packed.first, status)
        for enqueue, label in packed.others:
            if status := enqueue():
                self._retry(enqueue, label, status)

    def _retry(self, enqueue: Callable[[], int], label: str, status: int) -> None:
        """Try again in the kernel's context, if another context was current, or none as in a new thread."""
        if status in _OTHER_CONTEXT:
            with inside(self._context):
                status = enqueue()
        check(label, status)

    def _pack(self, addresses: Mapping[str, int], handles: Sequence[int], stream: ctypes.c_void_p) -> _Packed:
        """Pack all operations on a stream, for hidden arrays at these addresses."""
        plan, copy = self._plan, driver().cuMemcpyDtoDAsync_v2
        slots = (ctypes.c_uint64 * len(plan.given))(*handles)
        values: dict[str, Any] = {
            name: ctypes.c_uint64.from_buffer(slots, 8 * place) for place, name in enumerate(plan.given)
        }
        values |= {name: ctypes.c_uint64(address) for name, address in addresses.items()}
        values[UNUSED] = ctypes.c_uint64()
        for name, value in plan.scalars.items():
            values[name] = ctypes.create_string_buffer(value.tobytes(), value.nbytes)
        views = []
        for name, parent, offset_bytes in plan.views:
            values[name] = ctypes.c_uint64(values[parent].value + offset_bytes)
            views.append((values[name], values[parent], offset_bytes))
        for name, place, target in plan.pointers:  # like views whose address is a part of a structure
            address = ctypes.c_uint64.from_buffer(values[name], place)
            address.value = values[target].value
            views.append((address, values[target], 0))
        copies = [
            (f"copy to {array.name}", values[array.name], array.copy_of, array.size_bytes)
            for array in plan.hidden
            if array.copy_of
        ]
        copies += [
            (name, address, source, size_bytes)
            for address, (name, source, size_bytes) in zip(self._variables, plan.variables, strict=True)
        ]
        operations = [
            _Operation(partial(copy, target, values[source], ctypes.c_size_t(size_bytes), stream), label)
            for label, target, source, size_bytes in copies
        ]
        operations += [
            _Operation(
                launch_call(step, function, [values[name] for name in step.arguments], stream), step.entry
            )
            for step, function in zip(self._launches, self._functions, strict=True)
        ]
        return _Packed(operations[0], operations[1:], slots, views)


class _PreparedWithMemory(_Prepared):
    """Launches that also use the kernel's own memory: calls of several threads must not mix."""

    def __init__(
        self, program: Module, plan: CallPlan, context: ctypes.c_void_p, stream: int, workspace: Workspace
    ) -> None:
        super().__init__(program, plan, context, stream)
        self._lock = workspace.lock
        # A graph may run at the same time as other calls, so it gets memory of its own.
        self._may_capture = bool(plan.hidden) and stream != LEGACY
        self._capture_state = ctypes.c_int()
        arguments = handle_of(stream), ctypes.byref(self._capture_state)
        self._ask_capture_state = partial(driver().cuStreamIsCapturing, *arguments)
        shared = [array for array in plan.hidden if not array.fill]
        kept = [array for array in plan.hidden if array.fill]
        self._blocks = (
            workspace.reserve("shared", offsets(shared)[1], partial(Memory, context)) if shared else None,
            Memory(context, offsets(kept)[1]) if kept else None,
        )
        self._addresses = _addresses(shared, self._blocks[0]) | _addresses(kept, self._blocks[1])
        _fill(context, kept, self._addresses)

    def _enqueue(self, handles: Sequence[int]) -> None:
        """Enqueue the operations, in turn with other threads; raises DeviceError."""
        with self._lock:
            if self._may_capture:
                if status := self._ask_capture_state():
                    self._retry(self._ask_capture_state, "the stream", status)
                if self._capture_state.value:
                    self._capture(handles)
                    return
            _Prepared._enqueue(self, handles)

    def _capture(self, handles: Sequence[int]) -> None:
        """Add the operations to a graph, with memory of its own for the hidden arrays."""
        from autotune.cuda.graph_memory import hold_for_graph  # as few calls are captured

        hidden = self._plan.hidden
        with inside(self._context):
            block = Memory(self._context, offsets(hidden)[1])
            hold_for_graph(self._stream, block)
            addresses = _addresses(hidden, block)
            _fill(self._context, [array for array in hidden if array.fill], addresses)
            self._run_all(self._pack(addresses, handles, self._stream))


class LaunchGraph:
    """Operations that are captured once; the driver's memory of them is freed with the last reference."""

    alive: ClassVar[WeakSet[LaunchGraph]] = WeakSet()

    def __init__(
        self, context: ctypes.c_void_p, stream: int, lock: Lock, enqueue: Callable[[ctypes.c_void_p], None]
    ) -> None:
        """Capture what `enqueue` puts on the stream that it is given; raises DeviceError.

        The graph is launched on `stream`, under the lock: it belongs to one thread at a time.
        """
        from autotune.cuda.graph import Graph  # not needed by a first call

        self._graph = Graph(context, enqueue)
        self.alive.add(self)
        self._lock = lock
        self._launch = partial(driver().cuGraphLaunch, handle_of(self._graph.handle.value), handle_of(stream))
        # Asked before each launch: is this context current? On other than the default stream: is it captured?
        self._answer: Any
        if stream == LEGACY:
            self._answer, self._wanted = ctypes.c_void_p(), context.value
            self._ask = partial(driver().cuCtxGetCurrent, ctypes.byref(self._answer))
        else:
            self._answer, self._wanted = ctypes.c_int(), 0
            self._ask = partial(driver().cuStreamIsCapturing, handle_of(stream), ctypes.byref(self._answer))

    def launch(self) -> Any:
        """Enqueue the operations; returns the driver's status, or _NOT_HERE.

        _NOT_HERE means that the stream is being captured, and a graph cannot be added like this; or, for the
        default stream, that another context is current, where the graph would wait for other work.
        """
        with self._lock:
            if not self._ask() and self._answer.value == self._wanted:
                return self._launch()
        return _NOT_HERE


def _context_of(number: int, stream: int, address: int) -> ctypes.c_void_p:
    """The context of a stream; it has the memory at an address, or is current on the memory's GPU.

    Every context has the default streams. For these, the memory's context is taken, because a package may
    allocate in a context that is not current. Mapped memory, and memory of a pool, may have no context.
    """
    current, device, owner, own = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    if driver().cuCtxGetDevice(ctypes.byref(device)) == 0 and device.value == number:
        call("cuCtxGetCurrent", ctypes.byref(current))
    driver().cuPointerGetAttribute(ctypes.byref(owner), _POINTER_CONTEXT, ctypes.c_uint64(address))
    context = owner or current or primary_context(number)
    if stream in (LEGACY, PER_THREAD):
        return context
    with inside(context):
        status = driver().cuStreamGetCtx(ctypes.c_void_p(stream), ctypes.byref(own))
    if status == CAPTURE_INVALIDATED:
        raise InputError("an earlier error has invalidated the stream's capture; begin another")
    if status or own.value not in (context.value, current.value):
        raise InputError("the stream and the arrays are of different GPUs or contexts")
    return own


def _context_id(context: ctypes.c_void_p) -> int:
    """A number that tells a context from a later one at the same address; 0 before CUDA 12."""
    number = ctypes.c_ulonglong()
    if hasattr(driver(), "cuCtxGetId"):
        call("cuCtxGetId", context, ctypes.byref(number))
    return number.value


def _addresses(arrays: Sequence[Hidden], block: Memory | None) -> dict[str, int]:
    return {name: block.address + place for name, place in offsets(arrays)[0].items()} if block else {}


def _fill(context: ctypes.c_void_p, arrays: Sequence[Hidden], addresses: dict[str, int]) -> None:
    for array in arrays:
        fill(context, addresses[array.name], array.fill, array.size_bytes)


def _scratch(cubins: Cubins, steps: Iterable[Launch]) -> tuple[Hidden, ...]:
    """The scratch memory that Triton's kernels need in addition to the launch plan's."""
    needed: dict[str, int] = {}
    for step in steps:
        name = scratch_name(step)
        needed[name] = max(cubins.scratch_bytes(step), needed.get(name, 0))
    return tuple(Hidden(name, size_bytes) for name, size_bytes in needed.items() if size_bytes)
