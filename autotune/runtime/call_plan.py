"""Turns a call's arguments into its launches' arguments: checks them, and adds hidden arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from autotune.core.argument_values import pointed
from autotune.core.c_types import struct_fields
from autotune.core.launch_plan import TRITON
from autotune.core.records import Argument, CallSpec, Sizes
from autotune.devices.element_types import array_bytes, is_floating, numpy_dtype, scalar_of
from autotune.errors import InputError
from autotune.runtime.call_signature import CallSignature
from autotune.runtime.prepared import CallPlan, Hidden, View
from autotune.serving.best import Best


class CallArguments(NamedTuple):
    """The arguments from a caller."""

    signature: CallSignature
    names: Sequence[str]  # of the arrays in their order, including absent arrays
    arrays: Mapping[str, Any]
    views: Mapping[str, View]  # of the arrays, by name
    stream: Any
    sizes: Mapping[str, int]
    numbers: Mapping[str, Any]  # scalars by name

    @property
    def made(self) -> list[str]:
        """The outputs that the call returns, because the caller does not pass them."""
        return [name for name in self.signature.returns if name not in self.views]

    @property
    def results(self) -> tuple[int, ...]:
        """The places of the returned arrays among the arrays in order, followed by the outputs `made`.

        An array that the caller passes is returned only if the caller passes nothing but the inputs.
        """
        names, made = [*self.names], self.made
        is_short = self.views.keys() == {*self.signature.inputs}
        return tuple(
            names.index(name) if name in self.views else len(names) + made.index(name)
            for name in self.signature.returns
            if is_short or name in made
        )


class CallPlanner:
    """Plans the calls of one configuration at some sizes."""

    def __init__(self, kernel: str, best: Best, sizes: Sizes) -> None:
        self._kernel = kernel
        self._is_triton = best.record.compiler == TRITON
        self._call = best.record.call or CallSpec()
        self._is_of_script = best.record.is_of_script
        self.arguments = {argument.name: argument for argument in best.arguments(**sizes)}
        self.launches = best.launch(**sizes)

    def plan(self, given: CallArguments) -> CallPlan:
        """The launches with the origin of every argument; raises InputError for what does not fit.

        Raises CacheError where launches take an argument that the kernel does not have.
        """
        if self._is_triton:
            self._require_no_integers(given.numbers)
        passed = self._passed()
        pointers = [pointer for item in passed for pointer in _pointers(item)]
        passed = list(dict.fromkeys([*passed, *(self.arguments[target] for _, _, target in pointers)]))
        views = [argument for argument in passed if argument.role == "view"]
        variables = [argument for argument in self.arguments.values() if argument.symbol]
        used = list(dict.fromkeys([*passed, *(self.arguments[item.of] for item in views), *variables]))
        made = given.made
        if unknown := {*given.views, *made, *given.numbers} - self.arguments.keys():
            raise InputError(
                f"{self._kernel}: the result for these sizes comes from a version of the kernel without "
                f"{min(unknown)}; tune these sizes again"
            )
        hidden = []
        for argument in used:
            if argument.name in given.views:
                self._require(argument, given.views[argument.name])
            elif argument.name not in made and argument.role not in ("local", "scalar", "view"):
                hidden.append(self._hidden(argument))
        return CallPlan(
            given=(*(name if name in given.views else "" for name in given.names), *made, *given.numbers),
            scalars={
                item.name: self.number(item.name, item.value)
                for item in used
                if item.role == "scalar" and item.name not in given.numbers
            },
            hidden=tuple(hidden),
            variables=tuple((item.symbol, item.name, _size_bytes(item)) for item in variables),
            launches=self.launches,
            local={item.name: _size_bytes(item) for item in used if item.role == "local"},
            views=tuple((item.name, item.of, item.offset_bytes) for item in views),
            pointers=tuple(pointers),
        )

    def number(self, name: str, value: Any) -> np.generic:
        """Convert a number to an argument's type; raises InputError if the type cannot hold it."""
        dtype = numpy_dtype(self.arguments[name].dtype)
        if isinstance(value, tuple):  # from the launch plan
            return scalar_of(self.arguments[name].dtype, value)
        is_real = isinstance(value, int | float | np.integer | np.floating | dtype.type)
        if is_real or (dtype.kind == "c" and isinstance(value, complex | np.complexfloating)):
            with suppress(ValueError, OverflowError):
                number: np.generic = dtype.type(value)
                if number == value or is_floating(dtype) or dtype.kind == "c":
                    return number
        raise InputError(f"{self._kernel}: {name} = {value!r}: expected a value of type {dtype}")

    def _passed(self) -> list[Argument]:
        """The arguments that launches pass, without repetitions."""
        if not self.launches:
            raise InputError(f"{self._kernel}: its launch plan has no launch for these sizes")
        names = dict.fromkeys(name for step in self.launches for name in step.arguments)
        return [self.arguments[name] for name in names]

    def _require_no_integers(self, names: Iterable[str]) -> None:
        """Raise InputError for a whole number of a call: a Triton kernel is compiled for its value."""
        for name in names:
            if not is_floating(numpy_dtype(self.arguments[name].dtype)):
                raise InputError(
                    f"{self._kernel}: {name} is a whole number, and Triton compiles for its value; "
                    "make it a size of the space"
                )

    def _require(self, argument: Argument, view: View) -> None:
        """Raise InputError unless an array is what an argument needs."""
        expected, size_bytes = self._expected(argument), _size_bytes(argument)
        if view.dtype is None or struct_fields(argument.dtype):
            if view.size_bytes < size_bytes:
                raise InputError(f"{expected}, {size_bytes} bytes, found {view.size_bytes} bytes")
        # A package without unsigned types passes the same bytes as a signed type.
        elif view.dtype.removeprefix("u") != argument.dtype.removeprefix("u") or view.shape != argument.shape:
            mend = "; for other sizes, write a space: autotune new" if self._is_of_script else ""
            raise InputError(f"{expected}, found {view.dtype} of shape {view.shape}{mend}")

    def _hidden(self, argument: Argument) -> Hidden:
        """Memory for an array that the caller does not pass; raises InputError if the caller has to."""
        call, name, size_bytes = self._call, argument.name, _size_bytes(argument)
        if argument.role == "scratch" or (argument.role == "out" and call.inputs):
            return Hidden(name, size_bytes)
        if name in call.kept:
            return Hidden(name, size_bytes, scalar_of(argument.dtype, call.kept[name]).tobytes())
        if name in call.copies:
            return Hidden(name, size_bytes, copy_of=call.copies[name])
        raise InputError(f"{self._expected(argument)}, found none; pass it, too")

    def _expected(self, argument: Argument) -> str:
        return f"{self._kernel}: {argument.name}: expected {argument.dtype} of shape {argument.shape}"


def _pointers(argument: Argument) -> Iterator[tuple[str, int, str]]:
    """The pointers in a structure: its name, their places in bytes, and what they point to."""
    layout: Mapping[str, Any] = numpy_dtype(argument.dtype).fields or {}
    if isinstance(argument.value, tuple) and pointed(argument.value):
        for part, (name, _, _) in zip(argument.value, struct_fields(argument.dtype), strict=True):
            if isinstance(part, str):
                yield argument.name, layout[name][1], part


def _size_bytes(argument: Argument) -> int:
    return array_bytes(argument.dtype, argument.shape)
