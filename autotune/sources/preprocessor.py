"""Follow the conditions of the C preprocessor as far as a text decides them.

What compilers define is not known here. So a line is compiled for certain, perhaps or never; and a name is
defined by the text, perhaps, or as something that is given from outside. A reader that knows every value says
so with a table of macros in which nothing else is defined: then each condition holds or does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from operator import add, and_, eq, ge, gt, le, lshift, lt, mul, ne, or_, rshift, sub, xor
from typing import NamedTuple

from autotune.core.frozen import dataclass
from autotune.sources.expansion import TOKEN, expanded
from autotune.sources.macros import GIVEN, MacroTable

# A comment that is not closed is one, too: so each letter is read once.
COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*(?:.*?\*/|.*)|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""", re.DOTALL
)
DIRECTIVE = re.compile(r"[ \t]*(?:#|%:|\?\?=)[ \t]*(\w+)\b[ \t]*(.*)")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b|([A-Za-z_]\w*)|(\|\||&&|[=!<>]=|<<|>>|[-+*/%<>&^|~!?:()]))"
)
_MAX_TOKENS = 4096  # of a condition with its macros written out
_OPERATORS: dict[str, Callable[[int, int], int]] = {
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


class SourceLine(NamedTuple):
    """A line that may be compiled: `directive` is empty for code, whose text is `rest`."""

    directive: str
    rest: str
    is_certain: bool
    macros: MacroTable  # before the line; changes as the reading goes on
    place: int  # where `rest` begins in the text
    guard: str  # the name of the `#ifndef`, or of what amounts to it, that is the innermost condition


def compiled_lines(text: str, given: Collection[str] | MacroTable = ()) -> Iterator[SourceLine]:
    """The lines of a source that are compiled, certainly or perhaps, without comments.

    Args:
        text: The source, with its includes resolved.
        given: Names that are macros with a value from outside, or a table, which follows the lines.
    """
    macros = (
        given if isinstance(given, MacroTable) else MacroTable(dict.fromkeys(given, GIVEN), is_whole=False)
    )
    conditions: list[_Condition] = []
    end = -1
    for line in without_comments(text).split("\n"):
        begin, end = end + 1, end + 1 + len(line)
        state = conditions[-1].state if conditions else True
        guard = conditions[-1].guard if conditions else ""
        found = DIRECTIVE.match(line)
        if found is None:
            if state is not False:
                yield SourceLine("", line, state is True, macros, begin, guard)
            continue
        name, rest = found.groups()
        place = begin + found.start(2)
        if name in ("if", "ifdef", "ifndef"):
            if state is not False:
                yield SourceLine(name, rest, state is True, macros, place, guard)
            holds = False if state is False else _holds(name, rest, macros)
            conditions.append(_Condition(state, holds, guard=condition_guard(name, rest)))
        elif name in ("elif", "elifdef", "elifndef", "else") and conditions:
            before = conditions[-1]
            if not before.is_chosen and before.outer is not False:
                yield SourceLine(name, rest, state is True, macros, place, guard)
            conditions[-1] = before.next(True if name == "else" else _holds(name[2:], rest, macros))
        elif name == "endif":
            del conditions[-1:]
        elif state is not False:
            yield SourceLine(name, rest, state is True, macros, place, guard)
            macros.follow(name, rest, is_certain=state is True)


@dataclass(frozen=True)
class _Condition:
    """The branch of a condition that is being read; None for what is not known.

    Attributes:
        outer: Whether the conditions around it hold.
        holds: Whether its own condition does.
        earlier: Whether that of an earlier branch does.
        guard: The name that must not be defined for it.
    """

    outer: bool | None
    holds: bool | None
    earlier: bool | None = False
    guard: str = ""

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
    """A source in C with continued lines joined and without comments; strings and all places stay."""
    return COMMENT_OR_STRING.sub(
        lambda match: match[0] if match[0][0] in "\"'" else blank(match[0]), text.replace("\\\n", "  ")
    )


def blank(text: str) -> str:
    """As many spaces as a text has letters, with its line ends."""
    return "\n".join(" " * len(line) for line in text.split("\n"))


def condition_guard(directive: str, rest: str) -> str:
    """The name that a condition asks not to be defined, and nothing else; else empty."""
    if directive == "ifndef":
        found = _WORD.match(rest)
    else:
        negated = re.fullmatch(r"!\s*(defined.*)", rest.strip()) if directive == "if" else None
        found = _DEFINED.fullmatch(negated[1].strip()) if negated else None
    return "" if found is None else found[0] if directive == "ifndef" else found[1] or found[2]


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
        word = _WORD.match(rest)
        found = _is_defined(word[0], macros) if word else None
        return found if found is None or kind.endswith("ifdef") or kind == "def" else not found
    try:
        value = _Value(_condition(rest, macros), macros).of()
    except (ValueError, IndexError, RecursionError, OverflowError, ZeroDivisionError):  # a compiler tells
        return None
    return None if value is None else bool(value)


def _condition(rest: str, macros: MacroTable) -> list[str]:
    """The tokens of a condition with what its macros stand for, as far as that is known."""
    if not macros.is_whole:
        return _written_out(_tokens(rest), macros)
    asked = _DEFINED.sub(lambda found: str(int(bool(_is_defined(found[1] or found[2], macros)))), rest)
    return _tokens(
        "".join(token for token, _ in expanded(((one[0], 0) for one in TOKEN.finditer(asked)), macros))
    )


def words_tested(rest: str) -> set[str]:
    """The words of a condition whose value counts, and not only whether they are defined."""
    return set(_WORD.findall(_DEFINED.sub(" ", rest)))


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


def _written_out(tokens: list[str], macros: MacroTable, inside: frozenset[str] = frozenset()) -> list[str]:
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

    def __init__(self, tokens: list[str], macros: MacroTable) -> None:
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
