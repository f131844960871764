"""Read the sections `arguments` and `launch` of a space file.

No array is created and no expression is evaluated here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.core.c_types import C_TYPES, FLOAT8, SCALARS, integer_limits, struct_fields
from autotune.core.json_values import is_name
from autotune.core.launch_plan import ARGUMENT_ROLES, TRITON, TRITON_OPTIONS, is_entry
from autotune.core.records import ArgumentSpec, LaunchSpec, Value
from autotune.core.text import hint
from autotune.core.triton_source import TritonParameter
from autotune.space.structures import read_fields, read_struct_value
from autotune.space.value_advice import fill_advice
from autotune.space.yaml_document import Element

ROLES = tuple(role for role in ARGUMENT_ROLES if role not in ("scalar", "view"))
FILLS = ("integers", "uniform", "normal", "constant", "sequence", "copy", "transpose", "file")
RANDOM_FILLS = ("integers", "uniform", "normal")
INPUTS = "inputs"  # the fill of an array that the function `inputs` of the reference file returns
_EXAMPLES = {  # of required keys
    **{"name": "x", "dtype": "float32", "shape": "[n]", "role": "out"},
    **{"entry": "my_kernel", "grid": '["ceil_div(n, BLOCK_SIZE)"]', "block": "[BLOCK_SIZE]"},
}
# of a launch: one expression each
_ATTRIBUTES = ("shared_bytes", "when", "repeat", "stream", "cooperative", "programmatic")
DATA = "{data}"  # stands for the name of the content in the name of a file


@dataclass(frozen=True)
class Fill:
    """How an array is filled before a run.

    The arguments of each kind: `integers` and `uniform` take the lowest and the highest value, `normal` mean
    and standard deviation, `constant` one value, `sequence` start and step, `copy` and `transpose` the name
    of an earlier array, `file` a path relative to the space file, `inputs` none.
    """

    kind: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class FilledArgument(ArgumentSpec):
    """An argument with the fill of its array; None for out, scratch and scalars."""

    fill: Fill | None = None


def read_arguments(
    section: Element, dtypes: Sequence[str], names: Collection[str], dialect: str
) -> tuple[FilledArgument, ...]:
    """Read the arguments of a kernel; shapes and values may read `names`. Raises SpaceError."""
    arguments: dict[str, FilledArgument] = {}
    for element in section.items():
        keys = element.mapping(example="{name: a, dtype: float32, value: 1}")
        if "value" in keys:
            argument = _scalar(element, names)
        elif "of" in keys:
            argument = _view(element, names, arguments)
        elif not {"shape", "role"} & keys.keys():
            raise element.error(
                "expected the `value` of a number, or the `shape` and `role` of an array; for a number, add "
                "what the kernel gets, such as `value: 1`"
            )
        else:
            argument = _array(element, dtypes, names, arguments, dialect)
        if argument.name in arguments:
            raise element.error(f"the argument {argument.name!r} appears twice")
        arguments[argument.name] = argument
    if not any(argument.role in ("out", "inout") for argument in arguments.values()):
        raise section.error(
            "expected an argument of role out or inout, so that there is a result to check; "
            "what the kernel writes has `role: out`"
        )
    return tuple(arguments.values())


def read_launches(
    section: Element,
    arguments: Sequence[ArgumentSpec],
    names: Collection[str],
    dialect: str,
    triton: Mapping[str, Sequence[TritonParameter]],
) -> tuple[LaunchSpec, ...]:
    """Read the launch plan.

    Args:
        section: Of the space file.
        arguments: The kernel's.
        names: What expressions may read.
        dialect: That of the source.
        triton: The kernels of a source in Triton, with their parameters.

    Raises:
        SpaceError: The plan is wrong.
    """
    known = {argument.name: argument for argument in arguments}
    if dialect == TRITON:
        return tuple(_triton_launch(element, known, names, triton) for element in section.items())
    return tuple(_launch(element, known, names, dialect) for element in section.items())


def read_dtype(element: Element, known: Collection[str]) -> str:
    """An element type by numpy's name; the error for a type of C says which one it is."""
    word = element.text()
    if word not in known and SCALARS.get(word) in known:
        raise element.error(f"unknown value {word!r}; did you mean {SCALARS[word]}?")
    return element.choice(known)


def _scalar(element: Element, names: Collection[str]) -> FilledArgument:
    entries = element.record(("name", _type_key(element), "value"), (), _EXAMPLES)
    dtype = _element_type(entries)
    is_struct = bool(struct_fields(dtype))
    return FilledArgument(
        name=entries["name"].identifier(),
        dtype=dtype,
        role="scalar",
        value=read_struct_value(entries["value"], dtype, names)
        if is_struct
        else entries["value"].expression(names),
    )


def _view(element: Element, names: Collection[str], earlier: Mapping[str, FilledArgument]) -> FilledArgument:
    """A pointer into an earlier array."""
    entries = element.record(("name", "dtype", "of", "offset"))
    parent = entries["of"].text()
    arrays = [item.name for item in earlier.values() if item.role in ROLES and not item.symbol]
    if parent not in arrays:
        raise entries["of"].error(f"expected an earlier array, found {parent!r}{hint(parent, arrays)}")
    return FilledArgument(
        name=entries["name"].identifier(),
        dtype=read_dtype(entries["dtype"], (*C_TYPES, "DTYPE")),
        role="view",
        of=parent,
        offset=entries["offset"].expression(names),
    )


def _type_key(element: Element) -> str:
    return "fields" if "fields" in element.mapping() else "dtype"


def _element_type(entries: Mapping[str, Element]) -> str:
    if "fields" in entries:
        return read_fields(entries["fields"])
    return read_dtype(entries["dtype"], (*C_TYPES, "DTYPE"))


def _input_type(entries: Mapping[str, Element], role: str, dialect: str) -> str:
    """The element type of an array, which may be FLOAT8 for inputs of Triton kernels."""
    if "dtype" not in entries or entries["dtype"].text() != FLOAT8:
        return _element_type(entries)
    if role != "in" or dialect != TRITON:
        raise entries["dtype"].error(f"{FLOAT8} is for arrays of role in, and for dialect {TRITON} only")
    return FLOAT8


def _array(
    element: Element,
    dtypes: Sequence[str],
    names: Collection[str],
    earlier: Mapping[str, FilledArgument],
    dialect: str,
) -> FilledArgument:
    if (fill := element.mapping().get("fill")) and fill.is_scalar:
        _fill(fill)  # a comma in `uniform(0, 1)` would be taken for the end of the entry
    entries = element.record(("name", _type_key(element), "shape", "role"), ("fill", "symbol"), _EXAMPLES)
    role = entries["role"].choice(ROLES)
    has_fill = "fill" in entries
    if has_fill and role not in ("in", "inout"):
        raise entries["fill"].error(
            f"an array of role {role} takes no fill: it is overwritten before a run; remove the fill, or "
            "write role: inout"
        )
    if not has_fill and role in ("in", "inout"):
        raise element.error(
            f"an array of role {role} needs a fill; add `fill: {{uniform: [0, 1]}}`, for example"
        )
    if role == "local" and dialect != "opencl":
        raise entries["role"].error(
            "only OpenCL passes local memory; in CUDA give `shared_bytes` in the launch"
        )
    if role == "local" and "symbol" in entries:
        raise entries["symbol"].error("local memory belongs to a block: no variable holds it")
    argument = FilledArgument(
        name=entries["name"].identifier(),
        dtype=_input_type(entries, role, dialect),
        role=role,
        shape=tuple(extent.expression(names) for extent in entries["shape"].items()),
        symbol=_symbol(entries["symbol"], role, dialect) if "symbol" in entries else "",
        fill=_fill(entries["fill"]) if has_fill else None,
    )
    if argument.fill is not None:
        _check_fill(entries["fill"], argument, dtypes, earlier)
    return argument


def _symbol(element: Element, role: str, dialect: str) -> str:
    """A `__constant__` or `__device__` variable of the source."""
    if dialect != "cuda":
        raise element.error(
            "only dialect cuda has variables that the host can write; pass the array as an argument"
        )
    if role != "in":
        raise element.error(f"an array that is copied to a variable has the role in, not {role}")
    symbol = element.text()
    if not is_entry(symbol) or "(" in symbol:
        raise element.error(f"expected the name of a variable in the source, found {symbol!r}")
    return symbol


def _fill(element: Element) -> Fill:
    if element.is_scalar and element.shown == INPUTS:
        return Fill(INPUTS, ())
    known = f"a fill is {INPUTS} or one of {', '.join(FILLS)}, such as {{uniform: [0, 1]}}"
    if element.is_scalar:
        raise element.error(f"{known}{fill_advice(element.shown, FILLS)}")
    entries = element.mapping(example="{uniform: [0, 1]}")
    kind, content = next(iter(entries.items()))
    if kind not in FILLS or len(entries) > 1:
        raise content.error(f"{known}{fill_advice(kind, FILLS)}")
    if kind == "file":
        path = content.path.parent / content.text()
        if DATA not in content.text() and not path.is_file():
            raise content.error(f"no such file: {path} (paths are relative to the space file)")
        return Fill(kind, (content.text(),))
    if kind in ("copy", "transpose"):
        return Fill(kind, (content.text(),))
    if kind == "constant":
        return Fill(kind, (content.number(),))
    items = content.items() if content.is_list else []
    if len(items) != 2:
        raise content.error(
            f"expected two numbers, found {len(items) or content.shown}; write {kind}: [0, 1], for example"
        )
    first, second = (item.integer() if kind == "integers" else item.number() for item in items)
    if kind in ("integers", "uniform") and first > second:
        raise content.error(f"expected the lower number first, found [{first}, {second}]")
    if kind == "normal" and second < 0:
        raise items[1].error(f"expected a deviation of at least 0, found {second}")
    return Fill(kind, (first, second))


def _check_fill(
    element: Element, argument: FilledArgument, dtypes: Sequence[str], earlier: Mapping[str, FilledArgument]
) -> None:
    """Refuse a copy of an array that does not match, and integers that the element type cannot hold."""
    assert argument.fill is not None
    kind, numbers = argument.fill.kind, argument.fill.arguments
    if struct_fields(argument.dtype) and kind in ("integers", "uniform", "normal", "sequence"):
        raise element.error(
            f"{kind} fills numbers: an array of structures takes {INPUTS}, file, copy or constant"
        )
    if kind in ("copy", "transpose"):
        original = earlier.get(str(numbers[0]))
        if original is None or original.fill is None:
            raise element.error(f"expected the name of an earlier array with a fill, found {numbers[0]!r}")
        shape = argument.shape if kind == "copy" else argument.shape[::-1]
        if (original.dtype, original.shape) != (argument.dtype, shape):
            expected = "shape" if kind == "copy" else "shape in reverse"
            raise element.error(
                f"expected an array of the same dtype and {expected}, {original.name} has another"
            )
    if kind not in ("integers", "constant"):
        return
    for dtype in dtypes if argument.dtype == "DTYPE" else (argument.dtype,):
        if limits := integer_limits(dtype):
            lowest, highest = limits
            if not all(lowest <= number <= highest for number in numbers):  # type: ignore[operator]
                raise element.error(f"expected numbers from {lowest} to {highest}, as {dtype} holds")


def _triton_launch(
    element: Element,
    arguments: Mapping[str, ArgumentSpec],
    names: Collection[str],
    kernels: Mapping[str, Sequence[TritonParameter]],
) -> LaunchSpec:
    """A launch of a Triton kernel, whose compiler decides the block and the shared memory."""
    entries = element.record(("entry", "grid", "arguments"), ("when", "swap", "repeat", "stream"))
    passed = _passed(entries, arguments)
    entry = entries["entry"].choice(kernels)
    taken = [one.name for one in kernels[entry] if not one.is_constant]
    if len(taken) != len(passed):
        raise entries["arguments"].error(
            f"{entry} takes ({', '.join(taken)}) besides its constants; "
            f"the launch passes ({', '.join(passed)})"
        )
    for one in kernels[entry]:
        if one.is_constant and one.name not in names and not one.has_default:
            raise element.error(
                f"{entry} needs {one.name} as a tl.constexpr; declare a parameter, a size or a derived name"
            )
    constants = tuple(one.name for one in kernels[entry] if one.is_constant and one.name in names)
    constants += tuple(name for name in TRITON_OPTIONS if name in names)
    if not constants:
        raise element.error(f"{entry} has nothing to tune: no tl.constexpr, and no num_warps in the space")
    return LaunchSpec(
        entry=entry,
        grid=_extent(entries["grid"], names),
        block=("32 * num_warps" if "num_warps" in names else "128",),  # Triton's default: 4 warps
        arguments=passed,
        swap=_swap(element, entries, arguments, passed) if "swap" in entries else (),
        constants=constants,
        **_attributes(entries, names),
    )


def _passed(entries: Mapping[str, Element], arguments: Mapping[str, ArgumentSpec]) -> tuple[str, ...]:
    """The names of the arguments of a launch."""
    passed = tuple(item.shown if item.is_scalar else item.text() for item in entries["arguments"].items())
    for item, name in zip(entries["arguments"].items(), passed, strict=True):
        if name not in arguments:
            left = [one for one in arguments if one not in passed]
            mend = f"; did you mean {left[0]}?" if len(left) == 1 else hint(name, arguments)
            if not is_name(name):
                mend = (
                    "; declare {name: a, dtype: float32, value: 1}, for example, in `arguments`, and write a"
                )
            raise item.error(f"no argument is called {name!r}{mend}")
        if arguments[name].symbol:
            raise item.error(f"{name} is copied to {arguments[name].symbol}; a launch does not pass it")
    return passed


def _launch(
    element: Element, arguments: Mapping[str, ArgumentSpec], names: Collection[str], dialect: str
) -> LaunchSpec:
    entries = element.record(
        ("entry", "grid", "block", "arguments"),
        ("swap", "cluster", *_ATTRIBUTES),
        _EXAMPLES | {"arguments": f"[{', '.join(arguments)}]"},
    )
    passed = _passed(entries, arguments)
    return LaunchSpec(
        entry=_entry(entries["entry"]) if dialect == "cuda" else entries["entry"].identifier(),
        grid=_extent(entries["grid"], names),
        block=_extent(entries["block"], names),
        arguments=passed,
        swap=_swap(element, entries, arguments, passed) if "swap" in entries else (),
        cluster=_extent(entries["cluster"], names) if "cluster" in entries else (),
        **_attributes(entries, names),
    )


def _attributes(entries: Mapping[str, Element], names: Collection[str]) -> dict[str, Any]:
    """The expressions of a launch that have a default."""
    return {name: entries[name].expression(names) for name in _ATTRIBUTES if name in entries}


def _swap(
    element: Element,
    entries: Mapping[str, Element],
    arguments: Mapping[str, ArgumentSpec],
    passed: tuple[str, ...],
) -> tuple[str, ...]:
    """The two arrays that every other repetition exchanges."""
    if "repeat" not in entries:
        raise element.error("swap exchanges two arrays in every other repetition: add repeat")
    items = entries["swap"].items()
    names = tuple(item.text() for item in items)
    if len(set(names)) != 2:
        raise entries["swap"].error(f"expected two arrays, found {', '.join(names)}")
    for item, name in zip(items, names, strict=True):
        if name not in passed:
            raise item.error(f"{name!r} is not among the launch's arguments{hint(name, passed)}")
        if arguments[name].role not in ("out", "inout", "scratch"):
            raise item.error(
                f"{name} has the role {arguments[name].role}: only arrays that may be written swap"
            )
    one, other = (arguments[name] for name in names)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        raise entries["swap"].error(f"{one.name} and {other.name} differ in dtype or shape")
    return names


def _entry(element: Element) -> str:
    entry = " ".join(element.text().split())
    if not is_entry(entry):
        raise element.error(
            "expected a kernel's name, with template arguments or argument types where it has them, such as "
            f"sum, ns::sum<float, BLOCK_SIZE> or sum(float *, int); found {entry!r}"
        )
    return entry


def _extent(element: Element, names: Collection[str]) -> tuple[str, ...]:
    extent = tuple(item.expression(names) for item in element.items())
    if len(extent) > 3:
        raise element.error(f"expected at most three dimensions, found {len(extent)}")
    return extent
