"""Find the place in a file that Triton's messages mean, and the parameters that it depends on.

Triton sees functions without the rest of their files, and messages count lines from a function's `def`.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.core.syntax import parse_module
from autotune.sources.triton_module import TritonModule

_COUNTED = re.compile(r"(\w+), line (\d+) from its def, ")


@dataclass(frozen=True)
class Place:
    """A line of a function for the device.

    Attributes:
        file: As messages name it.
        line: In the file.
        said: What the message says of it.
        function: The function.
        functions: All functions of its program, by name.
    """

    file: Path
    line: int
    said: str
    function: ast.FunctionDef
    functions: dict[str, ast.FunctionDef]

    def __str__(self) -> str:
        """As compilers write it."""
        return f"{self.file}:{self.line}"

    def parameters(self, entry: str) -> set[str]:
        """The parameters of a kernel that the statement there depends on."""
        before = [part for part in _statements(self.function) if part.lineno <= self.line]
        statement = max(before, key=lambda part: part.lineno, default=self.function)
        read = {*_read(statement), *re.findall(r"\w+", self.reason)}
        found: set[str] = set()
        left, known = [(self.function.name, name) for name in read], set[tuple[str, str]]()
        while left:
            item = name, word = left.pop()
            if item in known or name not in self._meanings:
                continue
            known.add(item)
            left += ((name, other) for other in self._meanings[name].get(word, ()))
            left += self._passed.get(item, ())
            found |= {word} if name == entry else set()
        return found & {one.arg for one in ast.walk(self.functions[entry].args) if isinstance(one, ast.arg)}

    @property
    def reason(self) -> str:
        """What is said of the line, without the line itself."""
        return self.said.partition("`: ")[2] or self.said

    @cached_property
    def _meanings(self) -> dict[str, dict[str, set[str]]]:
        """For each function, and each name in it, the names that its values are made of."""
        return {name: _assigned(function) for name, function in self.functions.items()}

    @cached_property
    def _passed(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """For each parameter of a function, the names that others pass for it."""
        passed: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for caller, function in self.functions.items():
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                    called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                    own = self.functions.get(called)
                    taken = [] if own is None else [one.arg for one in own.args.args]
                    given = [*zip(taken, node.args, strict=False)]
                    given += [(one.arg, one.value) for one in node.keywords if one.arg]
                    for parameter, value in given:
                        passed.setdefault((called, parameter), []).extend(
                            (caller, word) for word in _read(value)
                        )
        return passed


def find_place(said: str, path: Path) -> Place | None:
    """The place that a message means; None for one that names none, or none that is found."""
    if (counted := _COUNTED.search(said)) is None:
        return None
    name, line = counted[1], int(counted[2])
    opened = TritonModule(path.read_text(encoding="utf-8-sig"), path).open_needed()
    functions = {name: one for module in reversed(opened) for name, one in module.kernels.items()}
    for module in opened:
        if (function := module.kernels.get(name)) is not None:
            seen = parse_module(module.text(function)).body[-1]
            # by the last statement before it: the text that Triton sees may have other lines
            before = [
                (its.lineno, own.lineno + line - 1 - (its.lineno - seen.lineno))
                for its, own in zip(_statements(seen), _statements(function), strict=True)
                if its.lineno - seen.lineno < line
            ]
            file = path.parent / os.path.relpath(module.path, path.parent)
            return Place(file, max(before)[1], said[counted.end() :], function, functions)
    return None


def _statements(function: ast.AST) -> list[ast.stmt]:
    """A function, and the statements in it."""
    return [part for part in ast.walk(function) if isinstance(part, ast.stmt)]


def _assigned(function: ast.FunctionDef) -> dict[str, set[str]]:
    meanings: dict[str, set[str]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets, value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target, _, ast.expr() as value) | ast.AugAssign(target, _, value):
                pairs = [(target, value)]
            case ast.For(target, value):
                pairs = [(target, value)]
            case _:
                continue
        for target, value in pairs:
            for name in (part.id for part in ast.walk(target) if isinstance(part, ast.Name)):
                meanings.setdefault(name, set()).update(_read(value))
    return meanings


def _read(node: ast.AST) -> Iterator[str]:
    """The names that an expression reads; of a statement with others in it, those before them."""
    match node:
        case ast.If(test) | ast.While(test):
            node = test
        case ast.For(_, made_of):
            node = made_of
        case ast.With(items):
            node = ast.Tuple([item.context_expr for item in items])
        case ast.FunctionDef():
            node = node.args
    names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
    return (part.id for part in names if isinstance(part.ctx, ast.Load))
