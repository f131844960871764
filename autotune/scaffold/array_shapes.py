"""Guess the shapes of arrays from how a kernel indexes them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import product

from autotune.scaffold.tiles import bounds_of
from autotune.sources.facts import Facts, names_in
from autotune.sources.whole_numbers import number_of

_DEPTH = 8  # of variables in the index, one in another

Monomial = tuple[tuple[str, ...], frozenset[str]]  # the sizes of a product, sorted, and its other names


def indices_of(array: str, facts: Facts) -> list[ast.expr]:
    """The indices with which a kernel uses an array."""
    return [one.index for one in facts.of(array)]


def indexed_shapes(array: str, facts: Facts, sizes: Sequence[str]) -> list[tuple[str, ...]]:
    """The extents that indices such as `(z * ny + y) * nx + x` show, slowest first, for each layout."""
    shown = (_extents(index, facts, sizes) for index in indices_of(array, facts))
    return list(dict.fromkeys(shape for shape in shown if shape))


def vectors_of(array: str, facts: Facts, sizes: Sequence[str]) -> str:
    """The size whose elements are all that a kernel reads of an array as vectors; empty if there is none.

    The array is cast, `v = reinterpret_cast<const float4 *>(x)`, and each `v[i]` has `i < n / 4`.
    """
    uses = facts.of(array)
    found: set[str] = set()
    for use in uses:
        bounds = {
            one.right.left.id
            for one in facts.compared
            if names_in(one.left) & names_in(use.index)
            and isinstance(one.right, ast.BinOp)
            and isinstance(one.right.op, ast.Div)
            and isinstance(one.right.left, ast.Name)
        }
        found |= bounds or {""}
    is_vector = bool(uses) and all(use.vector for use in uses) and array not in facts.escaped
    return found.pop() if is_vector and len(found) == 1 and found <= {*sizes} else ""


def bins(array: str, facts: Facts, constants: Mapping[str, ast.expr], known: Collection[str]) -> str:
    """How many elements atomics of data's choosing update: a bound that the source names, else empty.

    Args:
        array: The name of the array.
        facts: What the kernel does.
        constants: What the source's constants stand for.
        known: Names that a shape may read.
    """
    for index in indices_of(array, facts):
        bounds = [one.right for one in facts.compared if ast.unparse(one.left) == ast.unparse(index)]
        match facts.written_out(index):
            case ast.BinOp(op=ast.Mod(), right=right):
                bounds.insert(0, right)
        for bound in bounds:
            if isinstance(bound, ast.Name) and bound.id in known:
                return bound.id
            if number := number_of(bound, constants):
                return str(number)
    return ""


def is_scattered(array: str, facts: Facts) -> bool:
    """True if atomics alone update an array, at an index that is not the thread's."""
    uses = facts.of(array)
    if not uses or not all(use.atomic for use in uses):
        return False
    return any(
        not any(isinstance(part, ast.Attribute) for part in ast.walk(whole))
        or any(isinstance(part, ast.Subscript) for part in ast.walk(whole))
        or (isinstance(use.index, ast.Name) and bool(bounds_of([use.index.id], facts)))
        for use in uses
        for whole in [facts.written_out(use.index)]
        if not isinstance(use.index, ast.Constant)
    )


def steers(array: str, facts: Facts) -> bool:
    """True if what an array holds chooses a place in memory, or how often a loop runs.

    An index that a mask or a remainder keeps small does not count.
    """
    names: set[str] = set()
    for _ in range(_DEPTH):
        found = {
            name
            for name, values in (*facts.values.items(), *facts.changed.items())
            if any(_reads(value, array, names, facts) for value in values)
        }
        if found <= names:
            break
        names |= found
    places = [index for use in facts.accesses for index in use.indices]
    return any(
        _reads(place, array, names, facts) and not _is_masked(place) for place in (*places, *facts.loops)
    )


def _reads(node: ast.expr, array: str, names: Collection[str], facts: Facts) -> bool:
    """True if an expression reads an element of an array, or one of some variables."""
    read, arrays = facts.read_by(node)
    return array in arrays or not read.isdisjoint(names)


def _is_masked(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Mod | ast.BitAnd) for part in ast.walk(node))


def _extents(index: ast.expr, facts: Facts, sizes: Sequence[str]) -> tuple[str, ...]:
    terms = _monomials(index, facts, sizes, _DEPTH)
    strides = sorted({stride for stride, _ in terms if stride}, key=len)
    names: list[str] = []
    for number, stride in enumerate(strides, 1):
        added = list((Counter(stride) - Counter(names)).elements())
        if len(stride) != number or len(added) != 1:
            return ()
        names += added
    if not names:
        return ()
    slowest = {word for stride, words in terms if stride == strides[-1] for word in words}
    bounds = bounds_of(slowest, facts) & {*sizes}
    left = bounds if len(bounds) == 1 else set(sizes) - set(names)
    return (*left, *reversed(names)) if len(left) == 1 else ()


def _monomials(node: ast.expr | None, facts: Facts, sizes: Sequence[str], depth: int) -> set[Monomial]:
    """The products that an index is a sum of; what is neither sum nor product has no names."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _monomials(left, facts, sizes, depth) | _monomials(right, facts, sizes, depth)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            pairs = product(_monomials(left, facts, sizes, depth), _monomials(right, facts, sizes, depth))
            return {(tuple(sorted(first[0] + second[0])), first[1] | second[1]) for first, second in pairs}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _monomials(operand, facts, sizes, depth)
        case ast.Name(id=name) if name in sizes:
            return {((name,), frozenset())}
        case ast.Name(id=name):
            value = facts.value(name) if depth else None
            terms = _monomials(value, facts, sizes, depth - 1) if value is not None else set()
            return terms if any(stride for stride, _ in terms) else {((), frozenset((name,)))}
    return {((), frozenset())}
