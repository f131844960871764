"""The arguments of a kernel for one problem: shapes and numbers from the expressions of a space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from autotune.core.c_types import (
    POINTER,
    element_bytes,
    integer_limits,
    is_complex,
    is_floating,
    struct_fields,
)
from autotune.core.expressions import as_integer, as_number, at_least, parse
from autotune.core.records import Argument, ArgumentSpec, ScalarValue
from autotune.errors import ExpressionError

ARGUMENT_ROLES = ("in", "out", "inout", "scratch", "local", "scalar", "view")


def arguments(specs: Iterable[ArgumentSpec], values: Mapping[str, Any], dtype: str) -> tuple[Argument, ...]:
    """Evaluate the arguments of a problem whose element type is `dtype`; raises ExpressionError."""
    evaluated: list[Argument] = []
    memory: set[str] = set()  # the arrays and views so far
    for number, spec in enumerate(specs):
        try:
            argument = _argument(spec, values, dtype)
            if lost := {*pointed(argument.value)} - memory:
                raise ExpressionError(f"argument {spec.name}: no earlier array or view is called {min(lost)}")
            evaluated.append(argument)
            memory |= {spec.name} if argument.value is None else set()
        except ExpressionError as error:
            raise error.at(f"arguments[{number}]") from None
    return tuple(evaluated)


def _argument(spec: ArgumentSpec, values: Mapping[str, Any], problem_dtype: str) -> Argument:
    dtype = problem_dtype if spec.dtype == "DTYPE" else spec.dtype
    return Argument(
        name=spec.name,
        dtype=dtype,
        role=spec.role,
        shape=tuple(at_least(0, parse(extent), values) for extent in spec.shape),
        value=None if spec.value is None else _scalar(spec.name, spec.value, values, dtype),
        symbol=spec.symbol,
        of=spec.of,
        offset_bytes=at_least(0, parse(spec.offset or "0"), values) * element_bytes(dtype) if spec.of else 0,
    )


def _scalar(name: str, text: str, values: Mapping[str, Any], dtype: str) -> ScalarValue:
    """The value of a scalar: a list for a structure; a number, or a list of two, for a complex type.

    A pointer in a structure has the name of what it points to.

    Raises ExpressionError if the type cannot hold it.
    """
    value = parse(text)(values)
    fields = struct_fields(dtype)
    if fields or (is_complex(dtype) and isinstance(value, tuple)):
        kinds = fields or (("", "float64", 0), ("", "float64", 0))
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) != len(kinds):
            raise ExpressionError(
                f"argument {name}: {text!r} gives {len(parts)} values for {len(kinds)} fields"
            )
        pairs = zip(parts, kinds, strict=True)
        return tuple(
            str(part) if kind == POINTER else _number(name, text, part, kind) for part, (_, kind, _) in pairs
        )
    return _number(name, text, value, dtype)


def pointed(value: ScalarValue | None) -> tuple[str, ...]:
    """The arrays and views that the pointers in a structure point to."""
    return tuple(part for part in value if isinstance(part, str)) if isinstance(value, tuple) else ()


def _number(name: str, text: str, result: Any, dtype: str) -> int | float:
    if dtype == "bool":
        return int(bool(result))
    if is_floating(dtype) or is_complex(dtype):
        return as_number(result, text)
    value = as_integer(result, text)
    lowest, highest = integer_limits(dtype) or (value, value)
    if not lowest <= value <= highest:
        raise ExpressionError(
            f"argument {name}: {text!r} gives {value}, which {dtype} cannot hold{_wider(value, dtype)}"
        )
    return value


def _wider(value: int, dtype: str) -> str:
    """The end of a message: the type of C's numbers, of 32 bits or 64, that holds a value; empty if none."""
    kinds = ("uint32", "uint64") if value >= 0 and dtype.startswith("u") else ("int32", "int64")
    holding = (kind for kind in kinds if (limits := integer_limits(kind)) and limits[0] <= value <= limits[1])
    kind = next(holding, None)
    return f"; write dtype: {kind}, and use that type in the kernel" if kind else ""
