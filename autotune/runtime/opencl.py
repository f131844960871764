"""Prepared launches on arrays and buffers of pyopencl."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
from numpy.typing import NDArray
from pyopencl.tools import ImmediateAllocator, MemoryPool

from autotune.compilers.base import driver_compiler
from autotune.compilers.host_code import without_host_code
from autotune.core.launch_plan import needs_cuda
from autotune.core.trials import Binary
from autotune.devices.element_types import numpy_dtype
from autotune.devices.opencl import STANDARD, build_source, kernels_by_name
from autotune.devices.opencl_arrays import copy
from autotune.devices.opencl_platforms import opencl_devices, require_no_fork
from autotune.errors import CompileError, InputError, LaunchError
from autotune.hardware.identify import opencl_device
from autotune.runtime.packages import MakeOutput, Package, Reading, native_name
from autotune.runtime.prepared import BoundCall, CallPlan, View, Workspace
from autotune.sources.dialects import OPENCL

_MOST_KEPT_BYTES = 2**30  # of memory for arrays of numpy


class PyopenclPackage(Package):
    """Arrays and buffers of pyopencl, on the queue of the first array that has one."""

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read arrays; the key has the queue itself, because a later queue may get the same address."""
        queue = _queue_of_call(arrays, stream)
        signatures: list[Any] = []
        handles: list[Any] = []
        for array in arrays:
            if isinstance(array, cl_array.Array):
                signatures.append((array.shape, array.dtype, array.strides, array.offset, array.context))
                handles.append(array.base_data)
            else:
                signatures.append(array and (array.size, array.context))
                handles.append(array)
        return (queue, *signatures), handles

    def current_stream(self, array: Any) -> Callable[[], cl.CommandQueue | None]:
        """The queue of an array."""
        return partial(_queue, [array])

    def view(self, array: Any) -> View:
        """View a contiguous Array that begins at the start of its buffer, or a Buffer."""
        if isinstance(array, cl.Buffer):
            return View(array, None, None, array.size, array.context)
        if not isinstance(array, cl_array.Array):
            raise ValueError(f"expected an Array or a Buffer of pyopencl, found {type(array).__name__}")
        if not array.flags.c_contiguous or array.offset:
            raise ValueError("is not contiguous, or does not begin where its buffer does")
        return View(
            array.base_data,
            native_name(array.dtype),
            array.shape,
            array.nbytes,
            array.context or array.base_data.context,
        )

    def open(self, arrays: Sequence[Any], stream: Any) -> OpenCLLauncher:
        """Open the given queue, else that of the first array that has one."""
        queue = _queue_of_call(arrays, stream)
        if queue is None:
            raise InputError("these buffers have no queue; pass one as stream=")
        if queue.context != self.view(arrays[0]).device:
            raise InputError("the queue and the arrays are in different contexts")
        return OpenCLLauncher(queue)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> MakeOutput:
        """Allocate in the context of the input's queue."""
        of_dtype = numpy_dtype(dtype)
        if getattr(like, "queue", None) is None:
            raise InputError("no output can be allocated for an input without a queue; pass the output, too")

        def make(array: Any) -> tuple[Any, Any]:
            made = cl_array.empty(array.queue, shape, of_dtype, allocator=array.allocator)
            return made, made.base_data

        return make


def back_on_host(
    made: Any, there: dict[str, cl_array.Array], arrays: Mapping[str, Any], written: Set[str]
) -> Any:
    """Wait for a call on the CPU, and return what it made in numpy; the arrays in `written` are copied back.

    `there` has the copies of the arrays from `on_cpu`, and is emptied: the pool has their memory back.
    """
    for name in arrays.keys() & written:
        arrays[name][...] = _on_host(there[name])
    own = {id(there[name]): arrays[name] for name in arrays}  # the kernel may return arrays that it was given

    def returned(array: Any) -> Any:
        return own[id(array)] if id(array) in own else _on_host(array)

    if isinstance(made, tuple):
        made = tuple(map(returned, made))
    elif isinstance(made, cl_array.Array):
        made = returned(made)
    else:
        made = None
    there.clear()
    pool = _cpu().pool
    if pool.managed_bytes > _MOST_KEPT_BYTES:
        pool.free_held()
    return made


def on_cpu(label: str, arrays: Mapping[str, Any], written: Set[str]) -> dict[str, cl_array.Array]:
    """Copy the numpy arrays of a call to the CPU's queue; the kernel writes the arrays named in `written`.

    Raises:
        InputError: OpenCL shows no CPU, or an array that the kernel writes is read-only.
        Forked: The process was forked from one that had used OpenCL.
    """
    for name, array in arrays.items():
        if name in written and not array.flags.writeable:
            raise InputError(f"{label}: {name}: the kernel writes it, but the array is read-only")
    require_no_fork()
    queue, _, pool = _cpu()
    there: dict[str, cl_array.Array] = {}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise InputError(f"{label}: {name}: expected an array of numbers, found one of objects")
        if hasattr(array, "mask"):
            raise InputError(f"{label}: {name}: has a mask, which a kernel does not see; pass x.filled(0)")
        host = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        there[name] = cl_array.empty(queue, array.shape, host.dtype, allocator=pool)
        copy(queue, there[name].base_data, host.reshape(-1).view(np.uint8), host.nbytes)
    return there


def _on_host(array: cl_array.Array) -> NDArray[Any]:
    """A new array of the host with the same content."""
    host = np.empty(array.shape, array.dtype)
    copy(array.queue, host.reshape(-1).view(np.uint8), array.base_data, host.nbytes)
    return host


class _CPU(NamedTuple):
    """A queue, its context, which the queue does not keep alive, and memory for arrays."""

    queue: cl.CommandQueue
    context: cl.Context
    pool: MemoryPool  # the first touch of fresh memory may take longer than a kernel


@cache
def _cpu() -> _CPU:
    """The first CPU; raises InputError if OpenCL shows none."""
    for device in opencl_devices():
        if device.type & cl.device_type.CPU:
            context = cl.Context([device])
            queue = cl.CommandQueue(context)
            return _CPU(queue, context, MemoryPool(ImmediateAllocator(queue)))
    raise InputError(
        "numpy arrays need a CPU in OpenCL, which shows none (`autotune doctor` says why); for a GPU, pass "
        "cupy.asarray(x) or torch.as_tensor(x, device='cuda')"
    )


class OpenCLLauncher:
    """One command queue.

    In Intel's runtime neither a queue nor a program keeps its context: whoever keeps one of these keeps the
    context, too.
    """

    dialect = "opencl"

    def __init__(self, queue: cl.CommandQueue) -> None:
        require_no_fork()
        self.device = opencl_device(queue.device)
        self.place: object = (queue.context, queue.device)  # equal if their handles are
        self._queue = queue
        self.stream: Hashable = queue

    def compiler(self, kind: str) -> str:
        """The driver's own compiler."""
        return driver_compiler(self.device)

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> cl.Program:
        """Build for the queue's device, without host code."""

        def build(text: str) -> cl.Program:
            try:
                return build_source(self._queue.context, text, [STANDARD, *options], [self._queue.device])
            except cl.Error as error:
                raise CompileError(str(error)) from None

        try:
            return without_host_code(build, source, names, OPENCL)
        except CompileError:
            if kind in ("", "nvrtc"):
                raise
            raise CompileError(f"needs an NVIDIA GPU: it is compiled with {kind}") from None

    def load(self, binary: Binary) -> cl.Program:
        """Refuse: what is shipped is for NVIDIA GPUs."""
        raise LaunchError("binaries are shipped for CUDA only")

    def number(self, value: np.generic) -> np.generic:
        """Numbers are passed as they are."""
        return value

    def prepare(self, program: cl.Program, plan: CallPlan, workspace: Workspace) -> _Prepared:
        """Make the kernels and set what is the same at every call; raises LaunchError."""
        for step in plan.launches:
            if reason := needs_cuda(step):
                raise LaunchError(reason)
        if plan.views:
            raise LaunchError(f"{plan.views[0][0]}: load_kernel passes pointers into arrays on CUDA only")
        if plan.variables:
            name, _, _ = plan.variables[0]
            raise LaunchError(f"{name}: only CUDA has variables that the host can write")
        return _Prepared(self._queue, program, plan, workspace)


class _Prepared:
    """Kernels with the arguments that all calls share; each call sets the others, in the same kernels."""

    def __init__(
        self, queue: cl.CommandQueue, program: cl.Program, plan: CallPlan, workspace: Workspace
    ) -> None:
        self._queue, self._context, self._lock = queue, queue.context, workspace.lock
        self._values = values = dict[str, Any](plan.scalars)  # kernels do not keep them alive
        values |= {name: cl.LocalMemory(size_bytes) for name, size_bytes in plan.local.items()}
        for array in plan.hidden:
            values[array.name] = (
                self._buffer(array.size_bytes, array.fill)
                if array.fill
                else workspace.reserve(array.name, array.size_bytes, self._buffer)
            )
        places = {name: place for place, name in enumerate(plan.given)}
        self._copies = [
            (values[array.name], places[array.copy_of], array.size_bytes)
            for array in plan.hidden
            if array.copy_of
        ]
        self._launches = []
        entry = "the program"
        try:
            names = {name: kernel.function_name for name, kernel in kernels_by_name(program).items()}
            for step in plan.launches:
                entry = step.entry
                kernel = cl.Kernel(program, names.get(entry, entry))
                for number, name in enumerate(step.arguments):
                    if name not in places:
                        kernel.set_arg(number, values[name])
                own = [(number, places[name]) for number, name in enumerate(step.arguments) if name in places]
                self._launches.append((kernel, own, step.global_size, step.block))
        except cl.Error as error:
            raise LaunchError(f"{entry}: {error}") from None
        self._is_unordered = bool(
            queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        )

    def run(self, handles: Sequence[Any]) -> cl.Event | None:
        """Enqueue the operations, each after the previous operation.

        On a queue that is out of order, barriers keep them behind all earlier and ahead of all later work:
        nobody else is known to wait.
        """
        require_no_fork()
        with self._lock:
            event, entry = None, ""
            try:
                if self._is_unordered:
                    cl.enqueue_barrier(self._queue)
                for target, place, size_bytes in self._copies:
                    event = copy(self._queue, target, handles[place], size_bytes, after=event)
                for kernel, own, total, block in self._launches:
                    entry = kernel.function_name
                    for number, place in own:
                        kernel.set_arg(number, handles[place])
                    event = cl.enqueue_nd_range_kernel(
                        self._queue, kernel, total, block, wait_for=event and [event]
                    )
                if self._is_unordered:
                    cl.enqueue_barrier(self._queue)
            except cl.Error as error:
                raise LaunchError(f"{entry}: {error}") from None
            return event

    def bind(self, handles: Sequence[Any]) -> BoundCall:
        """A run on these handles; kernels are shared, so it sets their arguments, too."""
        return BoundCall(partial(self.run, handles))

    def _buffer(self, size_bytes: int, fill: bytes = b"") -> cl.Buffer:
        flags, content = cl.mem_flags.READ_WRITE, None
        if fill:
            flags |= cl.mem_flags.COPY_HOST_PTR
            content = np.frombuffer(fill * (size_bytes // len(fill)), np.uint8)
        try:
            return cl.Buffer(self._queue.context, flags, 0 if fill else max(1, size_bytes), hostbuf=content)
        except cl.Error as error:
            raise LaunchError(f"{size_bytes} bytes of scratch memory: {error}") from None


def _queue_of_call(arrays: Sequence[Any], stream: Any) -> cl.CommandQueue | None:
    """The queue of a call; raises InputError for a stream that is no queue."""
    if stream is None:
        return _queue(arrays)
    if not isinstance(stream, cl.CommandQueue):
        raise InputError(f"stream {stream!r}: expected a pyopencl.CommandQueue")
    return stream


def _queue(arrays: Sequence[Any]) -> cl.CommandQueue | None:
    return next((array.queue for array in arrays if getattr(array, "queue", None)), None)
