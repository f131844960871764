"""Reads PyTorch tensors for calls."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from autotune.errors import InputError
from autotune.runtime.packages import (
    UNUSUAL,
    ArraySignature,
    CudaPackage,
    MakeOutput,
    Reader,
    Reading,
    Recogniser,
    call_key,
    stream_handle,
)
from autotune.runtime.prepared import LEGACY, View

_MAX_NUMBERS = 10_000  # of signatures; a program may pass ever new shapes


class TorchPackage(CudaPackage):
    """Tensors of PyTorch, on its current stream."""

    def __init__(self) -> None:
        self._torch = torch = importlib.import_module("torch")
        self._has_gradients = torch.is_grad_enabled
        # The public way makes a stream object at every call, which takes longer than the launch.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or self._current_stream
        self._numbers: dict[ArraySignature, int] = {}
        self._next_number = itertools.count()
        internal = getattr(torch._C, "_dynamo", None)
        self.guards: Any = getattr(getattr(internal, "guards", None), "TensorGuards", None)

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """Read tensors; `requires_grad` counts only where gradients are recorded."""
        signature: ArraySignature = ()
        handles = []
        for array in arrays:
            if array is None:
                signature = (signature,)
                handles.append(0)
                continue
            device = array.get_device()
            signature = (
                signature,
                array.shape,
                array.dtype,
                device,
                array.is_contiguous(),
                array.is_conj() or array.is_neg(),
                array.requires_grad and self._has_gradients(),
            )
            handles.append(array.data_ptr())
        own = (self._raw_stream(device) or LEGACY) if stream is None else stream_handle(stream)
        return call_key(own, self._number(signature), handles), handles

    def _number(self, signature: ArraySignature) -> int:
        """A number that stands for a signature: the signature itself takes long to hash at every call."""
        number = self._numbers.get(signature)
        if number is None:
            if len(self._numbers) >= _MAX_NUMBERS:
                self._numbers.clear()
            number = self._numbers[signature] = next(self._next_number)
        return number

    def reader_for_kernel(self, recognisers: dict[int, Recogniser]) -> Reader:
        """A reader that has PyTorch recognise later calls, if this version of PyTorch can."""
        return self.read if self.guards is None else GuardingReader(self, recognisers).read

    def view(self, array: Any) -> View:
        """Check a tensor."""
        if not array.is_cuda:
            raise ValueError(
                f"is on the device {array.device}; copy it to a GPU with .cuda(), or pass .numpy() to run "
                "on the CPU; for a kernel in Triton, use tuned with TRITON_INTERPRET=1"
            )
        if not array.is_contiguous():
            raise ValueError("is not contiguous")
        if array.is_conj() or array.is_neg():
            raise ValueError(
                "is conjugated or negated only when it is read; pass x.resolve_conj().resolve_neg()"
            )
        if array.requires_grad and self._has_gradients():
            raise ValueError("requires gradients, which a kernel does not record; pass x.detach()")
        size_bytes = array.numel() * array.element_size()
        if size_bytes and not array.data_ptr():
            raise ValueError("has no memory: it was freed")
        dtype = str(array.dtype).removeprefix("torch.")
        return View(array.data_ptr(), dtype, tuple(array.shape), size_bytes, array.get_device())

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> MakeOutput:
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


class GuardingReader:
    """Reads the tensors of one kernel's calls; from the second equal call on, PyTorch recognises them.

    PyTorch's compiled functions make the same check, of types, devices, shapes, strides and gradients. It
    makes no Python objects for these, which take most of the time of reading. The check is not public: where
    it is missing, tensors are read at every call.
    """

    def __init__(self, package: TorchPackage, recognisers: dict[int, Recogniser]) -> None:
        """Take the table of the kernel, to which this reader adds a recogniser for a number of arrays."""
        self._package, self._recognisers = package, recognisers
        self._latest: dict[int, int] = {}  # the number of the latest signature, by the number of arrays

    def read(self, arrays: Sequence[Any], stream: Any) -> Reading:
        """As the package's `read`."""
        count = len(arrays)
        known = self._recognisers.get(count)
        if known is not None and known.is_alike(*arrays):  # has arguments by name, or an unusual address
            handles = [array.data_ptr() for array in arrays]
            own = (known.current_stream() or LEGACY) if stream is None else stream_handle(stream)
            return call_key(own, known.signature, handles), handles
        key, handles = self._package.read(arrays, stream)
        signature = key[1]
        if signature == self._latest.get(count) and (recogniser := self._recogniser(arrays, signature)):
            self._recognisers[count] = recogniser
        self._latest[count] = signature
        return key, handles

    def _recogniser(self, arrays: Sequence[Any], signature: int) -> Recogniser | None:
        """A recogniser of tensors with the signature of these; None if PyTorch cannot tell."""
        if len({*map(id, arrays)}) < len(arrays):  # PyTorch's check never accepts a tensor twice
            return None
        if any(array is None or array.requires_grad for array in arrays):  # gradients count only at times
            return None
        with suppress(*UNUSUAL):  # another version of PyTorch takes other arguments
            guards = self._package.guards(*arrays, dynamic_dims_sizes=None, dynamic_dims_strides=None)
            return Recogniser(guards.check, signature, self._package.current_stream(arrays[0]))
        return None
