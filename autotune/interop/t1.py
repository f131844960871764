"""T1, the auto-tuning community's input format: its configuration space as a space of autotune.

Parameters and conditions are read; the launch is not. Conditions in Python or C become expressions of
autotune, or are refused. Source: the input schema, version 1.0.0, in the kernel_tuner package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from autotune.core import json_values as values
from autotune.core.expressions import parse, unknown_names
from autotune.core.records import Config, Parameter, Value
from autotune.core.syntax import parse_expression
from autotune.errors import ExpressionError, InputError
from autotune.space.recorded import bare_spec
from autotune.space.spec import SpaceSpec


class _Type(NamedTuple):
    """The Python types that values of a type may have, and the one that they become."""

    accepted: tuple[type, ...]
    meant: Callable[[Any], Value] | None = None


_TYPES = {
    "int": _Type((int,)),
    "uint": _Type((int,)),
    "float": _Type((int, float), float),
    "bool": _Type((bool, int), bool),
    "string": _Type((str,)),
}
_MAX_VALUES = 100_000
_WORDS = (
    (r"&&", " and "),
    (r"\|\|", " or "),
    (r"!(?!=)", " not "),
    (r"\btrue\b", "True"),
    (r"\bfalse\b", "False"),
)
_TEXT = re.compile(r"""("[^"]*"|'[^']*')""")


def might_be(text: str) -> bool:
    """Whether a text may be a file of this format; cheap."""
    return '"ConfigurationSpace"' in text


def is_t1(data: Mapping[str, Any]) -> bool:
    """Whether a JSON object looks like a file of this format."""
    return "ConfigurationSpace" in data


def read(data: Mapping[str, Any], path: Path) -> SpaceSpec:
    """Read the parameters and constraints of a file; the default has each parameter's first value.

    Raises InputError naming the parameter or the condition that cannot be translated.
    """
    section = values.mapping(data["ConfigurationSpace"], "ConfigurationSpace")
    rows = values.items(section.get("TuningParameters"), "ConfigurationSpace.TuningParameters")
    parameters = [_parameter(values.mapping(row, "TuningParameters"), path) for row in rows]
    names = values.distinct_names([parameter.name for parameter in parameters], "TuningParameters")
    conditions = [
        _condition(row, names, path) for row in values.items(section.get("Conditions", []), "Conditions")
    ]
    default = Config({parameter.name: parameter.values[0] for parameter in parameters})
    specification = values.mapping(data.get("KernelSpecification", {}), "KernelSpecification")
    kernel = values.text(specification.get("KernelName", path.stem), "KernelSpecification.KernelName")
    return bare_spec(kernel, parameters, default, {}, conditions)


def _parameter(row: Mapping[str, Any], path: Path) -> Parameter:
    name = values.name(row.get("Name"), "TuningParameters.Name")
    kind = values.choice(tuple(_TYPES))(row.get("Type"), f"TuningParameters.{name}.Type")
    accepted, meant = _TYPES[kind]
    text = str(row.get("Values"))
    try:
        found = list(_values(parse_expression(_python(text))))
        found = [values.plain(value, name) for value in found]
    except (SyntaxError, ExpressionError, TypeError, ValueError, RecursionError, MemoryError):
        raise InputError(
            f"{path}: parameter {name}: Values {text[:60]!r} cannot be translated; expected a list such as "
            "[1, 2, 4], range(1, 9) or [32 * i for i in range(1, 33)]"
        ) from None
    if not found or not all(isinstance(value, accepted) for value in found):
        raise InputError(f"{path}: parameter {name}: Values {text[:60]!r}: expected values of type {kind}")
    return Parameter(name, tuple(dict.fromkeys(map(meant, found) if meant else found)))


def _values(node: ast.expr) -> Iterator[Value]:
    """The values of a list, a range, a comprehension, or a sum of these."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            yield from (parse(ast.unparse(element))({}) for element in elements)
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner], keywords=[]):
            yield from _values(inner)
        case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]):
            numbers = range(*(parse(ast.unparse(argument))({}) for argument in arguments))
            if len(numbers) > _MAX_VALUES:
                raise ValueError("too many values")
            yield from numbers
        case ast.ListComp(
            elt=element, generators=[ast.comprehension(target=ast.Name(id=name), iter=items, ifs=[])]
        ):
            each = parse(ast.unparse(element))
            yield from (each({name: item}) for item in _values(items))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _values(left)
            yield from _values(right)
        case _:
            raise ValueError("no list of values")


def _condition(row: object, names: list[str], path: Path) -> str:
    text = values.text(values.mapping(row, "Conditions").get("Expression"), "Conditions.Expression")
    try:
        expression = parse(_python(text))
        if unknown := unknown_names(expression, names):
            raise ExpressionError(f"unknown name {unknown[0]!r}")
    except ExpressionError as error:
        raise InputError(f"{path}: condition {text[:60]!r} cannot be translated: {error}") from None
    return expression.text


def _python(text: str) -> str:
    """Replace C's logical operators and booleans by Python's, outside quoted texts."""
    parts = _TEXT.split(text)
    for pattern, word in _WORDS:
        parts[::2] = [re.sub(pattern, word, part) for part in parts[::2]]
    return " ".join("".join(parts).split())
