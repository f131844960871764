"""Find a function object for a type that a template takes and whose values its kernel calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from autotune.core.brackets import closing, split_arguments
from autotune.scaffold.macros import WORD
from autotune.scaffold.types import KnownTypes

_STRUCTURE = re.compile(r"(?:\btemplate\s*<([^<>]*)>\s*)?\b(?:struct|class)\s+(\w+)[^;{}()]*\{")
_TYPE_WORDS = ("typename", "class")


def called_member(parameter: str, arguments: Sequence[str], body: str) -> str:
    """The member function that a kernel calls of a type that its template takes; empty if it calls none.

    Args:
        parameter: The type's name in the template.
        arguments: The declarations of the kernel's arguments.
        body: The kernel's body.
    """
    declared = [words[-1] for words in map(WORD.findall, arguments) if parameter in words[:-1]]
    declared += re.findall(rf"\b{parameter}\s+(\w+)\s*(?:\{{\s*\}})?;", body)
    values = "|".join((rf"{parameter}\s*(?:\(\s*\)|\{{\s*\}})", *declared))
    if re.search(rf"(?<![\w.>])(?:{values})\s*\(", body):
        return "operator()"
    member = re.search(rf"(?<![\w.>])(?:{parameter}\s*::\s*|(?:{values})\s*\.\s*)(\w+)\s*\(", body)
    return member[1] if member else ""


def function_object(member: str, types: KnownTypes, named: Collection[str]) -> str:
    """A structure of a source that has a member function, as an instance takes it; empty without one.

    The first that the host names in its launches, `named`, else the first.
    """
    found = dict(_structures_with(member, types))
    return next((text for name, text in found.items() if name in named), next(iter(found.values()), ""))


def _structures_with(member: str, types: KnownTypes) -> Iterator[tuple[str, str]]:
    """The structures that have a member function: their names, and as an instance takes them."""
    name = r"operator\s*\(\s*\)" if member == "operator()" else rf"\b{member}"
    for match in _STRUCTURE.finditer(types.code):
        inside = types.code[match.end() : closing(types.code, match.end() - 1)]
        parameters = [WORD.findall(part) for part in split_arguments(match[1] or "")]
        if re.search(rf"{name}\s*\(", inside) and all(words[0] in _TYPE_WORDS for words in parameters):
            given = ", ".join(types.generic for _ in parameters)
            yield match[2], f"{match[2]}<{given}>" if given else match[2]
