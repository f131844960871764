"""Read the parameters of a space file: their values, and when they matter."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from autotune.core.expressions import parse
from autotune.core.json_values import is_name, is_word
from autotune.core.launch_plan import DTYPE_MACROS, RESERVED_NAMES, macro_name
from autotune.core.records import Parameter, Value
from autotune.core.syntax import parse_expression
from autotune.core.text import hint
from autotune.space.value_advice import series_advice
from autotune.space.yaml_document import Element, not_a_name


def new_name(entry: Element, name: str, taken: Collection[str]) -> str:
    """Check the name of a new size, parameter or derived name."""
    if not is_name(name):
        raise entry.error(not_a_name(name))
    if name in RESERVED_NAMES:
        raise entry.error(f"the name {name!r} is reserved; choose another")
    if name in taken:
        raise entry.error(
            f"the name {name!r} is already taken by a size, parameter or derived name; choose another"
        )
    return name


def read_parameters(
    element: Element, taken: Collection[str], expected: Iterable[str] = ()
) -> tuple[Parameter, ...]:
    """The parameters in the order of the file; none may have a name that is in `taken`.

    `expected` are those that the default names.
    """
    entries = element.mapping(expected=expected)
    entries = {name: entry if entry.is_list else _values_element(entry) for name, entry in entries.items()}
    parameters = tuple(
        Parameter(new_name(entry, name, taken), _domain(entry)) for name, entry in entries.items()
    )
    macros = set(DTYPE_MACROS)
    for macro, entry in _macro_names(parameters, entries):
        if macro in macros:
            raise entry.error(f"the macro {macro} would be defined twice; rename the parameter or the value")
        macros.add(macro)
    return parameters


def _values_element(element: Element) -> Element:
    """The element with a parameter's values, which may stand alone or with a condition."""
    if element.is_scalar:
        return element
    if element.is_set:
        raise element.error(f"expected a list of values, found {{ }}; write [{element.shown.strip('{} ')}]")
    return element.record(("values",), ("when",))["values"]


def read_conditions(element: Element, names: Collection[str]) -> dict[str, Element]:
    """When a parameter matters, for each that has such a condition; conditions may read `names`."""
    conditions = {}
    for name, entry in element.mapping().items():
        if entry.is_scalar or entry.is_list or "when" not in (keys := entry.mapping()):
            continue
        when = keys["when"]
        if name in parse(when.expression(names)).names:
            raise when.error(f"{name} cannot depend on itself")
        conditions[name] = when
    return conditions


def _macro_names(
    parameters: Iterable[Parameter], entries: Mapping[str, Element]
) -> Iterable[tuple[str, Element]]:
    for parameter in parameters:
        yield parameter.name, entries[parameter.name]
        if isinstance(parameter.values[0], str):
            for value, item in zip(parameter.values, entries[parameter.name].items(), strict=True):
                yield macro_name(parameter.name, str(value)), item


def _domain(element: Element) -> tuple[Value, ...]:
    """The values of a parameter: only names, or only numbers and booleans. 1, 1.0 and true are one value.

    Whole numbers may be a `range(32, 513, 32)`, or `powers_of_two(32, 1024)` with both ends.
    """
    if element.is_scalar:
        return _series(element)
    values: list[Value] = []
    seen: set[Value] = set()
    for item in element.items():
        value = item.value()
        if isinstance(value, str) and value.startswith(("range(", "powers_of_two(")):
            whole = ", ".join(str(item.value()) for item in element.items())
            mend = f"write {whole} without [ ]" if whole.startswith(value) else "write its numbers one by one"
            raise item.error(f"a series is not an entry of a list; {mend}")
        if isinstance(value, str) and not is_word(value):
            raise item.error(f"expected a name of letters, digits and underscores, found {value!r}")
        if values and isinstance(value, str) != isinstance(values[0], str):
            raise item.error(
                f"expected only names or only numbers, found {values[0]!r} and {value!r}; remove "
                f"{value!r}, or write a {'number' if isinstance(value, str) else 'name'} for it"
            )
        if value in seen:
            raise item.error(f"the value {value!r} appears twice; remove one")
        values.append(value)
        seen.add(value)
    if all(isinstance(value, str) and value.isdecimal() for value in values):
        listed = ", ".join(map(str, values))
        raise element.error(f"a number in quotes is a name; write [{listed}] without quotes")
    return tuple(values)


def unlisted_value(text: str, parameters: Iterable[Parameter]) -> str:
    """A value that an expression compares a parameter with in vain, as the end of a message; else empty."""
    domains = {parameter.name: parameter.values for parameter in parameters}
    for node in ast.walk(parse_expression(text)):
        match node:
            case ast.Compare(ast.Name(name), [ast.Eq() | ast.NotEq()], [ast.Constant(value)]):
                listed = domains.get(name, (value,))
                if value not in listed and (isinstance(value, str) or isinstance(listed[0], str)):
                    return f"; {name} is never {value!r}{hint(str(value), map(str, listed))}"
    return ""


_SERIES = re.compile(r"(range|powers_of_two)\((-?\d{1,9}), *(-?\d{1,9})(?:, *(-?\d{1,9}))?\)")
MAX_VALUES = 10_000  # of one parameter that is given as a series


def _series(element: Element) -> tuple[Value, ...]:
    """The whole numbers of a series."""
    text = str(element.value("a list of values, such as [32, 64, 128]"))
    series = _SERIES.fullmatch(text.strip())
    if series is None or (series[1] == "powers_of_two" and series[4]):
        mend = series_advice(text.strip(), is_quoted=bool(element.node.style))  # type: ignore[attr-defined]
        raise element.error(
            "expected a list of values, range(FIRST, END, STEP) or powers_of_two(FIRST, LAST), "
            f"found {text!r}{mend}"
        )
    first, last, step = int(series[2]), int(series[3]), int(series[4] or 1)
    numbers: Sequence[int] = range(first, last, step) if step else ()
    if series[1] == "powers_of_two":
        numbers = [2**power for power in range(31) if first <= 2**power <= last]
    if not 0 < len(numbers) <= MAX_VALUES:
        raise element.error(f"expected 1 to {MAX_VALUES:,} values, {text} has {len(numbers):,}")
    return tuple(numbers)
