"""Read the sections `arguments` and `call` of a space file; no array is created or expression evaluated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from autotune.core.argument_values import ARGUMENT_ROLES
from autotune.core.c_types import (
    C_TYPES,
    FLOAT8,
    POINTER,
    SCALARS,
    element_bytes,
    integer_limits,
    struct_dtype,
    struct_fields,
)
from autotune.core.fills import RANDOM_FILLS
from autotune.core.json_values import is_name
from autotune.core.launch_plan import PYTHON, TRITON, is_entry
from autotune.core.records import ArgumentSpec, CallSpec, Value
from autotune.core.text import hint
from autotune.space.value_advice import fill_advice
from autotune.space.yaml_document import Element

ROLES = tuple(role for role in ARGUMENT_ROLES if role not in ("scalar", "view"))
FILLS = (*RANDOM_FILLS, "constant", "sequence", "copy", "transpose", "file")
INPUTS = "inputs"  # the fill of an array that the function `inputs` of the reference file returns
_EXAMPLES = {"name": "x", "dtype": "float32", "shape": "[n]", "role": "out"}  # of required keys
DATA = "{data}"  # stands for the name of the content in the name of a file
_MAX_ELEMENTS = 9999  # of an array in a structure


@dataclass(frozen=True)
class Fill:
    """The fill of an array before a run.

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
            argument = _scalar(element, names, arguments, dialect)
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
            "expected an argument of role out or inout, as the result to check; "
            "write `role: out` for what the kernel writes"
        )
    return tuple(arguments.values())


def read_dtype(element: Element, known: Collection[str]) -> str:
    """An element type by numpy's name; the error for a type of C says which one it is."""
    word = element.text()
    if word not in known and SCALARS.get(word) in known:
        raise element.error(f"unknown value {word!r}; did you mean {SCALARS[word]}?")
    return element.choice(known)


def _scalar(
    element: Element, names: Collection[str], earlier: Mapping[str, FilledArgument], dialect: str
) -> FilledArgument:
    entries = element.record(("name", _type_key(element), "value"), (), _EXAMPLES)
    dtype = _element_type(entries, (POINTER,) if dialect in ("cuda", PYTHON) else ())
    if "fields" in entries:
        value = _read_struct_value(entries["value"], dtype, names, earlier)
    else:
        value = entries["value"].expression(names)
    return FilledArgument(name=entries["name"].identifier(), dtype=dtype, role="scalar", value=value)


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


def _element_type(entries: Mapping[str, Element], others: Sequence[str] = ()) -> str:
    """A type, or the fields of a structure, which may have other types as well."""
    if "fields" in entries:
        return _read_fields(entries["fields"], (*C_TYPES, *others))
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
    low, high = (item.integer() if kind == "integers" else item.number() for item in items)
    if kind in ("integers", "uniform") and low > high:
        raise content.error(f"expected the lower number first, found [{low}, {high}]")
    if kind == "normal" and high < 0:
        raise items[1].error(f"expected a deviation of at least 0, found {high}")
    return Fill(kind, (low, high))


def _check_fill(
    element: Element, argument: FilledArgument, dtypes: Sequence[str], earlier: Mapping[str, FilledArgument]
) -> None:
    """Refuse a copy of an array that does not match, and integers that the element type cannot hold."""
    assert argument.fill is not None
    kind, numbers = argument.fill.kind, argument.fill.arguments
    if struct_fields(argument.dtype) and kind in (*RANDOM_FILLS, "sequence"):
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


def _read_fields(element: Element, known: Sequence[str]) -> str:
    """The element type of a structure: names to types, or to a type and a number of elements."""
    fields = []
    for name, entry in element.mapping().items():
        if not is_name(name):
            raise entry.error(f"expected a name of letters, digits and underscores, found {name!r}")
        kind, *count = entry.items() if entry.is_list else [entry]
        if len(count) > 1:
            raise entry.error("expected a type, or a type and a number of elements, such as [float32, 3]")
        number = count[0].integer() if count else 0
        if count and not 1 <= number <= _MAX_ELEMENTS:
            raise count[0].error(f"expected a whole number from 1 to {_MAX_ELEMENTS}, found {number}")
        if POINTER not in known and kind.shown == POINTER:
            raise kind.error(
                "only a structure that is passed by value to a kernel of dialect cuda has pointers: OpenCL "
                "and Triton take none in structures, and nothing fills those of an array"
            )
        fields.append((name, kind.choice(known), number))
    return struct_dtype(fields)


def _read_struct_value(
    element: Element, dtype: str, names: Collection[str], earlier: Mapping[str, FilledArgument]
) -> str:
    """The expression of a structure that is passed by value: a list with a value for each field.

    For a pointer it is the name of an array or a view.
    """
    fields = struct_fields(dtype)
    memory = [item.name for item in earlier.values() if item.value is None and item.role != "local"]
    for name, _, count in fields:
        if count:
            raise element.error(f"{name} is an array: a structure that is passed by value has only numbers")
    entries = element.record([name for name, _, _ in fields])
    for name in (name for name, kind, _ in fields if kind == POINTER):
        if (array := entries[name].shown) not in memory:
            raise entries[name].error(
                f"expected an earlier array or view, found {array!r}{hint(array, memory)}"
            )
    values = [
        repr(entries[name].shown) if kind == POINTER else f"({entries[name].expression(names)})"
        for name, kind, _ in fields
    ]
    return f"({', '.join(values)},)"


def read_call(section: Element, arguments: Sequence[FilledArgument], dtypes: Sequence[str]) -> CallSpec:
    """Read which arrays a caller passes and gets; the fills say how the others start. Raises SpaceError."""
    entries = section.record(("inputs", "returns"))
    inputs = _arrays_named(entries["inputs"], arguments, ("in", "inout"))
    returns = _arrays_named(entries["returns"], arguments, ("out", "inout"))
    updated = [item.name for item in arguments if item.role == "inout" and item.name in returns]
    if missing := [name for name in updated if name not in inputs]:
        raise entries["returns"].error(
            f"{missing[0]} is inout: a call returns it where it is among the inputs, too"
        )
    copies: dict[str, str] = {}
    kept: dict[str, int | float] = {}
    for argument in arguments:
        if argument.fill is None or argument.name in inputs:
            continue
        start = argument.fill.arguments[0] if argument.fill.arguments else None
        if argument.role == "inout" and argument.fill.kind == "copy" and start in inputs:
            copies[argument.name] = str(start)
        elif argument.role == "inout" and argument.fill.kind == "constant" and isinstance(start, int | float):
            kept[argument.name] = start
            types = dtypes if argument.dtype == "DTYPE" else (argument.dtype,)
            if start != 0 and any(element_bytes(dtype) > 4 for dtype in types):
                raise section.error(f"{argument.name} starts as {start}: types of 64 bits start as 0 only")
        else:
            raise section.error(
                f"nothing sets {argument.name}: add it to inputs, or make it inout with a fill that is a "
                "constant or a copy of an input"
            )
    return CallSpec(inputs, returns, copies, kept)


def _arrays_named(
    element: Element, arguments: Sequence[FilledArgument], roles: tuple[str, ...]
) -> tuple[str, ...]:
    """One name or several; their arrays have one of the roles."""
    roles_of = {argument.name: argument.role for argument in arguments}
    suitable = [name for name, role in roles_of.items() if role in roles]
    names: list[str] = []
    for item in element.items() if element.is_list else [element]:
        name = item.text()
        if name not in suitable or name in names:
            known = f", of role {roles_of[name]}" if name in roles_of else hint(name, suitable)
            raise item.error(f"expected an array of role {' or '.join(roles)}, once; found {name!r}{known}")
        names.append(name)
    return tuple(names)
