"""What a kernel in Triton is compiled for: the types of its arguments, and the values of its constants."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.core.c_types import FLOAT8
from autotune.core.light_typing import Any
from autotune.core.records import Argument, LaunchSpec
from autotune.errors import ExpressionError

_TYPES = {
    **{f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1"},
    FLOAT8: "fp8e4nv",
}
_ALIGNMENT = 16  # bytes of an address, and the multiple of a number, for which Triton compiles other code


def triton_entry(step: LaunchSpec, values: Mapping[str, Any], passed: Mapping[str, Argument]) -> str:
    """What a Triton kernel is compiled for: `add('*fp32:16', 'i32:16', BLOCK=128, num_warps=4)`."""
    kinds = [repr(_type(passed[name])) for name in step.arguments]
    if unknown := [name for name in step.constants if name not in values]:
        raise ExpressionError(f"constants: nothing gives {', '.join(unknown)} a value")
    constants = [f"{name}={values[name]!r}" for name in step.constants]
    return f"{step.entry}({', '.join(kinds + constants)})"


def _type(argument: Argument) -> str:
    """An argument's type, with what Triton compiles for: `:16` for a multiple, `=1` for the number 1."""
    kind = _TYPES.get(argument.dtype)
    if kind is None:
        raise ExpressionError(f"argument {argument.name}: Triton has no type {argument.dtype}")
    if argument.value is None:
        return f"*{kind}" if argument.offset_bytes % _ALIGNMENT else f"*{kind}:{_ALIGNMENT}"
    if not isinstance(argument.value, int) or argument.dtype == "bool":
        return kind
    if argument.value == 1:
        return f"{kind}=1"
    return kind if argument.value % _ALIGNMENT else f"{kind}:{_ALIGNMENT}"
