"""What is known of the names that a C preprocessor replaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from autotune.sources.bare_code import WORD

_DEFINITION = re.compile(r"(\w+)(?:\(([^)]*)\)|(\(?))(.*)")
# Macros of compilers and systems that no kernel is compiled with here; any other name may be defined.
_NEVER = re.compile(
    r"__HIP\w*|__SYCL\w*|SYCL_\w+|__METAL\w*|_WIN(?:32|64)|_MSC_VER|__APPLE__|__MINGW\w*|__CYGWIN__"
)


@dataclass(frozen=True)
class Macro:
    """What is known of a name."""

    bodies: tuple[str, ...] = ()  # what the text may have defined it as
    is_given: bool = False  # it may still have the value that it is given from outside
    may_be_undefined: bool = False  # it may not be defined at all
    has_arguments: bool = False  # it is called like a function
    parameters: tuple[str, ...] = ()  # the names of its arguments

    @property
    def is_sure(self) -> bool:
        """Whether the name stands for one text."""
        return len(self.bodies) == 1 and not (self.is_given or self.may_be_undefined)


GIVEN = Macro(is_given=True)
_PERHAPS = Macro(is_given=True, may_be_undefined=True)
UNDEFINED = Macro(may_be_undefined=True)


class MacroTable(dict[str, Macro]):
    """What is known of names; with `is_whole`, no other name is defined."""

    def __init__(self, macros: Mapping[str, Macro], *, is_whole: bool) -> None:
        super().__init__(macros)
        self.is_whole = is_whole

    def known(self, name: str) -> Macro:
        """What is known of a name, which a compiler may define."""
        is_undefined = self.is_whole or _NEVER.fullmatch(name)
        return self.get(name) or (UNDEFINED if is_undefined else _PERHAPS)

    def follow(self, directive: str, rest: str, *, is_certain: bool) -> None:
        """Take over a `#define` or an `#undef`, which may be one that is not compiled."""
        if directive == "define" and (defined := definition(rest)):
            name, macro = defined
            if not is_certain:
                before = self.get(name, _PERHAPS)
                has_arguments = before.has_arguments or macro.has_arguments
                macro = replace(before, bodies=before.bodies + macro.bodies, has_arguments=has_arguments)
            self[name] = macro
        elif directive == "undef" and (word := re.match(r"[A-Za-z_]\w*", rest)):
            before = self.get(word[0], _PERHAPS)
            self[word[0]] = UNDEFINED if is_certain else replace(before, may_be_undefined=True)


def definition(rest: str) -> tuple[str, Macro] | None:
    """The name that stands behind `#define`, and what it stands for; None where there is none."""
    match = _DEFINITION.match(rest)
    if match is None:
        return None
    name, parameters, bracket, body = match.groups()
    names = tuple(part.strip() for part in (parameters or "").split(",") if part.strip())
    has_arguments = parameters is not None or bool(bracket)
    return name, Macro((body.strip(),), has_arguments=has_arguments, parameters=names)


def words_behind(names: Iterable[str], macros: Mapping[str, Macro]) -> set[str]:
    """Names, and the words of what they stand for."""
    words: set[str] = set()
    fresh = {*names}
    while fresh:
        words |= fresh
        bodies = (body for name in fresh if name in macros for body in macros[name].bodies)
        fresh = {word for body in bodies for word in WORD.findall(body)} - words
    return words
