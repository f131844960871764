"""How calls read the arrays of each GPU package.

Each package has a class, opened at the first array of its kind. `look` runs at every call: it reads what
launches depend on and the handles of the arrays, and checks nothing. `view` checks one array; it runs once
for all calls that look alike.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from math import prod
from threading import get_ident
from typing import Any, Protocol

import numpy as np

from autotune.devices.element_types import numpy_dtype
from autotune.errors import InputError
from autotune.runtime.prepared import Launcher, View

Look = tuple[Any, ...]  # of an array, after that of the arrays before it
Key = tuple[Any, ...]  # the stream's handle, and what the arrays look like
Looks = tuple[Key, list[Any]]
Make = Callable[[Any], tuple[Any, Any]]  # from an input to an output with its handle

# The driver's and the array interface's numbers of the default streams; 0 may be either.
LEGACY, PER_THREAD = 1, 2


class Package(Protocol):
    """The arrays of one package."""

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """What arrays look like (an absent one is None) and their handles; may raise nearly anything."""
        ...

    def look_for_one_kernel(self) -> Callable[[Sequence[Any], Any], Looks]:
        """A `look` for the calls of one kernel, which may remember what they looked like."""
        ...

    def current_stream(self, array: Any) -> Callable[[], Any]:
        """A function that gives the stream or queue to which an array's work goes at that time."""
        ...

    def view(self, array: Any) -> View:
        """View an array; raises ValueError with the reason when it cannot be passed to a kernel."""
        ...

    def open(self, arrays: Sequence[Any], stream: Any) -> Launcher:
        """Open the device of the first array, with the given stream or its own; raises InputError."""
        ...

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Make:
        """A function that makes an array, on the device of the one that it gets; raises InputError."""
        ...


class CudaPackage:
    """Arrays with the CUDA array interface: numba's and others."""

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """Read the interface of each array, and ask the driver for its GPU."""
        views = [None if array is None else self.view(array) for array in arrays]
        handles = [0 if view is None else view.handle for view in views]
        if stream is None:
            found = (self.current_stream(array)() for array in arrays if array is not None)
            own = next(found, None) or LEGACY
        else:
            own = stream_handle(stream)
        return _key(own, tuple(view and view._replace(handle=None) for view in views), handles), handles

    def look_for_one_kernel(self) -> Callable[[Sequence[Any], Any], Looks]:
        """The usual one."""
        return self.look

    def view(self, array: Any) -> View:
        """Read the interface; the driver knows the GPU."""
        interface = array.__cuda_array_interface__
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        if interface.get("strides") not in (None, _strides(shape, dtype.itemsize)):
            raise ValueError("is not contiguous")
        if interface.get("mask") is not None:
            raise ValueError("has a mask")
        pointer = int(interface["data"][0])
        return View(pointer, dtype.name, shape, prod(shape) * dtype.itemsize, _gpu_of(pointer))

    def open(self, arrays: Sequence[Any], stream: Any) -> Launcher:
        """Open the GPU through the driver."""
        from autotune.runtime.cuda import CudaLauncher

        key, _ = self.look(arrays[:1], stream)
        return CudaLauncher(self.view(arrays[0]).device, key[0])

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Make:
        """Refuse: there is no package to ask."""
        kind = type(like).__qualname__
        raise InputError(f"an output cannot be allocated beside an array of type {kind}; pass it, too")

    def current_stream(self, array: Any) -> Callable[[], int | None]:
        """The stream of the interface, if it has one."""
        return lambda: array.__cuda_array_interface__.get("stream")


class TorchPackage(CudaPackage):
    """Tensors of PyTorch, on its current stream."""

    def __init__(self) -> None:
        self._torch = torch = importlib.import_module("torch")
        self._has_gradients = torch.is_grad_enabled
        # The public way makes a stream object at every call, which takes longer than the launch.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or self._current_stream
        internal = getattr(torch._C, "_dynamo", None)
        self.guards: Any = getattr(getattr(internal, "guards", None), "TensorGuards", None)

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """Read tensors; a wish for gradients counts where they are recorded."""
        look: Look = ()
        handles = []
        for array in arrays:
            if array is None:
                look = (look,)
                handles.append(0)
                continue
            device = array.get_device()
            look = (
                look,
                array.shape,
                array.dtype,
                device,
                array.is_contiguous(),
                array.requires_grad and self._has_gradients(),
            )
            handles.append(array.data_ptr())
        own = (self._raw_stream(device) or LEGACY) if stream is None else stream_handle(stream)
        return _key(own, look, handles), handles

    def look_for_one_kernel(self) -> Callable[[Sequence[Any], Any], Looks]:
        """One that has PyTorch check whether a call looks like the latest one, if it can."""
        return self.look if self.guards is None else _GuardedLook(self).look

    def view(self, array: Any) -> View:
        """Check a tensor."""
        if not array.is_cuda:
            raise ValueError(
                f"is on the device {array.device}; copy it to a GPU with .cuda(), or pass .numpy() to run "
                "on the CPU"
            )
        if not array.is_contiguous():
            raise ValueError("is not contiguous")
        if array.requires_grad and self._has_gradients():
            raise ValueError("requires gradients, which a kernel does not record; pass x.detach()")
        size_bytes = array.numel() * array.element_size()
        if size_bytes and not array.data_ptr():
            raise ValueError("has no memory: it was freed")
        dtype = str(array.dtype).removeprefix("torch.")
        return View(array.data_ptr(), dtype, tuple(array.shape), size_bytes, array.get_device())

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Make:
        """Allocate through PyTorch's pool."""
        of_dtype = getattr(self._torch, dtype, None)
        if of_dtype is None:
            raise InputError(f"PyTorch has no type {dtype}; pass the output, too")

        def make(array: Any) -> tuple[Any, int]:
            made = array.new_empty(shape, dtype=of_dtype)
            return made, made.data_ptr()

        return make

    def current_stream(self, array: Any) -> Callable[[], int]:
        """The current stream of the tensor's GPU."""
        return partial(self._raw_stream, array.get_device())

    def _current_stream(self, number: int) -> int:
        return int(self._torch.cuda.current_stream(number).cuda_stream)


class _GuardedLook:
    """Reads tensors in one call of PyTorch, if they look like those of the calls before.

    The check is that of compiled functions: of types, devices, shapes, strides and gradients, without Python
    objects for them, which take most of the time of a look. It is not public: without it, tensors are read
    as usual.
    """

    def __init__(self, package: TorchPackage) -> None:
        self._package = package
        self._latest: dict[int, Look] = {}  # by the number of arrays
        self._known: dict[int, tuple[Look, Callable[..., bool], Callable[[], int]]] = {}

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """As that of the package."""
        known = self._known.get(len(arrays))
        if known is None or not known[1](*arrays):
            return self._learn(arrays, stream)
        look, _, current_stream = known
        handles = [array.data_ptr() for array in arrays]
        own = (current_stream() or LEGACY) if stream is None else stream_handle(stream)
        return _key(own, look, handles), handles

    def _learn(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """Look at every tensor; what is seen twice in a row is remembered."""
        key, handles = self._package.look(arrays, stream)
        count, look, known = len(arrays), key[1], self._known.get(len(arrays))
        if look == self._latest.get(count) and (known is None or look != known[0]):
            self._known[count] = look, *self._functions(arrays)
        self._latest[count] = look
        return key, handles

    def _functions(self, arrays: Sequence[Any]) -> tuple[Callable[..., bool], Callable[[], int]]:
        """Whether tensors look like these, and their stream; a constant no where PyTorch cannot tell."""
        with suppress(*UNUSUAL):  # an absent tensor, another signature
            if not any(array.requires_grad for array in arrays):  # which counts only at times
                guards = self._package.guards(*arrays, dynamic_dims_sizes=None, dynamic_dims_strides=None)
                return guards.check, self._package.current_stream(arrays[0])
        return lambda *_: False, int


class CupyPackage(CudaPackage):
    """Arrays of CuPy, on its current stream."""

    def __init__(self) -> None:
        self._cupy = cupy = importlib.import_module("cupy")
        self._current = cupy.cuda.get_current_stream

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """Read arrays."""
        look: Look = ()
        handles = []
        for array in arrays:
            if array is None:
                look = (look,)
                handles.append(0)
                continue
            memory = array.data
            device = memory.device_id
            look = (look, array.shape, array.dtype, array.strides, device)
            handles.append(memory.ptr)
        own = (self._current(device).ptr or LEGACY) if stream is None else stream_handle(stream)
        return _key(own, look, handles), handles

    def view(self, array: Any) -> View:
        """Check an array."""
        if not array.flags.c_contiguous:
            raise ValueError("is not contiguous")
        return View(array.data.ptr, array.dtype.name, array.shape, array.nbytes, array.data.device_id)

    def current_stream(self, array: Any) -> Callable[[], int]:
        """The current stream of the array's GPU."""
        current, device = self._current, array.data.device_id
        return lambda: current(device).ptr

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Make:
        """Allocate through CuPy's pool."""
        empty, of_dtype = self._cupy.empty, numpy_dtype(dtype)

        def make(array: Any) -> tuple[Any, int]:
            with array.device:
                made = empty(shape, of_dtype)
            return made, made.data.ptr

        return make


class PycudaPackage(CudaPackage):
    """Arrays of PyCUDA, which know no stream and may have been freed."""

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """Read arrays; the driver knows whether their memory is still allocated, and on which GPU."""
        look: Look = ()
        handles = []
        for array in arrays:
            if array is None:
                look = (look,)
                handles.append(0)
                continue
            handle = int(array.gpudata)
            look = (look, array.shape, array.dtype, array.strides, _gpu_of(handle))
            handles.append(handle)
        own = LEGACY if stream is None else stream_handle(stream)
        return _key(own, look, handles), handles

    def view(self, array: Any) -> View:
        """Check an array."""
        if not array.flags.c_contiguous:
            raise ValueError("is not contiguous")
        pointer = int(array.gpudata)
        return View(pointer, array.dtype.name, tuple(array.shape), array.nbytes, _gpu_of(pointer))

    def current_stream(self, array: Any) -> Callable[[], int]:
        """The default stream: PyCUDA has no current one."""
        return lambda: LEGACY

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Make:
        """Allocate in the current context."""
        empty, of_dtype = importlib.import_module("pycuda.gpuarray").empty, np.dtype(dtype)

        def make(array: Any) -> tuple[Any, int]:
            made = empty(shape, of_dtype, array.allocator)
            return made, int(made.gpudata)

        return make


class CudaCorePackage(CudaPackage):
    """Buffers of cuda.core: memory without a shape or a stream."""

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """Read buffers; the handle of a closed one is none, or 0."""
        look: Look = ()
        handles = []
        for array in arrays:
            if array is None:
                look = (look,)
                handles.append(0)
                continue
            look = (look, array.size, array.device_id)
            handles.append(int(array.handle))
        own = LEGACY if stream is None else stream_handle(stream)
        return _key(own, look, handles), handles

    def current_stream(self, array: Any) -> Callable[[], int]:
        """The default stream."""
        return lambda: LEGACY

    def view(self, array: Any) -> View:
        """Check a buffer."""
        if not array.handle:
            raise ValueError("is closed")
        if not array.is_device_accessible:
            raise ValueError("is not in the memory of a GPU")
        return View(int(array.handle), None, None, array.size, array.device_id)


# By the top-level package of an array's type; arrays of any other may have the CUDA array interface.
_PACKAGES = {
    "torch": (__name__, "TorchPackage"),
    "cupy": (__name__, "CupyPackage"),
    "pycuda": (__name__, "PycudaPackage"),
    "cuda": (__name__, "CudaCorePackage"),
    "pyopencl": ("autotune.runtime.opencl", "PyopenclPackage"),
}


def package_of(array: object) -> Package:
    """The package of an array; raises InputError for unknown kinds."""
    root = type(array).__module__.partition(".")[0]
    if root in _PACKAGES:
        return _open(root)
    if hasattr(array, "__cuda_array_interface__"):
        return _open("")
    if root == "numpy":
        raise InputError(
            "numpy arrays run on the CPU in a plain call, without stream= and bind(); here, pass "
            "pyopencl.array.to_device(queue, x), or for a GPU cupy.asarray(x) or "
            "torch.as_tensor(x, device='cuda')"
        )
    kind = type(array).__qualname__
    raise InputError(f"expected arrays of torch, cupy, pycuda, cuda.core, pyopencl or numpy; found {kind}")


# What reading an array may raise that is not what it seems to be, and a look-up of a call that is new.
UNUSUAL = (LookupError, AttributeError, TypeError, ValueError, RuntimeError)


def look(arrays: Sequence[Any], stream: Any) -> Looks:
    """What the arrays of a call look like, also if they are of several packages."""
    first = next(array for array in arrays if array is not None)
    with suppress(*UNUSUAL):
        return package_of(first).look(arrays, stream)
    (own, *_), _ = package_of(first).look([first], stream)
    looks = [([False], [0]) if array is None else package_of(array).look([array], own) for array in arrays]
    key = (own, *(tuple(part[1:]) for part, _ in looks))
    return key, [handle for _, (handle,) in looks]


@cache
def _open(root: str) -> Package:
    module, name = _PACKAGES.get(root, (__name__, "CudaPackage"))
    package: Package = getattr(importlib.import_module(module), name)()
    return package


def _key(stream: int, look: Look, handles: Sequence[int]) -> Key:
    """A key for unusual calls, too: the stream of each thread is its own, and memory may have been freed."""
    if stream == PER_THREAD or 0 in handles:
        return stream, look, get_ident() if stream == PER_THREAD else 0, tuple(map(bool, handles))
    return stream, look


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: a number, or an object of cuda.core, cupy, torch or pycuda."""
    if isinstance(stream, int):
        return stream or LEGACY
    if found := getattr(stream, "__cuda_stream__", None):
        return int((found() if callable(found) else found)[1]) or LEGACY
    for name in ("cuda_stream", "ptr"):
        if isinstance(handle := getattr(stream, name, None), int):
            return handle or LEGACY
    if hasattr(stream, "handle"):
        return int(stream.handle) or LEGACY
    raise InputError(f"stream {stream!r}: expected a stream of cuda.core, cupy, torch or pycuda")


def _gpu_of(pointer: int) -> int:
    from autotune.runtime.cuda import device_of

    if pointer == 0:
        raise ValueError("has no memory")
    number = device_of(pointer)
    if number is None:
        raise ValueError("is not in a GPU's memory, or was freed")
    return number


def _strides(shape: Sequence[int], item_bytes: int) -> tuple[int, ...]:
    return tuple(item_bytes * prod(shape[place + 1 :]) for place in range(len(shape)))
