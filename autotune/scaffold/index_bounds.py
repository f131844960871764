"""Find the largest index that a kernel uses, as an expression of sizes and parameters.

Indices are sums and products of thread and block indices, loop variables, sizes and macros. Each has an upper
bound, and so has the whole; what is read from memory has none. Halos, padding and local arrays show so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil

from autotune.core.brackets import closing
from autotune.scaffold.macros import WORD
from autotune.scaffold.shapes import LOOP, assigned, expression_tree

_DEPTH = 12  # of variables in an index, one in another
_AXES = {"x": 0, "y": 1, "z": 2}
_INDEXES = {  # of OpenCL, CUDA and the portable dialect
    **dict.fromkeys(("get_local_id", "threadIdx", "THREAD_INDEX"), "thread"),
    **dict.fromkeys(("get_group_id", "blockIdx", "BLOCK_INDEX"), "block"),
    **dict.fromkeys(("get_local_size", "blockDim", "BLOCK_EXTENT"), "threads"),
    **dict.fromkeys(("get_num_groups", "gridDim", "GRID_EXTENT"), "blocks"),
    **dict.fromkeys(("get_global_id",), "global thread"),
    **dict.fromkeys(("get_global_size",), "global threads"),
}
_PRODUCTS = ("mul24", "__mul24", "__umul24", "umul24")
_NEIGHBOUR = re.compile(r"\w\s*\+\s*\w+\s*<|<=?\s*\w+\s*-\s*\w")  # x + 1 < nx, x < nx - 1
_EDGE = re.compile(rf"==\s*\w+\s*-\s*\w|{_NEIGHBOUR.pattern}")  # x == nx - 1, too
_STORE = re.compile(r"\s*[-+*/]?=(?!=)")
_BLOCKS = re.compile(r"ceil_div\((\w+), (.*)\)$")

Monomial = tuple[str, ...]  # its atoms, sorted: sizes, parameters and numbers of blocks


@dataclass(frozen=True)
class Bound:
    """A sum of products: an upper bound."""

    terms: Mapping[Monomial, Fraction] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @classmethod
    def of(cls, number: int) -> Bound:
        """A number."""
        return cls({(): Fraction(number)})

    @classmethod
    def atom(cls, name: str) -> Bound:
        """A name."""
        return cls({(name,): Fraction(1)})

    def __add__(self, other: Bound) -> Bound:
        terms = dict(self.terms)
        for words, factor in other.terms.items():
            terms[words] = terms.get(words, Fraction(0)) + factor
        return Bound({words: factor for words, factor in terms.items() if factor})

    def __mul__(self, other: Bound) -> Bound:
        total = Bound()
        for words, factor in self.terms.items():
            for others, second in other.terms.items():
                total += Bound({tuple(sorted(words + others)): factor * second})
        return total

    def __neg__(self) -> Bound:
        return self * Bound.of(-1)

    @property
    def number(self) -> Fraction | None:
        """Its value if it has no names."""
        return self.terms.get((), Fraction(0)) if set(self.terms) <= {()} else None


@dataclass(frozen=True)
class LaunchShape:
    """What a launch plan says: blocks and threads along each axis, and the numbers behind names."""

    grid: tuple[str, ...]
    block: tuple[str, ...]
    names: frozenset[str]  # that an expression may read
    sizes: frozenset[str]
    numbers: Mapping[str, str]  # what macros and scalar arguments stand for

    def extent(self, kind: str, axis: int) -> Bound | None:
        """The upper bound of an index, or an extent, along an axis."""
        grid = self.grid[axis] if axis < len(self.grid) else "1"
        threads = self.bound(self.block[axis] if axis < len(self.block) else "1")
        if threads is None:
            return None
        blocks = Bound.of(int(grid)) if grid.isdigit() else Bound.atom(grid)
        last = Bound.of(-1)
        return {
            "thread": threads + last,
            "block": blocks + last,
            "threads": threads,
            "blocks": blocks,
            "global thread": blocks * threads + last,
            "global threads": blocks * threads,
        }[kind]

    def bound(self, text: str) -> Bound | None:
        """The bound of a text without variables."""
        return IndexBounds("", self).of(expression_tree(text))

    def text(self, bound: Bound) -> str:
        """A bound as an expression; blocks times the elements of a block are a size, rounded up."""
        parts = []
        for words, factor in sorted(bound.terms.items(), key=lambda item: (-len(item[0]), item[0])):
            names = [name for atom in words for name in self._rounded(atom, words)]
            count = ceil(factor) if factor > 0 else int(factor)
            if names and abs(count) == 1:
                parts.append(("-" if count < 0 else "") + " * ".join(names))
            elif count:
                parts.append(" * ".join((str(count), *names)))
        return " + ".join(parts).replace("+ -", "- ") or "1"

    def _rounded(self, atom: str, words: Monomial) -> tuple[str, ...]:
        for blocks in words:
            match = _BLOCKS.match(blocks)
            tile = self.bound(match[2]) if match else None
            if match is None or tile is None or len(tile.terms) != 1:
                continue
            (factors,) = tile.terms
            if tile.terms[factors] == 1 and all(words.count(one) >= factors.count(one) for one in factors):
                if atom == blocks:
                    return (f"round_up({match[1]}, {match[2]})",)
                return () if atom in factors else (atom,)
        return (atom,)


def _smaller(one: Bound | None, other: Bound | None) -> Bound | None:
    """The lower of two bounds where they differ by a number, else the first that is known."""
    if one is None or other is None:
        return one or other
    apart = (other + -one).number
    return other if apart is not None and apart < 0 else one


def _larger(one: Bound | None, other: Bound | None) -> Bound | None:
    """The higher of two bounds where that is known; a size is taken to be higher than a number."""
    if one is None or other is None:
        return None
    apart = (other + -one).number
    if apart is not None:
        return other if apart > 0 else one
    return one if other.number is not None else other if one.number is not None else None


class IndexBounds:
    """The upper bounds of the indices of one kernel's body."""

    def __init__(self, body: str, launch: LaunchShape) -> None:
        self._body, self._launch = body, launch

    def of_array(self, array: str) -> tuple[list[str], bool]:
        """How many elements the indices of an array need, and whether all of them have a bound."""
        moved = re.findall(rf"(?<![\w.]){array}\s*\+=\s*([^;]+);", self._body)
        places = self._places(array)
        checked = [place for place in places if not self._is_guarded(array, place)] or places
        indices = list(map(self._index, checked))
        found = [self._place(" + ".join((index, *moved))) for index in indices]
        known = [self._launch.text(one + Bound.of(1)) for one in found if one is not None]
        return list(dict.fromkeys(known)), len(known) == len(found) > 0

    def reads_neighbours(self, array: str) -> bool:
        """Whether guards seem to keep some indices of an array within a size."""
        return any(self._is_guarded(array, place) for place in self._places(array))

    def _places(self, array: str) -> list[int]:
        """Where the indices of an array begin."""
        return [match.end() for match in re.finditer(rf"\b{array}\s*\[", self._body)]

    def _index(self, place: int) -> str:
        return self._body[place : closing(self._body, place - 1)]

    def _is_guarded(self, array: str, place: int) -> bool:
        """Whether a condition of the statement at a place keeps an element's neighbours within a size.

        A condition anywhere will do for a distance from an index that another array is written at.
        """
        if self._has_edge:
            bases = set(_bases(self._index(place)))
            if any(index in bases and other != array for other, index in self._written):
                return True
        begin = max(self._body.rfind(mark, 0, place) for mark in ";{}")
        if begin >= 0 and self._body[begin] == "{":
            begin = max(self._body.rfind(mark, 0, begin) for mark in ";{}")
        statement = self._body[begin + 1 : place]
        return re.search(r"\bif\b|\?", statement) is not None and _NEIGHBOUR.search(statement) is not None

    @cached_property
    def _has_edge(self) -> bool:
        """Whether a condition, other than a loop's, asks for the edge of an array."""
        loops = [(loop.end(), closing(self._body, loop.end() - 1)) for loop in LOOP.finditer(self._body)]
        edges = [edge.start() for edge in _EDGE.finditer(self._body)]
        return any(not any(begin <= edge < end for begin, end in loops) for edge in edges)

    @cached_property
    def _written(self) -> frozenset[tuple[str, str]]:
        """The arrays that the kernel assigns elements of, with their indices."""
        uses = ((use[1], use.end()) for use in re.finditer(r"\b(\w+)\s*\[", self._body))
        stores = [use for use in uses if _STORE.match(self._body, closing(self._body, use[1] - 1) + 1)]
        trees = [(name, expression_tree(self._index(place))) for name, place in stores]
        return frozenset((name, ast.unparse(tree)) for name, tree in trees if tree is not None)

    def _place(self, index: str) -> Bound | None:
        """The bound of an index, which may be compared with a size as it stands."""
        below = re.search(rf"{re.escape(index.strip())}\s*<\s*(\w+)\s*[)&]", self._body)
        if below and below[1] in self._launch.names:
            return Bound.atom(below[1]) + Bound.of(-1)
        return self.of(expression_tree(index))

    def of(self, node: ast.expr | None, depth: int = _DEPTH) -> Bound | None:
        """The upper bound of an expression."""
        if not depth:
            return None
        match node:
            case ast.Constant(value=int(number)):
                return Bound.of(int(number))
            case ast.BinOp(left=left, op=operator, right=right):
                return self._operation(left, operator, right, depth)
            case ast.Name(id=name):
                return self._name(name, depth)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return Bound.of(-int(number))
            case ast.Attribute(value=ast.Name(id=name), attr=axis) if name in _INDEXES and axis in _AXES:
                return self._launch.extent(_INDEXES[name], _AXES[axis])
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=int(axis))]) if name in _INDEXES:
                return self._launch.extent(_INDEXES[name], int(axis))
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=axis)]) if name in _INDEXES:
                return self._launch.extent(_INDEXES[name], _AXES.get(axis, 0))
            case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _PRODUCTS:
                return self._operation(left, ast.Mult(), right, depth)
            case ast.Call(func=ast.Name(id="ceil_div")):  # the value of an argument
                return Bound.atom(ast.unparse(node))
            case ast.Call(func=ast.Name(id="min"), args=[left, right]):
                return _smaller(self.of(left, depth), self.of(right, depth))
            case ast.Call(func=ast.Name(id="max"), args=[left, right]):
                return _larger(self.of(left, depth), self.of(right, depth))
            case ast.Call(func=ast.Name(id="clamp"), args=[_, _, right]):
                return self.of(right, depth)
        return None

    def _operation(self, left: ast.expr, operator: ast.operator, right: ast.expr, depth: int) -> Bound | None:
        one, other = self.of(left, depth), self.of(right, depth)
        number = None if other is None else other.number
        match operator:
            case ast.Mod() | ast.BitAnd() if other is not None:
                return other if isinstance(operator, ast.BitAnd) else other + Bound.of(-1)
            case ast.Sub() if one is not None:
                return one + Bound.of(-int(number)) if number is not None else one + -self._constant(right)
            case ast.Div() | ast.RShift() if one is not None:
                divisor = number if isinstance(operator, ast.Div) or number is None else 2**number
                if divisor:
                    return one * Bound({(): 1 / Fraction(divisor)})
                fixed = self._constant(right)
                whole = f"({self._launch.text(one)}) // ({self._launch.text(fixed)})"
                return Bound.atom(f"({whole})") if fixed.terms else one
        if one is None or other is None:
            return None
        match operator:
            case ast.Add():
                return one + other
            case ast.Mult():
                return one * other
            case ast.LShift() if number is not None:
                return one * Bound.of(2 ** int(number))
        return None

    def _constant(self, node: ast.expr) -> Bound:
        """What is subtracted at least: a macro's value or a size, 0 for what varies."""
        words = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        fixed = words <= self._launch.names | self._launch.numbers.keys()
        is_call = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return (self.of(node) if fixed and not is_call else None) or Bound()

    def _name(self, name: str, depth: int) -> Bound | None:
        if name in self._launch.numbers:
            return self.of(expression_tree(self._launch.numbers[name]), depth - 1)
        if name in self._launch.names:
            return Bound.atom(name)
        guards = [self.of(expression_tree(text), depth - 1) for text in self._guards(name)]
        values = assigned(name, self._body)
        changed = re.search(rf"(?<![\w.]){name}\s*(?:[-+*]=|\+\+)|\+\+{name}\b", self._body) is not None
        below = [guard + Bound.of(-1) for guard in guards if guard is not None]
        sized = [guard for guard in below if self._launch.sizes & set(WORD.findall(self._launch.text(guard)))]
        if len(set(sized)) > 1 and len(set(values)) > 1:  # set anew for another array: which bound is whose?
            return None
        if sized or (changed and below):
            return sized[-1] if sized else sum(dict.fromkeys(below), Bound())
        bounds = [self.of(expression_tree(text), depth - 1) for text in dict.fromkeys(values)]
        if changed or not bounds or None in bounds:
            return None
        return max(filter(None, bounds), key=lambda one: (len(one.terms), one.number or 0))

    def _guards(self, name: str) -> Iterable[str]:
        """What a variable is compared with, as an exclusive bound."""
        for match in re.finditer(rf"(?<![\w.]){name}\b\s*(<=?|>=)(?![<>])\s*", self._body):
            end, depth = match.end(), 0
            while end < len(self._body) and (depth or self._body[end] not in ");&|,?{}<>"):
                depth += (self._body[end] == "(") - (self._body[end] == ")")
                end += 1
            bound = self._body[match.end() : end].strip()
            yield f"{bound} + 1" if match[1] == "<=" else bound


def _bases(index: str) -> Iterator[str]:
    """What an index adds distances to: `i + plane` for `i + plane - 1`, and `i`."""
    node = expression_tree(index)
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        node = node.left
        yield ast.unparse(node)
