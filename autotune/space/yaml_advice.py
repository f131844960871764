"""What is wrong with a text that is no YAML, or no expression, and how to mend it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

import yaml

from autotune.core.text import hint, nearest

_MAX_SHOWN = 40  # letters of a value that a message repeats
# What other languages write, and what it is here; found outside quotes.
_OPERATORS = (
    (re.compile(r"&&"), "write `and` for &&"),
    (re.compile(r"\|\|"), "write `or` for ||"),
    (re.compile(r"!(?!=)"), "write `not` for !"),
    (re.compile(r"\?[^:]*:"), "write `A if CONDITION else B` for CONDITION ? A : B"),
    (re.compile(r"(?<![=!<>])=(?!=)"), "write == to compare"),
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
# What word processors and web pages make of plain characters.
_PLAIN = {
    **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2018\u2019\u201a\u00b4", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    **{"\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00d7": "*", "\u00f7": "//", "\u00a0": "a space"},
}


def expression_advice(text: str) -> str:
    """How to mend what is no expression, as the end of a message."""
    if foreign := [letter for letter in text if letter in _PLAIN]:
        return f"; write {_PLAIN[foreign[0]]} for the character {foreign[0]!r}"
    bare = _QUOTED.sub("''", text)
    if mends := [mend for pattern, mend in _OPERATORS if pattern.search(bare)]:
        return f"; {', '.join(mends)}"
    if any(bare.count(quote) % 2 for quote in "'\""):
        return "; a quote is not closed"
    if text.count("(") != text.count(")"):  # YAML splits a list in [ ] at every comma
        return "; quote an expression that contains a comma"
    return ""


def name_advice(name: str, text: str, known: Collection[str]) -> str:
    """How to mend an expression with an unknown name, as the end of a message."""
    if not nearest(name, known) and _is_compared(name, text):
        return f'; a text needs quotes: "{name}"'
    return hint(name, known)


def _is_compared(name: str, text: str) -> bool:
    """Whether an expression tests equality with a name, as with a text that lacks its quotes."""
    tests = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Compare)]
    operands = [
        part
        for test in tests
        if any(isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for operator in test.ops)
        for operand in (test.left, *test.comparators)
        for part in (operand.elts if isinstance(operand, ast.Tuple | ast.List) else [operand])
    ]
    return any(isinstance(part, ast.Name) and part.id == name for part in operands)


def yaml_problem(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> tuple[int, str]:
    """The line of what is no YAML, and what it is; parsers stop only after a bracket that is missing."""
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    problem, context = str(error.problem), str(error.context)
    if "'\\t'" in problem:
        return line, "a tab; indent with spaces"
    opened = {"while parsing a flow sequence": "[", "while parsing a flow mapping": "{"}.get(context)
    if opened and error.context_mark and "but got" in problem:
        return (
            error.context_mark.line + 1,
            f"is the {opened} closed, with a comma between all entries? {problem}",
        )
    if "mapping values are not allowed" in problem:
        return _missing_colon(lines, line) or (line, "a colon inside a value; put the value in quotes")
    if "could not find expected ':'" in problem:
        return line, f"{problem}; is there a space after every colon?"
    if "but found '<scalar>'" in problem:
        return line, "a text goes on after its closing quote; put the whole value in quotes"
    if "but found '<block " in problem:
        return line, _indentation(lines, line) or problem
    return line, problem


def _indentation(lines: Sequence[str], line: int) -> str:
    """What is wrong with the indentation of a line; empty if it is that of the entry before."""
    for number in range(line - 1, 0, -1):
        text = lines[number - 1]
        if text.strip() and not text.lstrip().startswith("#"):
            if "\u00a0" in text:
                return f"line {number} has a non-breaking space (U+00A0); type plain spaces"
            here, before = (len(one) - len(one.lstrip(" ")) for one in (lines[line - 1], text))
            if here == before:
                return ""
            return (
                f"indented by {here}, and line {number} by {before}; entries that belong together begin in "
                "the same column, those inside another further to the right"
            )
    return ""


def _missing_colon(lines: Sequence[str], line: int) -> tuple[int, str] | None:
    """The entry without a colon or a space after its key that ends before a line, where a parser stops."""
    for number in range(min(line - 1, len(lines)), 0, -1):
        text = lines[number - 1].partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        found = re.fullmatch(r"(\w+)(?:\s+(.*)|:(\S.*))?", text)
        if re.search(r":(\s|$)", text) or not found:
            return None
        key, value = found[1], found[2] or found[3] or ""
        shown = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}..."
        if found[3]:
            return number, f"`{key}:{shown}` has no space after its colon; write `{key}: {shown}`"
        entry = f"{key} {shown}".strip()
        return number, f"`{entry}` has no colon after its key; write `{key}: {shown}`"
    return None
