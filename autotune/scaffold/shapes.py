"""Guess the shapes of arrays from how a kernel indexes them."""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from autotune.core.brackets import closing
from autotune.core.syntax import parse_expression
from autotune.scaffold.casts import without_casts
from autotune.scaffold.macros import WORD
from autotune.scaffold.tiles import bounds_of, value_part

_NUMBER = re.compile(r"\b(\d+)[uUlL]+\b")
_ATOMIC = re.compile(r"(?i)atomic_?\w+\s*\(\s*&\s*$")
LOOP = re.compile(r"\b(?:for|while)\s*\(")
_DEPTH = 8  # of variables in the index, one in another

Monomial = tuple[tuple[str, ...], frozenset[str]]  # the sizes of a product, sorted, and its other names


def indexed_shapes(array: str, body: str, sizes: Sequence[str]) -> list[tuple[str, ...]]:
    """The extents that indices such as `(z * ny + y) * nx + x` show, slowest first, for each layout."""
    moved = re.findall(rf"[=(,]\s*{array}\s*\+\s*([^;,]+)", body)
    shown = (*indices_of(array, body), *map(value_part, moved))
    return list(dict.fromkeys(shape for index in shown if (shape := _extents(index, body, sizes))))


def vectors_of(array: str, body: str, sizes: Sequence[str]) -> str:
    """The size whose elements are all that a kernel reads of an array as vectors; empty if there is none.

    The array is cast, `v = reinterpret_cast<const float4 *>(x)`, and each `v[i]` has `i < n / 4`.
    """
    cast = r"(?:reinterpret_cast\s*<[^;()]*>|\([^;()]*\*\s*\))"
    views = re.findall(rf"\b(\w++)\s*+=\s*{cast}\s*\(?\s*{array}\s*\)?\s*;", body)
    indices = [index.strip() for view in views for index in indices_of(view, body)]
    below = {
        bound
        for index in indices
        for bound in re.findall(rf"(?<![\w.]){re.escape(index)}\s*<\s*\(?\s*(\w+)\s*/\s*\w+", body) or [""]
    }
    uses = len(re.findall(rf"(?<!\.)\b{array}\b", body))
    return below.pop() if len(views) == uses and len(below) == 1 and below <= {*sizes} else ""


def bins(array: str, body: str, definitions: Mapping[str, str], known: Collection[str]) -> str:
    """How many elements atomics of data's choosing update: a bound that the source names, else empty.

    Args:
        array: The name of the array.
        body: Text of the kernel.
        definitions: The macros that the source defines.
        known: Names that a shape may read.
    """
    for index in map(str.strip, indices_of(array, body)):
        bounds = bounds_of(index, body) if index.isidentifier() else []
        remainder = re.search(r"%\s*(\w+)$", _written_out(index, body))
        for bound in (*([remainder[1]] if remainder else []), *bounds):
            number = definitions.get(bound, bound)
            if bound in known or (number.isdigit() and int(number) > 0):
                return bound if bound in known else number
    return ""


def is_scattered(array: str, body: str) -> bool:
    """Whether atomics alone update an array, at an index that is not the thread's."""
    places = [body[: match.start()] for match in re.finditer(rf"\b{array}\s*\[", body)]
    if not places or not all(_ATOMIC.search(place) for place in places):
        return False
    return any(
        not re.search(r"threadIdx|blockIdx|_INDEX|get_\w+_id", _written_out(index, body))
        or "[" in _written_out(index, body)
        or (index.strip().isidentifier() and bounds_of(index.strip(), body))
        for index in indices_of(array, body)
        if not index.strip().isdigit()
    )


def steers(array: str, body: str) -> bool:
    """Whether what an array holds chooses a place in memory, or how often a loop runs.

    An index that a mask or a remainder keeps small does not count. The `x` of `threadIdx.x` is no variable.
    """
    names = {array}
    for _ in range(_DEPTH):
        read = re.compile(rf"(?<![\w.])(?:{array}\s*\[|(?:{'|'.join(names - {array}) or '_'})\b)")
        found = {
            match[1]
            for match in re.finditer(r"(?<![\w.])(\w+)(?:\.\w+)?\s*[-+*]?=(?!=)\s*([^;]*)", body)
            if read.search(value_part(match[2]))
        }
        if found <= names:
            break
        names |= found
    loops = [body[match.end() : closing(body, match.end() - 1)] for match in LOOP.finditer(body)]
    ends = ((match.end(), closing(body, match.start())) for match in re.finditer(r"\[", body))
    places = [body[begin:end] for begin, end in ends if end < len(body)]
    return any(read.search(place) and not set("%&") & set(place) for place in (*places, *loops))


def indices_of(array: str, body: str) -> Iterator[str]:
    """The texts between the brackets of an array's uses."""
    for match in re.finditer(rf"\b{array}\s*\[", body):
        end = closing(body, match.end() - 1)
        if end < len(body):
            yield body[match.end() : end]


def assigned(variable: str, body: str) -> list[str]:
    """What a variable is set to, each time."""
    return re.findall(rf"(?<![\w.]){variable}\s*=(?!=)\s*([^;=]+?)\s*(?:;|,\s*\w+\s*=)", body)


@lru_cache(maxsize=64)
def _value(variable: str, body: str) -> str:
    """What a variable is set to, if that is done once."""
    found = assigned(variable, body)
    changed = re.search(rf"(?<![\w.]){variable}\s*(?:[-+*/%]=|\+\+|--)|(?:\+\+|--){variable}\b", body)
    return found[0] if len(found) == 1 and not changed else ""


def _written_out(index: str, body: str) -> str:
    return _value(index.strip(), body) or index if index.strip().isidentifier() else index


def _extents(index: str, body: str, sizes: Sequence[str]) -> tuple[str, ...]:
    terms = _monomials(expression_tree(index), body, sizes, _DEPTH)
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
    bounds = {bound for word in slowest for bound in bounds_of(word, body) if bound in sizes}
    left = bounds if len(bounds) == 1 else set(sizes) - set(names)
    return (*left, *reversed(names)) if len(left) == 1 else ()


def expression_tree(text: str) -> ast.expr | None:
    """A C expression as a syntax tree; None for one that Python has not."""
    plain = WORD.sub(lambda word: word[0] + "_" * keyword.iskeyword(word[0]), without_casts(text))
    try:
        return parse_expression(_NUMBER.sub(r"\1", plain))
    except SyntaxError:  # C that is no Python
        return None


def _monomials(node: ast.expr | None, body: str, sizes: Sequence[str], depth: int) -> set[Monomial]:
    """The products that an index is a sum of; what is neither sum nor product has no names."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _monomials(left, body, sizes, depth) | _monomials(right, body, sizes, depth)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            pairs = product(_monomials(left, body, sizes, depth), _monomials(right, body, sizes, depth))
            return {(tuple(sorted(first[0] + second[0])), first[1] | second[1]) for first, second in pairs}
        case ast.Name(id=name) if name in sizes:
            return {((name,), frozenset())}
        case ast.Name(id=name):
            value = expression_tree(_value(name, body)) if depth else None
            terms = _monomials(value, body, sizes, depth - 1) if value is not None else set()
            return terms if any(stride for stride, _ in terms) else {((), frozenset((name,)))}
    return {((), frozenset())}
