"""Write the grid that a host launches as a launch plan does: sizes, parameters and `ceil_div`."""

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


def host_grid(
    launch: Launch,
    host: KernelSource,
    parameters: Sequence[str],
    block: Sequence[str],
    known: Collection[str],
    constants: Mapping[str, ast.expr],
) -> tuple[str, ...]:
    """The extents of a host's grid; empty if one of them needs what a launch plan does not know.

    The kernel's `parameters` are in the order of the launch's arguments. The launch plan has the `block`, and
    may read names that are `known`. `constants` are the source's.
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
    functions = {one.name: ([item.name for item in one.parameters], one.body) for one in host.functions}
    reader = _Reader(names, block, {**constants, **host.constants, **launch.variables})
    try:
        extents = [inlined(extent, functions) for extent in launch.grid]
        return tuple(ast.unparse(reader.read(extent, _DEPTH)) for extent in extents)
    except _Unreadable:
        return ()


def declared_extents(
    parts: Sequence[str], known: Collection[str], constants: Mapping[str, ast.expr]
) -> tuple[str, ...]:
    """The extents of a block that a source declares, as a launch plan has them; empty as for `host_grid`."""
    reader = _Reader({name: name for name in known}, (), constants)
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
            (terms, number), (others, other) = _terms(left), _terms(right)
            return terms + others, number + other
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int(number))):
            terms, other = _terms(left)
            return terms, other - number
    return [node], 0
