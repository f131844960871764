"""Source code without comments, strings and attributes, for what looks for names in it."""

from __future__ import annotations

import re

_STRING = r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_CPP_ATTRIBUTES = re.compile(r"\[\[\s*[a-z_][^\[\]]*\]\]")  # [[maybe_unused]]
_C_COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?\*/" + _STRING, re.DOTALL)
_PYTHON_COMMENT_OR_STRING = re.compile(r'#[^\n]*|""".*?"""' + _STRING, re.DOTALL)


def bare_code(text: str, *, is_python: bool = False) -> str:
    """A source with continued lines joined, without comments, strings and attributes of C++."""
    joined = text.replace("\\\n", " ")
    if is_python:
        return _PYTHON_COMMENT_OR_STRING.sub(" ", joined)
    return _CPP_ATTRIBUTES.sub(" ", _C_COMMENT_OR_STRING.sub(" ", joined))


def bare_lines(text: str, *, is_python: bool = False) -> list[str]:
    """The lines of a source without comments and strings, each at its number."""
    ignored = _PYTHON_COMMENT_OR_STRING if is_python else _C_COMMENT_OR_STRING
    return ignored.sub(lambda match: " " + "\n" * match[0].count("\n"), text).split("\n")
