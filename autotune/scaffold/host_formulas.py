"""Write what a host passes to a launch as a launch plan does: with sizes, parameters and `ceil_div`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from autotune.scaffold.index_bounds import expression_of
from autotune.sources.facts import inlined
from autotune.sources.kernel_source import KernelSource
from autotune.sources.launches import Launch
from autotune.sources.statements import parsed_expression
from autotune.sources.whole_numbers import number_of

_DEPTH = 12  # of variables, one in another
_FUNCTIONS = ("min", "max")


class _Unreadable(Exception):
    """A part of the host's formula that a launch plan cannot have."""


@dataclass(frozen=True)
class HostFormulas:
    """What the host passes to a launch of the kernel, in the words of a launch plan."""

    _launch: Launch
    _functions: Mapping[str, tuple[Sequence[str], Sequence[ast.stmt]]]
    _formulas: Mapping[str, ast.expr]  # what variables and constants of the host stand for
    _reader: _Reader

    @classmethod
    def of(
        cls,
        launch: Launch,
        host: KernelSource,
        parameters: Sequence[str],
        block: Sequence[str],
        known: Collection[str],
        constants: Mapping[str, ast.expr],
        bytes_of: Callable[[str], int | None],
    ) -> HostFormulas:
        """Read the formulas around a launch.

        The kernel's `parameters` are in the order of the launch's arguments. The launch plan has the `block`,
        and may read names that are `known`. `constants` are the source's, `bytes_of` gives a type's size.
        """
        names = {
            ast.unparse(here): there
            for here, there in zip(launch.arguments, parameters, strict=False)
            if there in known
        }
        pairs = [(ast.unparse(here), there) for here, there in zip(launch.block, block, strict=False)]
        names |= {here: there for here, there in pairs if here.isidentifier() and here not in known}
        own = launch.variables.keys() & {*parameters}  # variables of the host, whatever the kernel calls so
        names = {name: name for name in known if name not in own} | names
        functions = {
            function.name: ([item.name for item in function.parameters], function.body)
            for function in host.functions
        }
        formulas = {**constants, **host.constants, **launch.variables}
        return cls(launch, functions, formulas, _Reader(names, block, formulas, bytes_of))

    @property
    def grid(self) -> tuple[str, ...]:
        """The extents of the grid; empty if one of them needs what a launch plan does not know."""
        texts = tuple(map(self._text, self._launch.grid))
        return texts if all(texts) else ()

    @property
    def shared_bytes(self) -> str:
        """The dynamic shared memory; empty if none is given, or a launch plan cannot read it."""
        return "" if self._launch.shared_bytes is None else self._text(self._launch.shared_bytes)

    def number(self, place: int, *, is_whole: bool) -> str:
        """The number in a place of the arguments; empty if a launch plan cannot read it."""
        if place >= len(self._launch.arguments):
            return ""
        given = self._launch.arguments[place]
        if is_whole:
            return self._text(given)
        value = real_number_of(given, self._formulas)
        return "" if value is None else repr(value)

    def _text(self, node: ast.expr) -> str:
        try:
            return ast.unparse(self._reader.read(inlined(node, self._functions), _DEPTH))
        except _Unreadable:
            return ""


def real_number_of(node: ast.expr, formulas: Mapping[str, ast.expr], depth: int = _DEPTH) -> float | None:
    """The value of a number, with or without a sign, or of a variable that is one; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(ast.USub(), operand):
            value = real_number_of(operand, formulas, depth)
            return None if value is None else -value
        case ast.Name(id=name) if name in formulas and depth:
            return real_number_of(formulas[name], formulas, depth - 1)
    return None


def declared_extents(
    parts: Sequence[str], known: Collection[str], constants: Mapping[str, ast.expr]
) -> tuple[str, ...]:
    """The extents of a block that a source declares, as a launch plan has them; empty as for a grid."""
    reader = _Reader({name: name for name in known}, (), constants, lambda _: None)
    try:
        nodes = [_tree(part, parsed_expression) for part in parts]
        numbers = [number_of(node, constants) for node in nodes]
        return tuple(
            ast.unparse(reader.read(node, _DEPTH)) if number is None else str(number)
            for node, number in zip(nodes, numbers, strict=True)
        )
    except _Unreadable:
        return ()


@dataclass(frozen=True)
class _Reader:
    """Reads the host's formulas as a launch plan has them."""

    names: Mapping[str, str]  # what a name of the host is called in the launch plan
    block: Sequence[str]
    formulas: Mapping[str, ast.expr]
    bytes_of: Callable[[str], int | None]  # the size of a type

    def read(self, node: ast.expr, depth: int) -> ast.expr:
        """What a launch plan has in place of a part of the host's formula."""
        match node:
            case ast.Constant(value=int()):
                return node
            case ast.Name(id=name) if name in self.names:
                return _tree(self.names[name])
            case ast.Attribute(attr="x" | "y" | "z" as axis):  # of the dim3 that is the block
                return _tree([*self.block, "1", "1"]["xyz".index(axis)])
            case ast.Name(id=name) if name in self.formulas and depth:
                return self.read(self.formulas[name], depth - 1)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _quotient(self.read(left, depth), self.read(right, depth))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=right):
                return ast.BinOp(self.read(left, depth), operator, self.read(right, depth))
            case ast.Call(ast.Name("sizeof"), [ast.Constant(str(kind))]) if size := self.bytes_of(kind):
                return ast.Constant(size)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
                return ast.Call(ast.Name(name), [self.read(item, depth) for item in arguments], [])
        raise _Unreadable(ast.unparse(node))


def _tree(text: str, parse: Callable[[str], ast.expr | None] = expression_of) -> ast.expr:
    tree = parse(text)
    if tree is None:
        raise _Unreadable(text)
    return tree


def _quotient(left: ast.expr, right: ast.expr) -> ast.expr:
    """A division of integers; one of `a + b - 1` by b is rounded up."""
    terms, constant = _terms(left)
    texts, divisor = [ast.unparse(term) for term in terms], ast.unparse(right)
    is_rounded_up = False
    if isinstance(right, ast.Constant) and isinstance(right.value, int):
        is_rounded_up = constant == right.value - 1
    elif divisor in texts:
        del terms[texts.index(divisor)]
        is_rounded_up = constant == -1
    if is_rounded_up and len(terms) == 1:
        return ast.Call(ast.Name("ceil_div"), [terms[0], right], [])
    return ast.BinOp(left, ast.FloorDiv(), right)


def _terms(node: ast.expr) -> tuple[list[ast.expr], int]:
    """The terms of a sum, and the number that is added to them."""
    match node:
        case ast.Constant(value=int(number)):
            return [], number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            (terms, number), (others, further) = _terms(left), _terms(right)
            return terms + others, number + further
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int(number))):
            terms, further = _terms(left)
            return terms, further - number
    return [node], 0
