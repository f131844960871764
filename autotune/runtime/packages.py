"""Readers of each GPU package's arrays, for calls.

Each package has a class, opened at the first array of its kind. `read` runs at every call: it returns the key
under which the prepared call is kept, and the handles of the arrays, and checks nothing. `view` checks one
array; it runs once for all calls with the same key.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from math import prod
from threading import get_ident
from typing import Any, NamedTuple, Protocol

import numpy as np

from autotune.devices.element_types import numpy_dtype
from autotune.errors import InputError
from autotune.hardware.cuda_driver import PointerQuestion, pointer_device, pointer_question
from autotune.runtime.prepared import LEGACY, PER_THREAD, Launcher, View

# What launches depend on: shapes, types, strides and devices of arrays. A reader nests the signature of the
# arrays before in one tuple for each array. For three arrays of CuPy, a list of tuples would take 0.1
# microseconds longer, and a function for each array, which all readers could share, 0.2.
ArraySignature = tuple[Any, ...]
CallKey = tuple[Any, ...]  # see `call_key`
Reading = tuple[CallKey, list[Any]]  # the key of a call, and the handles of its arrays
Reader = Callable[[Sequence[Any], Any], Reading]  # takes the arrays, and a stream or None
MakeOutput = Callable[[Any], tuple[Any, Any]]  # from an input to an output with its handle

_ABSENT: Reading = ((None,), [0])  # of an array that is not passed: a key without a signature
LOW_BITS = 32 - 1  # of an address; no access needs more than 32 bytes of alignment


class Recogniser(NamedTuple):
    """Recognises tensors with the signature of an earlier call, with less work than reading them.

    A loaded kernel owns a table of these by the number of arrays, and asks it at every call. The kernel's
    reader, from `reader_for_kernel`, is the only one that writes to the table.
    """

    is_alike: Callable[..., bool]  # takes the arrays
    signature: int  # stands for the arrays in the call's key
    current_stream: Callable[[], int]


class Package(Protocol):
    """The arrays of one package."""

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read the arrays of a call, of which an absent one is None; may raise nearly anything."""

    def reader_for_kernel(self, recognisers: dict[int, Recogniser]) -> Reader:
        """A `read` for the calls of one kernel, which may add to the kernel's recognisers."""
        return self.read

    def current_stream(self, array: Any) -> Callable[[], Any]:
        """A function that gives the stream to which an array's work goes at that time."""

    def view(self, array: Any) -> View:
        """View an array; raises ValueError with the reason when it cannot be passed to a kernel."""

    def open(self, arrays: Sequence[Any], stream: Any) -> Launcher:
        """Open the device of the first array, with the given stream or its own; raises InputError."""

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> MakeOutput:
        """A function that makes an array on the device of the array that it gets; raises InputError."""


class CudaPackage(Package):
    """Arrays with the CUDA array interface, such as numba's."""

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read the interface of each array, and ask the driver for its GPU."""
        views = [None if array is None else self.view(array) for array in arrays]
        handles = [0 if view is None else view.handle for view in views]
        if stream is None:
            streams = (self.current_stream(array)() for array in arrays if array is not None)
            own = next(streams, None) or LEGACY
        else:
            own = stream_handle(stream)
        signature = tuple(view and view._replace(handle=None) for view in views)
        return call_key(own, signature, handles), handles

    def view(self, array: Any) -> View:
        """Read the interface; the driver knows the GPU."""
        interface = array.__cuda_array_interface__
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        strides = tuple(dtype.itemsize * prod(shape[place + 1 :]) for place in range(len(shape)))
        if interface.get("strides") not in (None, strides):
            raise ValueError("is not contiguous")
        if interface.get("mask") is not None:
            raise ValueError("has a mask")
        pointer = int(interface["data"][0])
        return View(pointer, native_name(dtype), shape, prod(shape) * dtype.itemsize, _gpu_of(pointer))

    def open(self, arrays: Sequence[Any], stream: Any) -> Launcher:
        """Open the GPU through the driver."""
        from autotune.runtime.cuda import CudaLauncher

        key, _ = self.read(arrays[:1], stream)
        view = self.view(arrays[0])
        return CudaLauncher(view.device, key[0], view.handle)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> MakeOutput:
        """Refuse: there is no package to ask."""
        kind = type(like).__qualname__
        raise InputError(f"no output can be allocated for an input of type {kind}; pass the output, too")

    def current_stream(self, array: Any) -> Callable[[], int | None]:
        """The stream of the interface, if it names one."""
        return lambda: array.__cuda_array_interface__.get("stream")


class CupyPackage(CudaPackage):
    """Arrays of CuPy, on its current stream."""

    def __init__(self) -> None:
        self._cupy = cupy = importlib.import_module("cupy")
        self._current = cupy.cuda.get_current_stream

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read arrays."""
        signature: ArraySignature = ()
        handles = []
        for array in arrays:
            if array is None:
                signature = (signature,)
                handles.append(0)
                continue
            memory = array.data
            device = memory.device_id
            signature = (signature, array.shape, array.dtype, array.strides, device)
            handles.append(memory.ptr)
        own = (self._current(device).ptr or LEGACY) if stream is None else stream_handle(stream)
        return call_key(own, signature, handles), handles

    def view(self, array: Any) -> View:
        """Check an array."""
        if not array.flags.c_contiguous:
            raise ValueError("is not contiguous")
        return View(array.data.ptr, array.dtype.name, array.shape, array.nbytes, array.data.device_id)

    def current_stream(self, array: Any) -> Callable[[], int]:
        """The current stream of the array's GPU."""
        current, device = self._current, array.data.device_id
        return lambda: current(device).ptr

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> MakeOutput:
        """Allocate through CuPy's pool."""
        empty, of_dtype = self._cupy.empty, numpy_dtype(dtype)

        def make(array: Any) -> tuple[Any, int]:
            with array.device:
                made = empty(shape, of_dtype)
            return made, made.data.ptr

        return make


class PycudaPackage(CudaPackage):
    """Arrays of PyCUDA, which know no stream and may have been freed."""

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read arrays; the driver knows whether their memory is still allocated, and on which GPU."""
        signature: ArraySignature = ()
        handles = []
        for array in arrays:
            if array is None:
                signature = (signature,)
                handles.append(0)
                continue
            memory = array.gpudata
            handle, (ask, device) = getattr(memory, _KNOWN, None) or _address(memory)
            signature = (signature, array.shape, array.dtype, array.strides, -1 if ask() else device.value)
            handles.append(handle)
        own = LEGACY if stream is None else stream_handle(stream)
        return call_key(own, signature, handles), handles

    def view(self, array: Any) -> View:
        """Check an array."""
        if not array.flags.c_contiguous:
            raise ValueError("is not contiguous")
        pointer = int(array.gpudata or 0)  # an empty array has none
        return View(pointer, native_name(array.dtype), tuple(array.shape), array.nbytes, _gpu_of(pointer))

    def current_stream(self, array: Any) -> Callable[[], int]:
        """The default stream: PyCUDA has no current stream."""
        return lambda: LEGACY

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> MakeOutput:
        """Allocate in the current context."""
        empty, of_dtype = importlib.import_module("pycuda.gpuarray").empty, numpy_dtype(dtype)

        def make(array: Any) -> tuple[Any, int]:
            made = empty(shape, of_dtype, array.allocator)
            return made, int(made.gpudata)

        return make


_KNOWN = "_autotune_address"  # an attribute of PyCUDA's memory, whose address never changes


def _address(memory: Any) -> tuple[int, PointerQuestion]:
    """The address of PyCUDA's memory and the question about it, which are kept with the memory."""
    handle = int(memory)
    known = handle, pointer_question(handle)
    with suppress(AttributeError):  # a part of an array has a plain number, which takes no attributes
        setattr(memory, _KNOWN, known)
    return known


class CudaCorePackage(CudaPackage):
    """Buffers of cuda.core: memory without a shape or a stream."""

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read buffers; a closed buffer has no handle, or 0."""
        signature: ArraySignature = ()
        handles = []
        for array in arrays:
            if array is None:
                signature = (signature,)
                handles.append(0)
                continue
            signature = (signature, array.size, array.device_id)
            handles.append(int(array.handle))
        own = LEGACY if stream is None else stream_handle(stream)
        return call_key(own, signature, handles), handles

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
    "torch": ("autotune.runtime.torch_tensors", "TorchPackage"),
    "cupy": (__name__, "CupyPackage"),
    "pycuda": (__name__, "PycudaPackage"),
    "cuda": (__name__, "CudaCorePackage"),
    "pyopencl": ("autotune.runtime.opencl", "PyopenclPackage"),
}


def package_of(array: object) -> Package:
    """The package of an array; raises InputError for unknown kinds."""
    root = type(array).__module__.partition(".")[0]
    if root in _PACKAGES:
        return _opened_package(root)
    if hasattr(array, "__cuda_array_interface__"):
        return _opened_package("")
    if root == "numpy":
        raise InputError(
            "numpy arrays run on the CPU in a plain call, without stream= and bind(); here, pass "
            "pyopencl.array.to_device(queue, x), or for a GPU cupy.asarray(x) or "
            "torch.as_tensor(x, device='cuda')"
        )
    kind = type(array).__qualname__
    raise InputError(f"expected arrays of torch, cupy, pycuda, cuda.core, pyopencl or numpy; found {kind}")


# What may be raised by reading an object that is no array, and by asking for a call that is not prepared.
UNUSUAL = (LookupError, AttributeError, TypeError, ValueError, RuntimeError)


def read_arrays(arrays: Sequence[Any], stream: Any) -> Reading:
    """Read the arrays of a call, which may be of several packages."""
    array_given = next(array for array in arrays if array is not None)
    with suppress(*UNUSUAL):
        return package_of(array_given).read(arrays, stream)
    (own, *_), _ = package_of(array_given).read([array_given], stream)
    readings = [_ABSENT if array is None else package_of(array).read([array], own) for array in arrays]
    key = (own, *(tuple(part[1:]) for part, _ in readings))
    return key, [handle for _, (handle,) in readings]


@cache
def _opened_package(root: str) -> Package:
    module, name = _PACKAGES.get(root, (__name__, "CudaPackage"))
    package: Package = getattr(importlib.import_module(module), name)()
    return package


def call_key(stream: int, signature: ArraySignature | int, handles: Sequence[int]) -> CallKey:
    """The key of a call: the stream and the signature of its arrays are enough for usual calls.

    A call is unusual if an array begins where a vector may not (a low bit of its address is set), if memory
    was freed (its address is 0), or on the stream per thread, which is another stream in each thread. What is
    unusual is then part of the key.
    """
    for handle in handles:
        if handle & LOW_BITS or not handle:
            return _unusual_key(stream, signature, handles)
    return (stream, signature) if stream != PER_THREAD else _unusual_key(stream, signature, handles)


def _unusual_key(stream: int, signature: ArraySignature | int, handles: Sequence[int]) -> CallKey:
    begins = tuple(handle & LOW_BITS if handle else None for handle in handles)
    return stream, signature, get_ident() if stream == PER_THREAD else 0, begins


def native_name(dtype: np.dtype[Any]) -> str:
    """The name of an element type; raises ValueError if its bytes are in the other order."""
    if not dtype.isnative:
        raise ValueError(f"has bytes in the other order ({dtype.str}); copy it from x.astype({dtype.name!r})")
    return dtype.name


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: a number, or an object of cuda.core, cupy, torch or pycuda."""
    if isinstance(stream, int):
        return stream or LEGACY
    if protocol := getattr(stream, "__cuda_stream__", None):
        return int((protocol() if callable(protocol) else protocol)[1]) or LEGACY
    for name in ("cuda_stream", "ptr"):
        if isinstance(handle := getattr(stream, name, None), int):
            return handle or LEGACY
    if hasattr(stream, "handle"):
        return int(stream.handle) or LEGACY
    raise InputError(f"stream {stream!r}: expected a stream of cuda.core, cupy, torch or pycuda")


def _gpu_of(pointer: int) -> int:
    if pointer == 0:
        raise ValueError("has no memory")
    number = pointer_device(pointer)
    if number is None:
        raise ValueError("is not in a GPU's memory, or was freed")
    return number
