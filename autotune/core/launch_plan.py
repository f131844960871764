"""Derive macros, compiler options and launches from a configuration.

Shared by the tuner and by production code. It defines which names an expression may read.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from autotune.core.argument_values import arguments
from autotune.core.c_types import C_TYPES, FLOAT8
from autotune.core.expression_ops import FUNCTIONS
from autotune.core.expressions import at_least, parse
from autotune.core.frozen import fields, replace
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
# Parameters of best_config, which also takes sizes as keywords: no size may have one of these names.
RESERVED_SIZES = ("self", "kernel", "device", "dtype", "strict", "min_match", "on_miss", "cache", "data")
# patterns are compiled at their first use: most look-ups of a configuration need none
_ENTRY = r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\s*<[\w\s:<>,*&()\[\].+-]*>)?(?:\s*\([\w\s:<>,*&\[\]]*\))?"
_WORD = r"(?<![\w:])[A-Za-z_]\w*(?!\s*::)"
_OPTION_SIGNS = str.maketrans(dict.fromkeys("-+.:,", "_"))  # punctuation that a compiler option may contain
_READS_FILES = (
    r"(?:.*[=,])?(?:-I|--?i(?:nclude|system|quote|macros|dirafter)|--?pre-include|--?options?-file|-optf|-Xclang"
    r"|-fplugin|@)"
)
CUDA_COMPILERS = ("nvrtc", "nvcc")
DEVICE_SETTINGS = ("sm_clock_mhz", "power_limit_w")
Settings = tuple[tuple[str, int], ...]  # settings of a device, by name; 0 leaves one unchanged
TRITON = "triton"  # the compiler of kernels in Triton
PYTHON = "python"  # kernels of the fake device
DIALECTS = ("portable", "cuda", "opencl", PYTHON, TRITON)
TRITON_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
TRITON_USUAL = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}  # where a configuration has none
AMD_OPTIONS = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")  # of Triton, for AMD's GPUs only
NO_ARRAY = "None"  # an argument of a Triton kernel that is no array in this space
TRITON_TYPES = {
    **{f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1"},
    FLOAT8: "fp8e4nv",
}
# Triton compiles different code for addresses and numbers that are multiples of this.
_TRITON_ALIGNMENT = 16
MAX_REPEAT = 10_000  # launches of one step
DTYPE_MACROS = frozenset({"DTYPE", *(f"DTYPE_{dtype.upper()}" for dtype in C_TYPES)})
RESERVED_NAMES = frozenset({"DTYPE", "note", *RESERVED_SIZES, *FUNCTIONS, *keyword.kwlist})  # in a space file


@lru_cache(maxsize=16)  # every configuration of a search needs the same device's
def _device_values(device: DeviceInfo) -> dict[str, Any]:
    return {name: getattr(device, name.removeprefix("device.")) for name in DEVICE_NAMES}


def device_values(device: DeviceInfo | None) -> dict[str, Any]:
    """The values of `device.NAME` in expressions; empty for an unknown device."""
    return {} if device is None else dict(_device_values(device))


def known_values(
    device: DeviceInfo | None,
    sizes: Sizes | None,
    dtype: str,
    config: Mapping[str, Value],
    derived: Mapping[str, str],
) -> dict[str, Any]:
    """The values of all names that an expression may read; raises ExpressionError for a derived name.

    Derived names that need an unknown device, or a size where sizes are unknown, are left out.
    """
    values = device_values(device) | dict(sizes or {}) | {"DTYPE": dtype} | dict(config)
    complete = device is not None and sizes is not None
    for name, text in derived.items():
        expression = parse(text)
        if complete or expression.names <= values.keys():
            try:
                values[name] = expression(values)
            except ExpressionError as error:
                raise error.at(f"derived.{name}") from None
    return values


def macro_name(parameter: str, value: str) -> str:
    """The macro of a named value, such as ALGORITHM_SHUFFLE for ALGORITHM and shuffle."""
    return f"{parameter}_{value}".upper().replace("-", "_")


def macros(parameters: Iterable[Parameter], config: Mapping[str, Value], dtype: str) -> dict[str, Value]:
    """The macros that compile a source as one configuration.

    Booleans become 1 or 0. Every named value of a parameter becomes a constant; the parameter's own macro is
    the constant of its value. Constants are numbered from 1, because the preprocessor reads an undefined
    macro as 0.
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
    """True if a text is one plain compiler option, without a path, a definition or a second option."""
    return text.startswith("-") and _is_plain(text)


def reads_files(option: str) -> bool:
    """True if an option makes a compiler read files, whose content is in no source and no key."""
    return re.match(_READS_FILES, option) is not None


def _is_plain(text: str) -> bool:
    plain = "_" + text.translate(_OPTION_SIGNS)
    return plain.isascii() and plain.isidentifier()


def compiler_options(options: Mapping[str, str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """The compiler options of one dialect: True gives the flag, False nothing, any other value `flag=value`.

    Raises ExpressionError for an option that cannot be evaluated or whose value is not a plain word.
    """
    evaluated = {flag: parse(text)(values) for flag, text in options.items()}
    for flag, value in evaluated.items():
        if not _is_plain(str(value)):
            raise ExpressionError(
                f"option {flag}: {value!r}: expected a number, a truth value or a plain word"
            )
        if reads_files(str(value)):
            raise ExpressionError(f"option {flag}: {value!r} reads files; name a folder in include_dirs")
    return tuple(
        flag if value is True else f"{flag}={value}"
        for flag, value in evaluated.items()
        if value is not False
    )


def device_settings(texts: Mapping[str, str], values: Mapping[str, Any]) -> Settings:
    """Evaluate a configuration's device settings; raises ExpressionError."""
    settings = []
    for name in sorted(texts):
        try:
            settings.append((name, at_least(0, parse(texts[name]), values)))
        except ExpressionError as error:
            raise error.at(f"device.{name}") from None
    return tuple(settings)


def launches(
    plan: Sequence[LaunchSpec], values: Mapping[str, Any], specs: Iterable[ArgumentSpec] = ()
) -> tuple[Launch, ...]:
    """Evaluate a launch plan; grid and block always have three dimensions.

    Triton compiles for the types of the arguments in `specs`. Raises ExpressionError for an extent that is
    not a whole number of at least one, for too many repetitions, and for an argument that cannot be passed.
    """
    is_triton = any(step.constants for step in plan)
    passed = {item.name: item for item in arguments(specs, values, values["DTYPE"])} if is_triton else {}
    evaluated: list[Launch] = []
    for number, step in enumerate(plan):
        try:
            evaluated += _repeated(step, values, passed) if parse(step.when)(values) else ()
        except ExpressionError as error:
            raise error.at(f"launch[{number}]") from None
    if evaluated and evaluated[0].programmatic:  # nothing of the plan is before it
        evaluated[0] = replace(evaluated[0], programmatic=False)
    return tuple(evaluated)


def _repeated(
    step: LaunchSpec, values: Mapping[str, Any], passed: Mapping[str, Argument]
) -> tuple[Launch, ...]:
    """The launches of one step; every second one has two arrays exchanged."""
    launch = Launch(
        entry=_triton_entry(step, values, passed) if step.constants else entry_name(step.entry, values),
        grid=_extent("grid", step.grid, values),
        block=_extent("block", step.block, values),
        shared_bytes=at_least(0, parse(step.shared_bytes), values),
        arguments=tuple(name for name in step.arguments if name != NO_ARRAY),
        cooperative=bool(parse(step.cooperative or "False")(values)),
        cluster=_extent("cluster", step.cluster, values),
        programmatic=bool(parse(step.programmatic or "False")(values)),
    )
    count = at_least(0, parse(step.repeat or "1"), values)
    if count > MAX_REPEAT:
        raise ExpressionError(f"{step.repeat!r} gives {count}, expected at most {MAX_REPEAT}", "repeat")
    if count <= 1 and not step.result:
        return (launch,) * count
    swapped = dict(zip(step.swap, reversed(step.swap), strict=True))
    exchanged = replace(launch, arguments=tuple(swapped.get(name, name) for name in launch.arguments))
    is_late = step.result != "" and step.result != step.swap[count % 2]
    return tuple(exchanged if (number + is_late) % 2 else launch for number in range(count))


def _triton_entry(step: LaunchSpec, values: Mapping[str, Any], passed: Mapping[str, Argument]) -> str:
    """A Triton kernel's compiled signature: `add('*fp32:16', 'i32:16', BLOCK=128, num_warps=4)`."""
    kinds = [repr(name if name == NO_ARRAY else _triton_type(passed[name])) for name in step.arguments]
    given = constant_expressions(step)
    if unknown := [text for text in given.values() if parse(text).names - values.keys()]:
        raise ExpressionError(f"constants: nothing gives {', '.join(unknown)} a value")
    constants = [f"{name}={parse(text)(values)!r}" for name, text in given.items()]
    return f"{step.entry}({', '.join(kinds + constants)})"


def constant_expressions(step: LaunchSpec) -> dict[str, str]:
    """The expressions of the constants that a Triton kernel is compiled for, by name."""
    pairs = (text.partition("=") for text in step.constants)
    return {name: text or name for name, _, text in pairs}


def _triton_type(argument: Argument) -> str:
    """An argument's type, with Triton's specialisation: `:16` for a multiple, `=1` for the number 1."""
    kind = TRITON_TYPES.get(argument.dtype)
    if kind is None:
        raise ExpressionError(f"argument {argument.name}: Triton has no type {argument.dtype}")
    if argument.value is None:
        return f"*{kind}" if argument.offset_bytes % _TRITON_ALIGNMENT else f"*{kind}:{_TRITON_ALIGNMENT}"
    if not isinstance(argument.value, int) or argument.dtype == "bool":
        return kind
    if argument.value == 1:
        return f"{kind}=1"
    return kind if argument.value % _TRITON_ALIGNMENT else f"{kind}:{_TRITON_ALIGNMENT}"


def needs_cuda(launch: Launch) -> str:
    """The reason why only CUDA can run a launch, in one line; empty if any device can."""
    names = ", ".join(launch.attributes)
    return (
        f"{launch.entry}: {names} in the launch plan needs CUDA; make it false where device.backend is opencl"
        if names
        else ""
    )


def is_entry(text: str) -> bool:
    """True if a text can name a kernel in C++, such as `sum`, `ns::sum<float, 4>` or `sum(float *, int)`."""
    if text.isidentifier() and text.isascii():
        return True
    match = re.fullmatch(_ENTRY, text)
    return match is not None and all(text.count(left) == text.count(right) for left, right in ("<>", "()"))


def entry_name(text: str, values: Mapping[str, Any]) -> str:
    """Put values in place of the names in a kernel's template arguments and argument types.

    `sum<T, BLOCK>` becomes `sum<float, 256>`: a parameter's named value may be a type. Unknown names stay.
    """
    if "<" not in text and "(" not in text:
        return text
    start = min(text.find(mark) for mark in "<(" if mark in text)

    def value_of(match: re.Match[str]) -> str:
        value = values.get(match[0], match[0])
        if match[0] == "DTYPE":
            return C_TYPES[str(value)]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return text[:start] + re.sub(_WORD, value_of, text[start:])


def symbol_names(launches: Iterable[Launch], arguments: Iterable[ArgumentSpec | Argument]) -> tuple[str, ...]:
    """The C++ names to look up in a binary: kernels that are launched, and variables that arrays fill."""
    symbols = {argument.symbol for argument in arguments if argument.symbol}
    return tuple(sorted({step.entry for step in launches} | symbols))


def _extent(name: str, texts: tuple[str, ...], values: Mapping[str, Any]) -> tuple[int, int, int]:
    numbers = [1, 1, 1]
    for axis, text in enumerate(texts):
        try:
            numbers[axis] = at_least(1, parse(text), values)
        except ExpressionError as error:
            raise error.at(f"{name}[{axis}]") from None
    return numbers[0], numbers[1], numbers[2]
