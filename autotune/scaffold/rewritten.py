"""A kernel's body rewritten so that formulas can be read where they stand.

Small functions are written out, and variables of several loops get names of their own.
"""

from __future__ import annotations

import re

from autotune.core.brackets import closing, split_arguments
from autotune.scaffold.macros import WORD, with_values

_DECLARING_LOOP = re.compile(r"\bfor\s*\(\s*(?:\w+\s+)+?(\w+)\s*=(?!=)")
_HEAD = re.compile(r"\s*(?:for|while|if)\s*\(")
_MAX_LETTERS = 200_000  # of a body; functions that call each other make it ever longer


def inlined(body: str, code: str) -> str:
    """A kernel's body with the functions that only return an expression written out."""
    returning = re.findall(r"\b(\w+)\s*\(([^(){};]*)\)\s*\{\s*return\s+([^;{}]+);\s*\}", code)
    for name, parameters, formula in returning:
        if re.search(rf"\b{name}\s*\(", formula):  # an overload of itself, or a recursion
            continue
        names = [WORD.findall(part)[-1] for part in parameters.split(",") if WORD.findall(part)]
        start = 0
        while match := re.compile(rf"\b{name}\s*\(").search(body, start):
            end = closing(body, match.end() - 1)
            given = split_arguments(body[match.end() : end])
            if len(given) != len(names):
                start = match.end()
                continue
            values = {word: f"({text})" for word, text in zip(names, given, strict=True)}
            body = f"{body[: match.start()]}({with_values(formula, values)}){body[end + 1 :]}"
            start = match.start()
            if len(body) > _MAX_LETTERS:
                return body
    return body


def with_own_names(body: str) -> str:
    """A kernel's body in which the variable of a loop has a name of its own where others have the same."""
    loops = [(match.start(), match[1]) for match in _DECLARING_LOOP.finditer(body)]
    for number, (start, name) in reversed([*enumerate(loops, 1)]):  # what is before a loop stays in place
        if len(re.findall(rf"\w\s+{name}\s*=(?!=)", body)) > 1:
            end = _statement_end(body, start)
            loop = re.sub(rf"(?<![\w.]){name}\b", f"{name}_of_loop_{number}", body[start:end])
            body = f"{body[:start]}{loop}{body[end:]}"
    return body


def _statement_end(body: str, start: int) -> int:
    """Just after a statement: a block, or what a loop or a condition governs."""
    while head := _HEAD.match(body, start):
        start = closing(body, head.end() - 1) + 1
    start += len(body[start:]) - len(body[start:].lstrip())
    if body.startswith("{", start):
        return closing(body, start) + 1
    return body.find(";", start) + 1 or len(body)
