"""Which macros that a source is given make no difference to what is compiled, whatever their values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum

from autotune.sources.bare_code import WORD, without_comments
from autotune.sources.macros import Macro
from autotune.sources.preprocessor import SourceLine, compiled_lines, words_tested

_DEFAULT = re.compile(  # of a macro, which is left out where it is given
    r"^[ \t]*#[ \t]*(?:ifndef[ \t]+|if[ \t]*![ \t]*defined[ \t]*\(?[ \t]*)(\w+)[ \t]*\)?[ \t]*\n"
    r"(?=\s*#[ \t]*define[ \t]+\1\b)",
    re.MULTILINE,
)


class Unseen(Enum):
    """Why the value of a macro makes no difference."""

    REDEFINED = "redefined"  # the source defines it before it uses it
    ONLY_TESTED = "only tested"  # whether it is defined, which it always is


def unseen_macros(text: str, given: Collection[str]) -> dict[str, tuple[Unseen, int]]:
    """Find the macros that a source defines or tests, and on whose values nothing depends that is compiled.

    Each comes with the place of the directive that shows it. One that the source does not mention, or only
    gives a default, is not among them.
    """
    given = {*given}
    code = without_comments(text)
    undefined = {match[1] for match in re.finditer(r"#[ \t]*undef[ \t]+(\w+)", code)}
    code = _DEFAULT.sub(
        lambda match: (  # places stay
            "#if 0".ljust(len(match[0]) - 1) + "\n" if match[1] in given - undefined else match[0]
        ),
        code,
    )
    reached: set[str] = set()
    unseen: dict[str, tuple[Unseen, int]] = {}
    followed: set[str] = set()  # words that were followed since the last definition
    for line in compiled_lines(code, given):
        if line.directive in ("define", "undef"):
            followed.clear()
            name = next(iter(WORD.findall(line.rest)), "")
            if name in given and line.is_certain and line.macros[name].is_given:
                unseen[name] = Unseen.REDEFINED, line.place
            continue
        reached.update(_reached(_words(line), line.macros, followed))
        if "if" in line.directive:
            for name in given.intersection(WORD.findall(line.rest)):
                unseen.setdefault(name, (Unseen.ONLY_TESTED, line.place))
    return {name: why for name, why in unseen.items() if name not in reached}


def _words(line: SourceLine) -> Iterable[str]:
    """The words of a line whose meaning counts."""
    if line.directive in ("if", "elif"):
        return words_tested(line.rest)
    return () if "if" in line.directive or line.directive == "else" else WORD.findall(line.rest)


def _reached(words: Iterable[str], macros: Mapping[str, Macro], followed: set[str]) -> Iterator[str]:
    """The macros with a value from outside among some words, and in what these stand for."""
    left = [*words]
    while left:
        word = left.pop()
        if word in followed or word not in macros:
            continue
        followed.add(word)
        if macros[word].is_given:
            yield word
        left += (name for body in macros[word].bodies for name in WORD.findall(body))
