"""Follow the conditions of the C preprocessor as far as a text decides them.

Values of parameters and what compilers define are not known here. So a line is compiled for certain, perhaps
or never; and a name is defined by the text, perhaps, or as something that is given from outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from operator import add, and_, eq, ge, gt, le, lshift, lt, mul, ne, or_, rshift, sub, xor
from typing import NamedTuple

from autotune.core.frozen import dataclass

_COMMENT_OR_STRING = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_DIRECTIVE = re.compile(r"[ \t]*(?:#|%:|\?\?=)[ \t]*(\w+)\b[ \t]*(.*)")
_DEFINITION = re.compile(r"(\w+)(\(?)(.*)")
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b|([A-Za-z_]\w*)|(\|\||&&|[=!<>]=|<<|>>|[-+*/%<>&^|~!?:()]))"
)
# Macros of compilers and systems that no kernel is compiled with here; any other name may be defined.
_NEVER = re.compile(
    r"__HIP\w*|__SYCL\w*|SYCL_\w+|__METAL\w*|_WIN(?:32|64)|_MSC_VER|__APPLE__|__MINGW\w*|__CYGWIN__"
)
_MAX_TOKENS = 4096  # of a condition with its macros written out
_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    **{"|": or_, "^": xor, "&": and_, "==": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge},
    **{"<<": lshift, ">>": rshift, "+": add, "-": sub, "*": mul},
}
_PRECEDENCE = {
    operator: level
    for level, operators in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), 1
    )
    for operator in operators.split()
}


@dataclass(frozen=True)
class Macro:
    """What is known of a name.

    Attributes:
        bodies: What the text may have defined it as.
        is_given: Whether it may still have the value that it is given from outside.
        may_be_undefined: Whether it may not be defined at all.
        has_arguments: Whether it is called like a function.
    """

    bodies: tuple[str, ...] = ()
    is_given: bool = False
    may_be_undefined: bool = False
    has_arguments: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether the name stands for one text."""
        return len(self.bodies) == 1 and not (self.is_given or self.may_be_undefined or self.has_arguments)


GIVEN = Macro(is_given=True)
_PERHAPS = Macro(is_given=True, may_be_undefined=True)


class SourceLine(NamedTuple):
    """A line that may be compiled: `directive` is empty for code, whose text is `rest`."""

    directive: str
    rest: str
    is_certain: bool
    macros: Mapping[str, Macro]  # before the line; changes as the reading goes on


def compiled_lines(text: str, given: Collection[str] = ()) -> Iterator[SourceLine]:
    """The lines of a source that are compiled, certainly or perhaps, without comments.

    Args:
        text: The source, with its includes resolved.
        given: Names that are macros with a value from outside.
    """
    macros = dict.fromkeys(given, GIVEN)
    conditions: list[_Condition] = []
    for line in without_comments(text).split("\n"):
        state = conditions[-1].state if conditions else True
        found = _DIRECTIVE.match(line)
        if found is None:
            if state is not False:
                yield SourceLine("", line, state is True, macros)
            continue
        name, rest = found.groups()
        if name in ("if", "ifdef", "ifndef"):
            if state is not False:
                yield SourceLine(name, rest, state is True, macros)
            conditions.append(_Condition(state, False if state is False else _holds(name, rest, macros)))
        elif name in ("elif", "elifdef", "elifndef", "else") and conditions:
            before = conditions[-1]
            if not before.is_chosen and before.outer is not False:
                yield SourceLine(name, rest, state is True, macros)
            conditions[-1] = before.next(True if name == "else" else _holds(name[2:], rest, macros))
        elif name == "endif":
            del conditions[-1:]
        elif state is not False:
            yield SourceLine(name, rest, state is True, macros)
            _define(name, rest, macros, is_certain=state is True)


@dataclass(frozen=True)
class _Condition:
    """The branch of a condition that is being read; None for what is not known.

    Attributes:
        outer: Whether the conditions around it hold.
        holds: Whether its own condition does.
        earlier: Whether that of an earlier branch does.
    """

    outer: bool | None
    holds: bool | None
    earlier: bool | None = False

    @property
    def state(self) -> bool | None:
        """Whether the branch is compiled."""
        states = (self.outer, self.holds, None if self.earlier is None else not self.earlier)
        return False if False in states else None if None in states else True

    @property
    def is_chosen(self) -> bool | None:
        """Whether this branch or an earlier one is the one that is compiled."""
        states = (self.holds, self.earlier)
        return True if True in states else None if None in states else False

    def next(self, holds: bool | None) -> _Condition:
        """The branch after this one."""
        return _Condition(self.outer, holds, self.is_chosen)


def without_comments(text: str) -> str:
    """A source in C with continued lines joined and without comments; strings stay."""
    return _COMMENT_OR_STRING.sub(
        lambda match: match[0] if match[0][0] in "\"'" else " " + "\n" * match[0].count("\n"),
        text.replace("\\\n", " "),
    )


def _define(directive: str, rest: str, macros: dict[str, Macro], *, is_certain: bool) -> None:
    """Take over a `#define` or an `#undef`."""
    found = _DEFINITION.match(rest)
    if found is None or directive not in ("define", "undef"):
        return
    name, bracket, body = found.groups()
    before = macros.get(name, _PERHAPS)
    if directive == "undef":
        macros[name] = Macro(may_be_undefined=True) if is_certain else replace(before, may_be_undefined=True)
    elif is_certain:
        macros[name] = Macro((body.strip(),), has_arguments=bool(bracket))
    else:
        bodies, has_arguments = (*before.bodies, body.strip()), before.has_arguments or bool(bracket)
        macros[name] = replace(before, bodies=bodies, has_arguments=has_arguments)


def known(name: str, macros: Mapping[str, Macro]) -> Macro:
    """What is known of a name, which a compiler may define."""
    undefined = Macro(may_be_undefined=True)
    return macros.get(name) or (undefined if _NEVER.fullmatch(name) else _PERHAPS)


def _is_defined(name: str, macros: Mapping[str, Macro]) -> bool | None:
    macro = known(name, macros)
    if not macro.may_be_undefined:
        return True
    return None if macro.bodies or macro.is_given else False


def _holds(kind: str, rest: str, macros: Mapping[str, Macro]) -> bool | None:
    """Whether a condition holds; None if it depends on what is not known."""
    if kind != "if":
        word = _WORD.match(rest)
        found = _is_defined(word[0], macros) if word else None
        return found if found is None or kind.endswith("ifdef") or kind == "def" else not found
    try:
        value = _Value(_written_out(_tokens(rest), macros), macros).of()
    except (ValueError, IndexError, RecursionError, OverflowError, ZeroDivisionError):  # a compiler tells
        return None
    return None if value is None else bool(value)


def words_tested(rest: str) -> set[str]:
    """The words of a condition whose value counts, and not only whether they are defined."""
    return set(_WORD.findall(re.sub(r"\bdefined\s*(?:\(\s*\w*\s*\)|\w+)", " ", rest)))


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(text)
        found.append(match[1] or match[2] or match[3])
        place = match.end()
    return found


def _written_out(
    tokens: list[str], macros: Mapping[str, Macro], inside: frozenset[str] = frozenset()
) -> list[str]:
    """The tokens of a condition with what its macros stand for, as far as that is one text."""
    found: list[str] = []
    for token in tokens:
        macro = None if token in inside else macros.get(token)
        if found[-1:] == ["defined"] or found[-2:] == ["defined", "("] or macro is None or not macro.is_sure:
            found.append(token)
        else:
            found += _written_out(_tokens(macro.bodies[0]), macros, inside | {token})
        if len(found) > _MAX_TOKENS:
            raise ValueError("too long")
    return found


class _Value:
    """Evaluates the tokens of a condition; None stands for a number that is not known."""

    def __init__(self, tokens: list[str], macros: Mapping[str, Macro]) -> None:
        self._tokens, self._macros = tokens[::-1], macros

    def of(self) -> int | None:
        """The value; raises ValueError or IndexError for what is no expression."""
        value = self._choice()
        if self._tokens:
            raise ValueError(self._tokens)
        return value

    def _choice(self) -> int | None:
        """A value, or one of the two of `A ? B : C`."""
        test = self._binary(1)
        if self._next() != "?":
            return test
        self._tokens.pop()
        first = self._choice()
        if self._tokens.pop() != ":":
            raise ValueError("?")
        second = self._choice()
        return (first if first == second else None) if test is None else first if test else second

    def _binary(self, level: int) -> int | None:
        left = self._unary()
        while (rank := _PRECEDENCE.get(self._next(), 0)) >= level:
            operator = self._tokens.pop()
            left = _result(operator, left, self._binary(rank + 1))
        return left

    def _unary(self) -> int | None:
        token = self._tokens.pop()
        if token == "(":
            value = self._choice()
            if self._tokens.pop() != ")":
                raise ValueError("(")
            return value
        if token in ("!", "-", "+", "~"):
            value = self._unary()
            if value is None:
                return None
            return {"!": int(not value), "-": -value, "+": value, "~": ~value}[token]
        if token == "defined":
            has_bracket = self._next() == "("
            name = [self._tokens.pop() for _ in range(3 if has_bracket else 1)][int(has_bracket)]
            found = _is_defined(name, self._macros)
            return None if found is None else int(found)
        if token[0].isdigit():
            is_octal = token[0] == "0" and token.isdigit()
            return int(token, 8 if is_octal else 0)
        if not _WORD.fullmatch(token) or self._next() == "(":  # a call, such as of __has_include
            raise ValueError(token)
        return 0 if _is_defined(token, self._macros) is False else None

    def _next(self) -> str:
        return self._tokens[-1] if self._tokens else ""


def _result(operator: str, left: int | None, right: int | None) -> int | None:
    """The value of an operator; `&&` and `||` may be decided by one side."""
    if operator in ("&&", "||"):
        decisive = operator == "||"
        sides = [None if side is None else bool(side) for side in (left, right)]
        return int(decisive) if decisive in sides else None if None in sides else int(not decisive)
    if left is None or right is None:
        return None
    if operator in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>") and not 0 <= right < 64:
        return None
    return int(_OPERATORS[operator](left, right))
