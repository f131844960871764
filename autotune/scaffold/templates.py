"""Choose what the template of a kernel gets: types, numbers, and structures of the source that it calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from autotune.core.c_types import SCALARS
from autotune.errors import InputError
from autotune.scaffold.types import KnownTypes
from autotune.sources.bare_code import WORD
from autotune.sources.kernel_source import Function, KernelSource
from autotune.sources.launches import HostLaunch
from autotune.sources.tree import descendants

_WHOLE_NAME = re.compile(r"(?i).*(?:int|ind(?:ex|ices)|idx|offset|count)")
_VECTOR = re.compile(r"[a-z]+[234]")


@dataclass(frozen=True)
class ReadTemplate:
    """One parameter of a template: of kind type, bool or number, with its default or nothing.

    `given` is what an instance gets: DTYPE or a type, else the parameter's own name.
    """

    name: str
    kind: str
    default: str
    given: str


def read_template(
    place: str, function: Function, launches: Sequence[HostLaunch], types: KnownTypes
) -> tuple[ReadTemplate, ...]:
    """The parameters of the template that a kernel is; none for a function or a specialisation."""
    templates = []
    used = next((launch.template for launch in launches if launch.template), ())
    texts = [text for launch in launches for text in launch.template]
    texts += [ast.unparse(argument) for launch in launches for argument in launch.arguments]
    named = {word for text in texts for word in WORD.findall(text)}
    for number, parameter in enumerate(function.template or ()):
        is_choice = "::" in parameter.type or (not parameter.type and "<" in parameter.default)
        if is_choice and parameter.default:  # of a library or of the source, which the compiler makes
            break
        if not (parameter.is_plain and parameter.name) or "<" in parameter.type:
            raise InputError(
                f"{place} is a template, and nothing can be guessed for its parameter {parameter.text!r}; "
                'name an instance in the space\'s launch plan: entry: "name<...>"'
            )
        declared = types.source.types
        name = parameter.type.rpartition("::")[2]
        is_enumeration = name in declared.enumerations  # which changes the result, so it is no parameter
        is_fixed = is_enumeration or not parameter.type
        kind = "type" if is_fixed else "bool" if "bool" in parameter.type.split() else "number"
        value = used[number] if number < len(used) else ""
        given = parameter.name
        if is_enumeration:
            is_known = not declared.enumerators.isdisjoint(WORD.findall(value))
            given = value if is_known else _first_named(parameter.type, types.source)
        elif kind == "type":
            given = _function_object(place, parameter.name, function, types, named)
            given = given or _type_given(parameter.name, value, types)
        known = value if value.isdigit() or value in ("true", "false") else parameter.default
        templates.append(ReadTemplate(parameter.name, kind, known, given))
    return tuple(templates)


def _first_named(enumeration: str, source: KernelSource) -> str:
    """The value of an enumeration that a source names first; the first of all if it names none."""
    named = (node for node in descendants(source.tree.root) if node.type == "qualified_identifier")
    texts = (text for text in map(source.tree.of, named) if text.startswith(f"{enumeration}::"))
    return next(texts, f"({enumeration})0")


def _type_given(name: str, value: str, types: KnownTypes) -> str:
    """The type that an instance takes: that of the host if it is a vector or integer, else the generic one.

    A type whose members are used is a vector, and one that is called like an index holds whole numbers.
    """
    if _VECTOR.fullmatch(value):
        return value
    if width := types.elements(name):
        return f"float{width}"
    if value not in SCALARS and _WHOLE_NAME.match(name):
        return "int"
    return value if value in SCALARS and value not in ("float", "double") else types.generic


def _called_member(parameter: str, function: Function) -> str:
    """The member function that a kernel calls of a type that its template takes; empty if it calls none."""
    values = function.variables_of(parameter)
    for part in function.parts:
        match part:
            case ast.Call(func=ast.Name(id=name)) if name in values:
                return "operator()"
            case ast.Call(func=ast.Call(func=ast.Name(id=name))) if name == parameter:
                return "operator()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=member)):
                if name in values | {parameter}:
                    return member
    return ""


def _function_object(
    place: str, parameter: str, function: Function, types: KnownTypes, named: Collection[str]
) -> str:
    """The structure of the source that stands for a type whose values a kernel calls; empty for other types.

    The first that has the member function and that the host names in its launches, `named`, else the first.
    Raises InputError where an argument has to be one, and the source has none.
    """
    member = _called_member(parameter, function)
    if not member:
        return ""
    objects = {}
    for name, structure in types.source.types.structures.items():
        words = [text.split()[0] for text in structure.template]
        if member in structure.members and all(word in ("typename", "class") for word in words):
            given = ", ".join(types.generic for _ in words)
            objects[name] = f"{name}<{given}>" if given else name
    values = [structure.name for structure in function.parameters if structure.type == parameter]
    if member == "operator()" and values and not objects:
        raise InputError(
            f"{place}: {values[0]} is a function, and the source has no structure that could be passed; "
            f"write one with __device__ operator() above the kernel, and {parameter} stands for it"
        )
    return next((text for name, text in objects.items() if name in named), next(iter(objects.values()), ""))
