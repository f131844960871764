"""Read the parameters of the template that a kernel is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.core.brackets import split_arguments
from autotune.core.c_types import SCALARS
from autotune.errors import InputError
from autotune.scaffold.function_objects import called_member, function_object
from autotune.scaffold.host_launches import HostLaunch
from autotune.scaffold.macros import WORD
from autotune.scaffold.types import KnownTypes

_NAMED_ENUM = re.compile(r"\benum\s+(?:(?:class|struct)\s+)?(\w+)[^;{]*\{([^}]*)\}")
_WHOLE_NAME = re.compile(r"(?i).*(?:int|ind(?:ex|ices)|idx|offset|count)")
_VECTOR_NAME = re.compile(r"(?i)vec|[a-z][234]$")


@dataclass(frozen=True)
class TemplateParameter:
    """One parameter of a template: of kind type, bool or number, with its default or nothing.

    `given` is what an instance gets: DTYPE or a type, else the parameter's own name. `choices` are the
    constants of an enumeration by their numbers.
    """

    name: str
    kind: str
    default: str
    given: str
    choices: Mapping[int, str]


def read_template(
    place: str, before: str, launches: Sequence[HostLaunch], types: KnownTypes
) -> tuple[TemplateParameter, ...]:
    """The parameters of the template that a kernel is; none for a function."""
    match = re.search(r"\btemplate\s*<([^;{}]*)>[^;{}<>]*$", before)
    if match is None:
        return ()
    found = []
    enums = dict(_NAMED_ENUM.findall(types.code))
    used = next((launch.template for launch in launches if launch.template), ())
    for number, part in enumerate(split_arguments(match[1])):
        declared, _, default = part.partition("=")
        words = WORD.findall(declared)
        if "::" in declared and default:  # a choice of a library, which the compiler makes
            break
        if "..." in declared or len(words) < 2 or "<" in declared:
            raise InputError(
                f"{place} is a template, and nothing can be guessed for its parameter {part!r}; name an "
                'instance in the space\'s launch plan: entry: "name<...>"'
            )
        kind = "type" if words[0] in ("typename", "class") else "bool" if "bool" in words else "number"
        value = used[number] if number < len(used) else ""
        given = _type_given(words[-1], value, types.generic) if kind == "type" else words[-1]
        if choices := _constants(enums.get(words[0], "")):
            given = f"({words[0]}){words[-1]}"
        known = value if value.isdigit() or value in ("true", "false") else default.strip()
        found.append(TemplateParameter(words[-1], kind, known, given, choices))
    return tuple(found)


def _constants(enumeration: str) -> Mapping[int, str]:
    """The constants of an enumeration by their numbers."""
    found: dict[int, str] = {}
    number = -1
    for name, _, value in (part.partition("=") for part in enumeration.split(",") if part.strip()):
        number = int(value) if value.strip().isdigit() else number + 1
        found.setdefault(number, name.strip())
    return found


def _type_given(name: str, value: str, generic: str) -> str:
    """The type that an instance takes: that of the host if it is a vector or integer, else `generic`.

    A type that is called like an index holds whole numbers.
    """
    if _VECTOR_NAME.search(value or name):
        return value or "float4"
    if value not in SCALARS and _WHOLE_NAME.match(name):
        return "int"
    return value if value in SCALARS and value not in ("float", "double") else generic


def with_function_objects(
    place: str,
    template: Sequence[TemplateParameter],
    arguments: Sequence[str],
    body: str,
    launches: Sequence[HostLaunch],
    types: KnownTypes,
) -> tuple[TemplateParameter, ...]:
    """The same parameters with a structure of the source for each type whose values the kernel calls.

    Raises InputError where the source has none for an argument.
    """
    found = []
    texts = [text for launch in launches for text in (*launch.template, *launch.arguments)]
    named = {word for text in texts for word in WORD.findall(text)}
    for item in template:
        member = called_member(item.name, arguments, body) if item.kind == "type" else ""
        given = function_object(member, types, named) if member else ""
        values = [words[-1] for words in map(WORD.findall, arguments) if item.name in words[:-1]]
        if member == "operator()" and values and not given:
            raise InputError(
                f"{place}: {values[0]} is a function, and autotune passes arrays and numbers only; write a "
                f"kernel that takes the rest and creates it: `const {item.name} {values[0]};` in its body"
            )
        found.append(replace(item, given=given) if given else item)
    return tuple(found)
