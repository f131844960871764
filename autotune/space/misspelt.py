"""Find names in capitals in C code that nothing declares and that resemble a known macro."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

MAX_STATEMENT = 400  # characters of a declaration before a name
MIN_SIMILARITY = 0.8  # of a word to the macro that may be meant: one letter of five, two of ten
_CONSTANT = re.compile(r"(?<![\w.])(?<!->)(?<!::)(?<!##)([A-Z][A-Z0-9_]{3,})\b\s*(==|##|[=\[({:])?")
_NO_CONSTANT = ("##", "[", "(", "{", ":")  # what follows names of other things
_ENUMERATED = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")
_MACRO_HEAD = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+\w+(?:\([^)\n]*\))?", re.MULTILINE)
_WORD = re.compile(r"\w+")
_BEFORE_VALUE = {"return", "case", "else", "goto", "sizeof", "throw", "delete", "do", "defined", "if", "elif"}
# `float* NAME`, `int (&NAME)[2]` and `array<int, 2> NAME`, unlike `N * NAME`, `f(x & NAME)` and `a > NAME`
_TYPE_BEFORE = re.compile(r"(?:\w[*&]+\s+|\(\s*[*&]+\s*|\w<[\w\s,:*]+>[*&]*\s+)$")
_DECLARATION = re.compile(r"\s*(?:\w+[\s*&]+)+\w+\s*(?:\[[^\]]*\]\s*)*(?:=[^;]*)?,[^;]*$")


def misspelt_constants(code: str, defined: Iterable[str]) -> Iterator[str]:
    """Words that are probably misspelt: used as values, declared nowhere, and similar to a macro.

    Args:
        code: C code without comments and strings.
        defined: The macros that are defined.
    """
    known = set(defined)
    lists = (*_MACRO_HEAD.findall(code), *_ENUMERATED.findall(code))
    declared = {word for names in lists for word in _WORD.findall(names)}
    code = _MACRO_HEAD.sub("", code)
    used: dict[str, None] = {}
    for found in _CONSTANT.finditer(code):
        word, after = found.groups()
        if after == "=" or _is_declared(code[max(0, found.start() - MAX_STATEMENT) : found.start()]):
            declared.add(word)
        elif after not in _NO_CONSTANT:
            used[word] = None
    for word in used:
        if word not in known | declared and difflib.get_close_matches(word, known, 1, MIN_SIMILARITY):
            yield word


def _is_declared(before: str) -> bool:
    """Whether the code before a word makes it a declaration: a type, or the names that follow one."""
    statement = re.split(r"[;{}]", before)[-1]
    last = re.search(r"\b(\w++)\s++$", statement)
    if last and last[1] not in _BEFORE_VALUE and not last[1].isdigit():
        return True
    if _TYPE_BEFORE.search(statement):
        return True
    return statement.rstrip().endswith((",", "*", "&")) and bool(_DECLARATION.match(statement))
