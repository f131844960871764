"""A device without hardware: Triton's interpreter runs kernels in numpy, one program after another.

Its results show mistakes. Its times say nothing about a GPU.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compilers.base import triton_name
from autotune.compilers.triton_constants import typed
from autotune.compilers.triton_modules import executed
from autotune.core.launch_plan import NO_ARRAY
from autotune.core.records import DeviceInfo, Launch
from autotune.core.trials import Binary
from autotune.devices import INTERPRETER
from autotune.devices.base import Arguments, Program
from autotune.devices.host_memory import HostBuffers
from autotune.devices.interpreter_libdevice import lend_libdevice
from autotune.errors import LaunchError, OutsideArrays
from autotune.hardware.architectures import architecture
from autotune.sources.triton import entry_signature

_LIMITS_OF = "sm_90"  # configurations are valid that are valid on this GPU


def list_devices() -> list[DeviceInfo]:
    """The interpreter; raises MissingExtra without Triton."""
    limits = architecture(_LIMITS_OF).device
    return [
        replace(
            limits,
            backend=INTERPRETER,
            name="Interpreter",  # the backend's name, so nothing is compiled while it is looked for
            slug=INTERPRETER,
            kind="cpu",
            vendor="triton",
            architecture="interpreter",
            compute_units=1,
            memory_bandwidth_bytes_per_s=None,
            driver=f"numpy {np.__version__}",
            runtime=triton_name(),
        )
    ]


class InterpreterCompiler:
    """Hands the source on: Triton reads it when a kernel is interpreted."""

    identity = None  # nothing to cache

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """The source, as a binary."""
        data = source.encode()
        return Binary(data, hashlib.sha256(data).hexdigest(), "", 0.0)


def _round_to_bfloat16() -> None:
    """Have Triton's interpreter round float32 to the nearest bfloat16, as a GPU does: it cuts bits off."""
    from triton import language
    from triton.runtime import interpreter

    convert = interpreter._convert_float

    def converted(values: NDArray[Any], given: Any, wanted: Any, rounding: Any) -> NDArray[Any]:
        if (given, wanted) != (language.float32, language.bfloat16):
            unrounded: NDArray[Any] = convert(values, given, wanted, rounding)
            return unrounded
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        is_odd = bits >> np.uint32(16) & np.uint32(1)
        nearest = np.where(np.isnan(values), bits | np.uint32(1 << 22), bits + np.uint32(0x7FFF) + is_odd)
        return (nearest >> np.uint32(16)).astype(np.uint16)

    if convert.__name__ != converted.__name__:  # unless an earlier device has replaced it
        interpreter._convert_float = converted


def _keep_the_type_of_scalars() -> None:
    """Have Triton's interpreter spread a condition as one: it takes the type of what was compared."""
    from triton.runtime import interpreter

    def spread(builder: Any, wanted: Any, scalar: Any) -> Any:
        return interpreter.TensorHandle(np.full(wanted.shape, scalar.data), scalar.dtype.scalar)

    interpreter.InterpreterBuilder.create_splat = spread


@contextmanager
def _reads_within(arguments: Arguments) -> Iterator[None]:
    """Refuse reads outside of all arrays during the block, with _ReadsOutside; guard zones show writes."""
    from triton.runtime.interpreter import InterpreterBuilder, _get_np_dtype

    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    extents = sorted((array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays)
    begins, ends = np.array([(0, 0), *extents], np.uint64).T
    ends = np.maximum.accumulate(ends)  # views are inside of other arrays
    load = InterpreterBuilder.create_masked_load

    def load_within(builder: Any, pointers: Any, mask: Any, *others: Any, **named: Any) -> Any:
        first = pointers.data[mask.data]
        past = first + np.uint64(_get_np_dtype(pointers.get_element_ty()).itemsize)
        if np.any(past > ends[np.searchsorted(begins, first, side="right") - 1]):
            raise _ReadsOutside("reads outside of all arrays")
        return load(builder, pointers, mask, *others, **named)

    InterpreterBuilder.create_masked_load = load_within
    try:
        yield
    finally:
        InterpreterBuilder.create_masked_load = load


class _ReadsOutside(Exception):
    """A kernel reads outside of all arrays."""


class Interpreter(HostBuffers):
    """Memory is numpy arrays, a launch is a call of Triton's interpreter."""

    def __init__(self) -> None:
        """Have Triton interpret; the variable has to be set before Triton is imported."""
        os.environ["TRITON_INTERPRET"] = "1"
        imported = [name for name in sys.modules if name.partition(".")[0] == "triton"]
        for name in imported:  # by a server of processes that compile, of which this one is a copy
            if not name.startswith("triton._C"):  # which cannot be loaded twice
                del sys.modules[name]
        (self.info,) = list_devices()
        lend_libdevice()
        _round_to_bfloat16()
        _keep_the_type_of_scalars()

    def load(self, binary: Binary) -> Program:
        """The module of the source, whose functions are interpreted; raises CompileError."""
        return executed(binary.data.decode())

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Arguments,
        repeats: int = 1,
        graph: bool | None = None,
        warm_first: bool = False,
    ) -> float:
        """Interpret the launches, and return the time that this takes."""
        began = time.perf_counter()
        with _reads_within(arguments):
            for launch in [*launches] * repeats:
                _launch(program, launch, arguments)
        return (time.perf_counter() - began) * 1e3


def _launch(program: Program, launch: Launch, arguments: Arguments) -> None:
    called, kinds, named = entry_signature(launch.entry)
    function = getattr(program, called)
    named = typed(function, named)
    taken = [name for name in function.arg_names if name not in named]
    values = iter(launch.arguments)
    for name, kind in zip(taken, kinds, strict=False):
        named[name] = None if kind == NO_ARRAY else _passed(arguments[next(values)], kind)
    try:
        function[launch.grid](**named)
    except Exception as error:  # noqa: BLE001 - whatever the user's kernel does
        raise _refusal(error, program, called) from None


def _passed(value: Any, kind: str) -> Any:
    """A value as the interpreter takes it. Arrays are passed by address, which needs no PyTorch."""
    if isinstance(value, np.generic):
        return value.item()
    from triton.language import str_to_ty, tensor
    from triton.runtime.interpreter import TensorHandle

    pointer = str_to_ty(kind.partition(":")[0], None)
    return tensor(TensorHandle(np.array([value.ctypes.data], np.uint64), pointer), pointer)


def _refusal(error: BaseException, program: Program, called: str) -> LaunchError:
    """What was raised, and where: lines are counted from the function's `def`, as in the user's file."""
    while error.__cause__ is not None:
        error = error.__cause__
    is_outside = isinstance(error, _ReadsOutside)
    raised = str(error) if is_outside else f"{type(error).__name__}: {error}"
    refusal = OutsideArrays if is_outside else LaunchError
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        code = frame.f_code
        if frame.f_globals is program.__dict__:
            text = linecache.getline(code.co_filename, line).strip()
            place = f"{code.co_name}, line {line - code.co_firstlineno + 1} from its def, `{text}`"
            return refusal(f"{place}: {raised}")
    return refusal(f"{called}: {raised}")


def open_device(index: int) -> Interpreter:
    """Open the interpreter."""
    return Interpreter()


def open_compiler(index: int) -> InterpreterCompiler:
    """Open the interpreter's compiler."""
    return InterpreterCompiler()
