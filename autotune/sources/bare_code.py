"""Source code without comments, strings and attributes, for what looks for names in it."""

from __future__ import annotations

import re

WORD = re.compile(r"\b[A-Za-z_]\w*")
# A comment that is not closed is one, too: so each letter is read once.
COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*(?:.*?\*/|.*)|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""", re.DOTALL
)
_STRING = r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_CPP_ATTRIBUTES = re.compile(r"\[\[\s*[a-z_][^\[\]]*\]\]")  # [[maybe_unused]]
_PYTHON_COMMENT_OR_STRING = re.compile(r'#[^\n]*|""".*?"""' + _STRING, re.DOTALL)
# What begins like another one ends the search from the first: each letter is read once.
_DEFINITION = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)|\btypedef\b(?:(?!\btypedef\b)[^;{}])*?\b(\w+)\s*;|\}\s*(\w+)\s*;|"
    r"\b(?:struct|union|class)\s+(\w+)\b(?:(?!\b(?:struct|union|class)\b)[^;{}()])*\{|"
    r"\b(?!(?:if|for|while|switch)\b)(\w+)\s*\((?:[^;{}()]|\([^;{}()]*\))*\)\s*\{",
    re.MULTILINE,
)


def bare_code(text: str, *, is_python: bool = False) -> str:
    """A source with continued lines joined, without comments, strings and attributes of C++."""
    joined = text.replace("\\\n", " ")
    if is_python:
        return _PYTHON_COMMENT_OR_STRING.sub(" ", joined)
    return _CPP_ATTRIBUTES.sub(" ", COMMENT_OR_STRING.sub(" ", joined))


def without_comments(text: str) -> str:
    """A source in C with continued lines joined and without comments; strings and all places stay."""
    return COMMENT_OR_STRING.sub(
        lambda match: match[0] if match[0][0] in "\"'" else blank(match[0]), text.replace("\\\n", "  ")
    )


def blank(text: str) -> str:
    """As many spaces as a text has letters, with its line ends."""
    return "\n".join(" " * len(line) for line in text.split("\n"))


def bare_lines(text: str, *, is_python: bool = False) -> list[str]:
    """The lines of a source without comments and strings, each at its number."""
    ignored = _PYTHON_COMMENT_OR_STRING if is_python else COMMENT_OR_STRING
    return ignored.sub(lambda match: " " + "\n" * match[0].count("\n"), text).split("\n")


def definitions(text: str) -> set[str]:
    """The macros, types and functions that a source in C defines in any of its branches."""
    return {name for names in _DEFINITION.findall(bare_code(text)) for name in names if name}
