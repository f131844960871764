"""Follow the conditions of the C preprocessor as far as a text decides them.

What compilers define is not known here. So a line is compiled for certain, perhaps or never; and a name is
defined by the text, perhaps, or as something that is given from outside. A reader that knows every value says
so with a table of macros in which nothing else is defined: then each condition holds or does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from autotune.errors import InputError
from autotune.sources.bare_code import WORD, without_comments
from autotune.sources.macros import GIVEN, MacroTable

DIRECTIVE = re.compile(r"[ \t]*(?:#|%:|\?\?=)[ \t]*(\w+)\b[ \t]*(.*)")
DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_SPELT = {  # operators of C++ in words
    **{"and": "&&", "or": "||", "not": "!", "not_eq": "!="},
    **{"bitand": "&", "bitor": "|", "xor": "^", "compl": "~"},
}
_IN_WORDS = re.compile(rf"\b(?:{'|'.join(_SPELT)})\b")
_MAX_TOKENS = 4096  # of a condition with its macros written out


@dataclass(frozen=True)
class IfCondition:
    """The branch of a condition that is being read; None for what is not known."""

    directive: str  # the one that begins the branch
    rest: str  # what follows it
    outer: IfCondition | None  # the branch that it is in
    is_within: bool | None  # the conditions around it hold
    holds: bool | None  # its own condition does
    earlier: bool | None = False  # that of an earlier branch does
    before: IfCondition | None = None  # the branch before it, for `#elif` and `#else`

    @property
    def state(self) -> bool | None:
        """Whether the branch is compiled."""
        states = (self.is_within, self.holds, None if self.earlier is None else not self.earlier)
        return False if False in states else None if None in states else True

    @property
    def is_chosen(self) -> bool | None:
        """Whether this branch or an earlier one is the one that is compiled."""
        states = (self.holds, self.earlier)
        return True if True in states else None if None in states else False


class SourceLine(NamedTuple):
    """A line that may be compiled: `directive` is empty for code, whose text is `rest`."""

    directive: str
    rest: str
    is_certain: bool
    macros: MacroTable  # before the line; changes as the reading goes on
    place: int  # where `rest` begins in the text
    condition: IfCondition | None  # the innermost around it

    @property
    def guard(self) -> str:
        """The name of the `#ifndef`, or of what amounts to it, that is the innermost condition."""
        around = self.condition
        return "" if around is None else condition_guard(around.directive, around.rest)


def compiled_lines(
    text: str, given: Collection[str] | MacroTable = (), within: IfCondition | None = None
) -> Iterator[SourceLine]:
    """The lines of a source that are compiled, certainly or perhaps, without comments.

    Args:
        text: The source, with its includes resolved.
        given: Names that are macros with a value from outside, or a table, which follows the lines.
        within: The condition around the text, where another one includes it.
    """
    macros = (
        given if isinstance(given, MacroTable) else MacroTable(dict.fromkeys(given, GIVEN), is_whole=False)
    )
    around = within
    end = -1
    for line in without_comments(text).split("\n"):
        begin, end = end + 1, end + 1 + len(line)
        state = around.state if around else True
        directive = DIRECTIVE.match(line)
        name, rest = directive.groups() if directive else ("", line)
        if name in ("if", "elif"):
            rest = _IN_WORDS.sub(lambda word: _SPELT[word[0]], rest)
        read = SourceLine(
            name, rest, state is True, macros, begin + (directive.start(2) if directive else 0), around
        )
        if name in ("if", "ifdef", "ifndef"):
            if state is not False:
                yield read
            holds = False if state is False else _holds(name, rest, macros)
            around = IfCondition(name, rest, around, state, holds)
        elif name in ("elif", "elifdef", "elifndef", "else") and around and around is not within:
            if not around.is_chosen and around.is_within is not False:
                yield read
            holds = True if name == "else" else _holds(name[2:], rest, macros)
            around = IfCondition(name, rest, around.outer, around.is_within, holds, around.is_chosen, around)
        elif name == "endif":
            around = around.outer if around and around is not within else around
        elif state is not False:
            yield read
            if name:
                macros.follow(name, rest, is_certain=state is True)


def condition_guard(directive: str, rest: str) -> str:
    """The name that a condition asks not to be defined, and nothing else; else empty."""
    if directive == "ifndef":
        match = WORD.match(rest)
    else:
        negated = re.fullmatch(r"!\s*(defined.*)", rest.strip()) if directive == "if" else None
        match = DEFINED.fullmatch(negated[1].strip()) if negated else None
    return "" if match is None else match[0] if directive == "ifndef" else match[1] or match[2]


def _is_defined(name: str, macros: MacroTable) -> bool | None:
    macro = macros.known(name)
    if not macro.may_be_undefined:
        return True
    return None if macro.bodies or macro.is_given else False


def _holds(kind: str, rest: str, macros: MacroTable) -> bool | None:
    """Whether a condition holds; None if it depends on what is not known."""
    holds = _decided(kind, rest, macros)
    return False if holds is None and macros.is_whole else holds


def _decided(kind: str, rest: str, macros: MacroTable) -> bool | None:
    if kind != "if":
        word = WORD.match(rest)
        is_defined = _is_defined(word[0], macros) if word else None
        return is_defined if is_defined is None or kind.endswith("ifdef") or kind == "def" else not is_defined

    # few sources that are loaded need a parser, whose import takes longer than reading them
    from autotune.sources.expansion import TOKEN, UnclosedCall, expanded
    from autotune.sources.statements import parsed_expression
    from autotune.sources.whole_numbers import value_of

    def undefined(name: str) -> int | None:
        return 0 if _is_defined(name, macros) is False else None

    asked = DEFINED.sub(lambda is_defined: _answer(_is_defined(is_defined[1] or is_defined[2], macros)), rest)
    try:
        words = expanded(
            ((token[0], 0) for token in TOKEN.finditer(asked)),
            macros,
            is_sure=not macros.is_whole,
            most=_MAX_TOKENS,
        )
        node = parsed_expression("".join(word for word, _ in words))
        value = None if node is None else value_of(node, undefined)
    except (ValueError, UnclosedCall, RecursionError, InputError):  # a compiler tells
        return None
    return None if value is None else bool(value)


def _answer(is_defined: bool | None) -> str:
    return "unknown()" if is_defined is None else str(int(is_defined))


def words_tested(rest: str) -> set[str]:
    """The words of a condition whose value counts, and not only whether they are defined."""
    return set(WORD.findall(DEFINED.sub(" ", rest)))
