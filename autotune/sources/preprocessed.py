"""The text of a source as a compiler sees it after its preprocessor, for given values of its macros."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from autotune.sources.bare_code import WORD
from autotune.sources.expansion import TOKEN, Token, UnclosedCall, expanded
from autotune.sources.macros import Macro, MacroTable, definition
from autotune.sources.preprocessor import SourceLine, compiled_lines, condition_guard

_STRINGS = re.compile(r"""(?:u8|[uUL])?"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""")
_INTEGER = re.compile(r"\(*\s*\d+[uUlL]*\s*\)*")
_MAX_LINES = 400  # of the call of one macro


@dataclass(frozen=True)
class Preprocessed:
    """A source after its preprocessor; what is left open stays a name."""

    text: str  # of the branches that hold, without directives, comments and what strings say
    macros: Mapping[str, Macro]  # that are defined at the end
    defaults: Mapping[str, str] = field(default_factory=dict)  # of names that nobody else defines
    used: frozenset[str] = frozenset()  # the words of the code before macros are written out
    _starts: tuple[int, ...] = ()
    _origins: tuple[int, ...] = ()

    def place(self, place: int) -> int:
        """Where a letter of the text, or the macro that it comes from, stands in the source."""
        number = bisect_right(self._starts, place) - 1
        if number < 0:
            return 0
        begin, origin = self._starts[number], self._origins[number]
        return origin + place - begin if origin >= 0 else -origin - 1

    def span(self, begin: int, end: int) -> tuple[int, int] | None:
        """Where the source has a part of the text, with whole calls of macros; None inside of one."""
        before, after, last = begin - 1, end, end - 1
        while before > 0 and self.text[before].isspace():
            before -= 1
        while after < len(self.text) - 1 and self.text[after].isspace():
            after += 1
        if not self._is_own(begin) and before >= 0 and self.place(before) == self.place(begin):
            return None
        if self._is_own(last):
            return self.place(begin), self.place(last) + 1
        is_whole = after < len(self.text) and self.place(after) != self.place(last)
        return (self.place(begin), self.place(after)) if is_whole else None

    def _is_own(self, place: int) -> bool:
        """True for a letter that the source has there, and not a macro."""
        number = bisect_right(self._starts, place) - 1
        return number >= 0 and place < len(self.text) and self._origins[number] >= 0

    def meaning(self, name: str) -> str | None:
        """What a macro without arguments stands for; None if there is no such macro."""
        macro = self.macros.get(name)
        return macro.bodies[-1] if macro and macro.bodies and not macro.has_arguments else None


def preprocessed(
    text: str, values: Mapping[str, str], words: str = "", pinned: Collection[str] = ()
) -> Preprocessed:
    """Read a source as a compiler does, in which nothing is defined but what is given.

    Args:
        text: The source, with its includes resolved.
        values: The macros that are given, whose names stay in the text.
        words: Definitions in front of the source.
        pinned: Names that keep what `words` say, whatever the source defines.
    """
    table = MacroTable({}, is_whole=True)
    for _ in compiled_lines(words, table):
        pass
    own = {name: table[name] for name in pinned if name in table}
    table.update({name: Macro((value,)) for name, value in values.items()})
    return _Reading(values.keys(), own).read(compiled_lines(text, table), table)


class _Reading:
    """One pass over the lines of a source."""

    def __init__(self, kept: Collection[str], own: Mapping[str, Macro]) -> None:
        self._always_kept, self._own = frozenset(kept), own
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._origins: list[int] = []
        self._length = 0
        self._kept = {*kept}
        self._defaults: dict[str, str] = {}
        self._beside: dict[str, list[str]] = {}  # defaults under the #ifndef of another name, by that name
        self._used: set[str] = set()
        self._waiting: list[tuple[str, int]] = []  # lines of a call that is not closed yet
        self._depth = 0  # of brackets in these

    def read(self, lines: Iterable[SourceLine], table: MacroTable) -> Preprocessed:
        for line in lines:
            if not line.directive:
                if self._beside and line.rest.strip():
                    self._forget_beside(line)
                self._code(line.rest, line.place, table)
            elif line.directive == "define":
                self._definition(line, table)
            elif line.directive == "undef":
                self._kept -= {*WORD.findall(line.rest)} - self._always_kept
        self._flush()
        return Preprocessed(
            "".join(self._parts),
            {name: macro for name, macro in table.items() if macro.bodies},
            self._defaults,
            frozenset(self._used),
            (*self._starts,),
            (*self._origins,),
        )

    def _definition(self, line: SourceLine, table: MacroTable) -> None:
        """Note a definition before the table follows it.

        Its own #ifndef may be around it, or that of a name whose default stands above it.
        """
        defined = definition(line.rest)
        if defined is None or (line.guard != defined[0] and line.guard not in self._defaults):
            return
        name, macro = defined
        body = macro.bodies[0]
        if name not in self._own and body and not macro.has_arguments and name not in table:
            self._defaults[name] = body
            if _INTEGER.fullmatch(body):
                self._kept.add(name)
            if line.guard != name:
                self._beside.setdefault(line.guard, []).append(name)

    def _forget_beside(self, line: SourceLine) -> None:
        """Take back defaults beside the name of an #ifndef that has code in it, as a header's guard has."""
        around = line.condition
        while around is not None:
            for name in self._beside.pop(condition_guard(around.directive, around.rest), ()):
                self._defaults.pop(name, None)
                self._kept -= {name} - self._always_kept
            around = around.outer

    def _code(self, rest: str, place: int, table: MacroTable) -> None:
        """Take over a line of code."""
        for name, macro in self._own.items():
            if table.get(name) is not macro:
                table[name] = macro
        rest = _STRINGS.sub(lambda found: f'"{" " * (len(found[0]) - 2)}"', rest)
        words = set(WORD.findall(rest))
        self._used |= words
        if not self._waiting and (words - self._kept).isdisjoint(table):
            self._add(rest, place)
            self._add("\n", place + len(rest))
            return
        self._waiting.append((rest, place))
        self._depth += rest.count("(") - rest.count(")")
        if self._depth > 0 and len(self._waiting) < _MAX_LINES:
            return
        try:
            done = expanded(_tokens(self._waiting), table, self._kept)
        except UnclosedCall:
            if len(self._waiting) >= _MAX_LINES or self._depth > 0:
                self._flush()
            return
        self._waiting.clear()
        self._depth = 0
        for text, origin in done:
            self._add(text, origin)

    def _flush(self) -> None:
        """Take over what a call that never closes has left."""
        for rest, place in self._waiting:
            self._add(f"{rest}\n", place)
        self._waiting.clear()
        self._depth = 0

    def _add(self, text: str, origin: int) -> None:
        is_next = self._origins and min(origin, self._origins[-1]) >= 0
        if not is_next or self._origins[-1] + self._length - self._starts[-1] != origin:
            self._starts.append(self._length)
            self._origins.append(origin)
        self._parts.append(text)
        self._length += len(text)


def _tokens(lines: Iterable[tuple[str, int]]) -> Iterator[Token]:
    for rest, place in lines:
        for token in TOKEN.finditer(rest):
            yield token[0], place + token.start()
        yield "\n", place + len(rest)
