"""From a configuration to macros and launches: pure, and shared by the tuner and the loader.

This module owns which names an expression may read, and how a value becomes a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from autotune.core.expressions import Expression, integer, number, parse
from autotune.core.records import (
    Argument,
    ArgumentSpec,
    DeviceInfo,
    Launch,
    LaunchSpec,
    Parameter,
    Sizes,
    Value,
)
from autotune.errors import ExpressionError

DEVICE_NAMES = tuple(f"device.{item.name}" for item in fields(DeviceInfo) if item.compare)
# Sizes are keywords of best_config beside its own ones.
RESERVED_SIZES = ("self", "kernel", "device", "dtype", "strict", "min_match", "on_miss", "cache", "data")
ARGUMENT_ROLES = ("in", "out", "inout", "scratch", "scalar")
_ENTRY = re.compile(
    r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\s*<[\w\s:<>,*&()\[\].+-]*>)?(?:\s*\([\w\s:<>,*&\[\]]*\))?"
)
_WORD = re.compile(r"(?<![\w:])[A-Za-z_]\w*(?!\s*::)")
_OPTION_SIGNS = str.maketrans(dict.fromkeys("-+.:,", "_"))  # besides those of names, in options of compilers
CUDA_COMPILERS = ("nvrtc", "nvcc")
C_TYPES = {
    "int8": "char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long",
    "uint64": "unsigned long",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}


def device_values(device: DeviceInfo | None) -> dict[str, Any]:
    """The names an expression may read of a device; none when the device is not known."""
    if device is None:
        return {}
    return {name: getattr(device, name.removeprefix("device.")) for name in DEVICE_NAMES}


def known_values(
    device: DeviceInfo | None,
    sizes: Sizes | None,
    dtype: str,
    config: Mapping[str, Value],
    derived: Mapping[str, str],
) -> dict[str, Any]:
    """Everything an expression may read; derived names that need an unknown device or sizes are left out.

    Raises ExpressionError when a derived name cannot be evaluated.
    """
    values = device_values(device) | dict(sizes or {}) | {"DTYPE": dtype} | dict(config)
    complete = device is not None and sizes is not None
    for name, text in derived.items():
        expression = parse(text)
        if complete or expression.names <= values.keys():
            values[name] = expression(values)
    return values


def macro_name(parameter: str, value: str) -> str:
    """The macro constant of a named value: ALGORITHM and shuffle give ALGORITHM_SHUFFLE."""
    return f"{parameter}_{value}".upper().replace("-", "_")


def macros(parameters: Iterable[Parameter], config: Mapping[str, Value], dtype: str) -> dict[str, Value]:
    """The macros that make one configuration of a source.

    Numbers stand for themselves and booleans become 1 or 0. For a parameter with named values every
    name becomes a constant, counted from 1, so that an undefined name, which the preprocessor reads
    as 0, equals none of them; the parameter's own macro is the constant that was chosen.
    """
    defines: dict[str, Value] = {"DTYPE": C_TYPES[dtype], f"DTYPE_{dtype.upper()}": 1}
    for parameter in parameters:
        names = [value for value in parameter.values if isinstance(value, str)]
        defines |= {macro_name(parameter.name, name): number for number, name in enumerate(names, 1)}
        value = config[parameter.name]
        if isinstance(value, str):
            defines[parameter.name] = macro_name(parameter.name, value)
        else:
            defines[parameter.name] = int(value) if isinstance(value, bool) else value
    return defines


def is_option(text: str) -> bool:
    """Whether this can be a compiler's option: no path, no definition and no second option is in it."""
    return text.startswith("-") and _is_plain(text)


def _is_plain(text: str) -> bool:
    plain = "_" + text.translate(_OPTION_SIGNS)
    return plain.isascii() and plain.isidentifier()


def compiler_options(options: Mapping[str, str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Compiler options of one dialect: True gives the flag, False nothing, any other value `flag=value`.

    Raises ExpressionError for one that cannot be evaluated, or gives a text that is no plain word.
    """
    evaluated = {flag: parse(text)(values) for flag, text in options.items()}
    for flag, value in evaluated.items():
        if not _is_plain(str(value)):
            raise ExpressionError(
                f"option {flag}: {value!r}: expected a number, a truth value or a plain word"
            )
    return tuple(
        flag if value is True else f"{flag}={value}"
        for flag, value in evaluated.items()
        if value is not False
    )


def arguments(specs: Iterable[ArgumentSpec], values: Mapping[str, Any], dtype: str) -> tuple[Argument, ...]:
    """Evaluate arguments for a problem; raises ExpressionError."""
    return tuple(
        Argument(
            name=spec.name,
            dtype=dtype if spec.dtype == "DTYPE" else spec.dtype,
            role=spec.role,
            shape=tuple(at_least(0, parse(extent), values) for extent in spec.shape),
            value=None if spec.value is None else _scalar(spec, values, dtype),
        )
        for spec in specs
    )


def _scalar(spec: ArgumentSpec, values: Mapping[str, Any], dtype: str) -> int | float:
    """A scalar's value, which an integer type must be able to hold."""
    assert spec.value is not None
    kind = dtype if spec.dtype == "DTYPE" else spec.dtype
    if kind.startswith("float"):
        return number(parse(spec.value), values)
    value = integer(parse(spec.value), values)
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= value <= high:
        raise ExpressionError(f"argument {spec.name}: {spec.value!r} gives {value}, which {kind} cannot hold")
    return value


def launches(plan: Sequence[LaunchSpec], values: Mapping[str, Any]) -> tuple[Launch, ...]:
    """Evaluate a launch plan; grid and block in blocks and threads, always three dimensions.

    Raises ExpressionError when an extent is not a whole number of at least one.
    """
    return tuple(
        Launch(
            entry=entry_name(step.entry, values),
            grid=_extent(step.grid, values),
            block=_extent(step.block, values),
            shared_bytes=integer(parse(step.shared_bytes), values),
            arguments=step.arguments,
        )
        for step in plan
        if parse(step.when)(values)
    )


def is_entry(text: str) -> bool:
    """Whether this can be a kernel's name in C++: namespaces, template arguments and argument types, too."""
    match = _ENTRY.fullmatch(text)
    return match is not None and all(text.count(one) == text.count(other) for one, other in ("<>", "()"))


def entry_name(text: str, values: Mapping[str, Any]) -> str:
    """A kernel's name with the values of the names in its template arguments and argument types.

    A named value of a parameter stands for itself: it may be a type, so that `sum<T>` becomes sum<float>.
    """
    start = min((text.find(mark) for mark in "<(" if mark in text), default=len(text))

    def value_of(match: re.Match[str]) -> str:
        value = values.get(match[0], match[0])
        if match[0] == "DTYPE":
            return C_TYPES[str(value)]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return text[:start] + _WORD.sub(value_of, text[start:])


def looked_up(launches: Iterable[Launch]) -> tuple[str, ...]:
    """The names of C++ that launches need, each once."""
    return tuple(sorted({step.entry for step in launches}))


def _extent(texts: tuple[str, ...], values: Mapping[str, Any]) -> tuple[int, int, int]:
    numbers = [at_least(1, parse(text), values) for text in texts] + [1] * (3 - len(texts))
    return numbers[0], numbers[1], numbers[2]


def at_least(least: int, expression: Expression, values: Mapping[str, Any]) -> int:
    """Evaluate to a whole number that is no smaller; raises ExpressionError for anything else."""
    result = integer(expression, values)
    if result < least:
        raise ExpressionError(f"{expression.text!r} gives {result}, expected at least {least}")
    return result
