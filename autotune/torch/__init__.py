"""Tuned kernels as operators of PyTorch: for `torch.compile`, CUDA graphs, streams and several GPUs.

    from autotune.torch import custom_op

    total = custom_op("reduce")(x)

An operator has a fake implementation, which gives the shapes and types of its outputs without running it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from autotune.core.expressions import parse
from autotune.core.extras import naming_extra
from autotune.core.records import ArgumentSpec
from autotune.errors import InputError

with naming_extra("load"):
    from autotune.runtime.loaded_kernel import LoadedKernel, load_kernel


def custom_op(kernel: str, *, name: str | None = None, **options: Any) -> Any:
    """Register a kernel as an operator; its space says what a call gives and gets.

    Inputs are made contiguous. Sizes that no shape of an input gives are whole numbers after the inputs, in
    alphabetic order. The operator has no derivative.

    Args:
        kernel: The kernel's name in the cache.
        name: The operator's name with its namespace; None is `autotune::KERNEL`.
        options: As for `load_kernel`.

    Returns:
        The operator, a `torch.library.CustomOpDef`; also found as `torch.ops.autotune.KERNEL`.

    Raises:
        InputError: The space does not say what a call gives and gets, its call returns an input, or an
            output's shape depends on the configuration.
        NoConfig: The kernel has no results.
    """
    loaded = load_kernel(kernel, **options)
    signature = _Signature(loaded, options.get("dtype"))

    def run(*arguments: Any) -> Any:
        count = len(signature.inputs)
        given = [
            (array.detach() if array.requires_grad else array).contiguous() if spec.role == "in" else array
            for spec, array in zip(signature.inputs, arguments, strict=False)
        ]
        return loaded(*given, **dict(zip(signature.sizes, arguments[count:], strict=True)))

    mutated = [spec.name for spec in signature.inputs if spec.role == "inout"]
    operator = torch.library.custom_op(
        name or f"autotune::{kernel}", run, mutates_args=mutated, schema=signature.schema
    )
    operator.register_fake(signature.fake)
    return operator


class _Signature:
    """The arguments and results of an operator, from the kernel's record."""

    def __init__(self, loaded: LoadedKernel, dtype: str | None) -> None:
        """Read the record; `dtype` is the element type for which the kernel is loaded, or None for any."""
        record, self._kernel = loaded.record, loaded.kernel
        if record.call is None:
            raise InputError(
                f"{loaded.kernel}: its results do not say what a call takes and returns; add call: to the "
                "space and search again"
            )
        specs = {spec.name: spec for spec in record.arguments}
        self.inputs = [specs[name] for name in record.call.inputs]
        self._outputs = [specs[name] for name in record.call.returns]
        if updated := [name for name in record.call.returns if name in record.call.inputs]:
            raise InputError(
                f"{loaded.kernel}: its call returns the input {updated[0]}, as no operator of PyTorch can; "
                "leave it out of `returns`, or call load_kernel"
            )
        # the type of outputs that are DTYPE, if no input is
        has_generic = not dtype and any(spec.dtype == "DTYPE" for spec in self.inputs)
        self._generic = None if has_generic else dtype or record.dtypes[0]
        self._dtypes = {
            spec.name: self._torch_dtype(spec.dtype) for spec in self._outputs if spec.dtype != "DTYPE"
        }
        every = record.size_names
        from_shapes = {extent for spec in self.inputs for extent in spec.shape if extent in every}
        self.sizes = sorted(every - from_shapes)
        for spec in self._outputs:
            if unknown := {name for extent in spec.shape for name in parse(extent).names} - every:
                raise InputError(
                    f"{loaded.kernel}: the shape of {spec.name} depends on {', '.join(sorted(unknown))}, "
                    "which an operator does not know before it runs"
                )

    @property
    def schema(self) -> str:
        """In the notation of `torch.library`."""
        marks = {"in": "Tensor", "inout": "Tensor(a{}!)"}
        inputs = [f"{marks[spec.role].format(place)} {spec.name}" for place, spec in enumerate(self.inputs)]
        inputs += [f"SymInt {name}" for name in self.sizes]
        outputs = ", ".join("Tensor" for _ in self._outputs)
        return f"({', '.join(inputs)}) -> {outputs if len(self._outputs) == 1 else f'({outputs})'}"

    def fake(self, *arguments: Any) -> Any:
        """Empty outputs of the right shapes and types."""
        count = len(self.inputs)
        sizes: dict[str, Any] = dict(zip(self.sizes, arguments[count:], strict=True))
        for spec, array in zip(self.inputs, arguments, strict=False):
            if len(array.shape) != len(spec.shape):
                shape, expected = tuple(array.shape), ", ".join(spec.shape)
                raise InputError(
                    f"{self._kernel}: {spec.name} has shape {shape}, and the space declares [{expected}]"
                )
            sizes |= dict(zip(spec.shape, array.shape, strict=True))
        made = [self._empty(spec, arguments[:count], sizes) for spec in self._outputs]
        return made[0] if len(made) == 1 else tuple(made)

    def _empty(self, spec: ArgumentSpec, arrays: Sequence[Any], sizes: Mapping[str, Any]) -> Any:
        given = zip(self.inputs, arrays, strict=True)
        generic = (array.dtype for spec, array in given if spec.dtype == "DTYPE")
        dtype = self._dtypes.get(spec.name) or (
            self._torch_dtype(self._generic) if self._generic else next(generic)
        )
        shape = [torch.sym_int(parse(extent)(sizes)) for extent in spec.shape]  # n / 2 is no whole number yet
        return arrays[0].new_empty(shape, dtype=dtype)

    def _torch_dtype(self, name: str) -> Any:
        """The type of PyTorch; raises InputError if it has none."""
        dtype = getattr(torch, name, None)
        if not isinstance(dtype, torch.dtype):
            raise InputError(f"{self._kernel}: PyTorch has no element type {name}")
        return dtype
