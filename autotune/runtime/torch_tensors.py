"""Reads PyTorch tensors for calls."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from autotune.errors import InputError
from autotune.runtime.packages import UNUSUAL, CudaPackage, Look, Looks, Make, Repeat, call_key, stream_handle
from autotune.runtime.prepared import LEGACY, View

_MAX_LOOKS = 10_000  # with a number; a program may pass ever new shapes


class TorchPackage(CudaPackage):
    """Tensors of PyTorch, on its current stream."""

    def __init__(self) -> None:
        self._torch = torch = importlib.import_module("torch")
        self._has_gradients = torch.is_grad_enabled
        # The public way makes a stream object at every call, which takes longer than the launch.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or self._current_stream
        self._numbers: dict[Look, int] = {}
        self._next_number = itertools.count()
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
                array.is_conj() or array.is_neg(),
                array.requires_grad and self._has_gradients(),
            )
            handles.append(array.data_ptr())
        own = (self._raw_stream(device) or LEGACY) if stream is None else stream_handle(stream)
        return call_key(own, self._number(look), handles), handles

    def _number(self, look: Look) -> int:
        """A number that stands for a look from now on: the look itself takes long to hash at every call."""
        number = self._numbers.get(look)
        if number is None:
            if len(self._numbers) >= _MAX_LOOKS:
                self._numbers.clear()
            number = self._numbers[look] = next(self._next_number)
        return number

    def look_for_one_kernel(self, repeats: dict[int, Repeat]) -> Callable[[Sequence[Any], Any], Looks]:
        """One that has PyTorch recognise later calls, if it can."""
        return self.look if self.guards is None else GuardingLook(self, repeats).look

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


class GuardingLook:
    """Looks at tensors; those that look like the latest ones are from then on recognised by PyTorch.

    The check is the one of compiled functions: types, devices, shapes, strides and gradients, without Python
    objects for them, which take most of the time of a look. It is not public: without it, tensors are read
    at every call.
    """

    def __init__(self, package: TorchPackage, repeats: dict[int, Repeat]) -> None:
        self._package, self._repeats = package, repeats
        self._latest: dict[int, int] = {}  # the look's number by the number of arrays

    def look(self, arrays: Sequence[Any], stream: Any) -> Looks:
        """As the package's `look`; tensors that look the same twice in a row are recognised from then on."""
        count = len(arrays)
        known = self._repeats.get(count)
        if known is not None and known.is_alike(*arrays):  # has arguments by name, or an unusual address
            handles = [array.data_ptr() for array in arrays]
            own = (known.current_stream() or LEGACY) if stream is None else stream_handle(stream)
            return call_key(own, known.look, handles), handles
        key, handles = self._package.look(arrays, stream)
        look = key[1]
        if look == self._latest.get(count) and (repeat := self._repeat(arrays, look)):
            self._repeats[count] = repeat
        self._latest[count] = look
        return key, handles

    def _repeat(self, arrays: Sequence[Any], look: int) -> Repeat | None:
        """Recognises tensors that look like these; None if PyTorch cannot tell."""
        if len({*map(id, arrays)}) < len(arrays):  # PyTorch's check never accepts a tensor twice
            return None
        if any(array is None or array.requires_grad for array in arrays):  # gradients count only at times
            return None
        with suppress(*UNUSUAL):  # another signature
            guards = self._package.guards(*arrays, dynamic_dims_sizes=None, dynamic_dims_strides=None)
            return Repeat(guards.check, look, self._package.current_stream(arrays[0]))
        return None
