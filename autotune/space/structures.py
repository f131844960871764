"""Read structures: `fields` of an argument, and the value of one that is passed by value."""

from __future__ import annotations

from collections.abc import Collection

from autotune.core.c_types import C_TYPES, struct_dtype, struct_fields
from autotune.core.json_values import is_name
from autotune.space.yaml_document import Element

MAX_ELEMENTS = 9999  # of an array in a structure


def read_fields(element: Element) -> str:
    """The element type of a structure: names to types, or to a type and a number of elements."""
    fields = []
    for name, entry in element.mapping().items():
        if not is_name(name):
            raise entry.error(f"expected a name of letters, digits and underscores, found {name!r}")
        kind, *count = entry.items() if entry.is_list else [entry]
        if len(count) > 1:
            raise entry.error("expected a type, or a type and a number of elements, such as [float32, 3]")
        number = count[0].integer() if count else 0
        if count and not 1 <= number <= MAX_ELEMENTS:
            raise count[0].error(f"expected a whole number from 1 to {MAX_ELEMENTS}, found {number}")
        fields.append((name, kind.choice(C_TYPES), number))
    return struct_dtype(fields)


def read_struct_value(element: Element, dtype: str, names: Collection[str]) -> str:
    """The expression of a structure that is passed by value: a list with a value for each field."""
    fields = struct_fields(dtype)
    for name, _, count in fields:
        if count:
            raise element.error(f"{name} is an array: a structure that is passed by value has only numbers")
    entries = element.record([name for name, _, _ in fields])
    values = [f"({entries[name].expression(names)})" for name, _, _ in fields]
    return f"({', '.join(values)},)"
