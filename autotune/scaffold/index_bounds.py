"""Find the largest index that a kernel uses, as an expression of sizes and parameters.

Indices are sums and products of thread and block indices, loop variables, sizes and macros. Each has an upper
bound, and so has the whole; what is read from memory has none. Halos, padding and local arrays show so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil

from autotune.core.syntax import parse_expression
from autotune.sources.facts import Access, Facts, addends_of, names_in
from autotune.sources.statements import parsed_expression

_BLOCKS = re.compile(r"ceil_div\((\w+), (.*)\)$")

Monomial = tuple[str, ...]  # its atoms, sorted: sizes, parameters and numbers of blocks


@dataclass(frozen=True)
class UpperBound:
    """A sum of products: an upper bound."""

    terms: Mapping[Monomial, Fraction] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @classmethod
    def of(cls, number: int) -> UpperBound:
        """A number."""
        return cls({(): Fraction(number)})

    @classmethod
    def atom(cls, name: str) -> UpperBound:
        """A name."""
        return cls({(name,): Fraction(1)})

    def __add__(self, other: UpperBound) -> UpperBound:
        terms = dict(self.terms)
        for words, factor in other.terms.items():
            terms[words] = terms.get(words, Fraction(0)) + factor
        return UpperBound({words: factor for words, factor in terms.items() if factor})

    def __mul__(self, other: UpperBound) -> UpperBound:
        total = UpperBound()
        for words, factor in self.terms.items():
            for others, second in other.terms.items():
                total += UpperBound({tuple(sorted(words + others)): factor * second})
        return total

    def __neg__(self) -> UpperBound:
        return self * UpperBound.of(-1)

    @property
    def number(self) -> Fraction | None:
        """Its value if it has no names."""
        return self.terms.get((), Fraction(0)) if set(self.terms) <= {()} else None


def expression_of(text: str) -> ast.expr | None:
    """A text of a launch plan or of C as a syntax tree; None for one that is neither."""
    try:
        return parse_expression(text)
    except (SyntaxError, ValueError):
        return parsed_expression(text)


@dataclass(frozen=True)
class LaunchShape:
    """What a launch plan says: blocks and threads along each axis, and the numbers behind names."""

    grid: tuple[str, ...]
    block: tuple[str, ...]
    names: frozenset[str]  # that an expression may read
    sizes: frozenset[str]
    numbers: Mapping[str, ast.expr]  # what constants and scalar arguments stand for

    def extent(self, kind: str, axis: int) -> UpperBound | None:
        """The upper bound of an index such as `threadIdx`, or an extent such as `blockDim`, along an axis."""
        is_of_grid = kind in ("blockIdx", "gridDim")
        texts = self.grid if is_of_grid else self.block
        text = texts[axis] if axis < len(texts) else "1"
        extent = UpperBound.atom(text) if is_of_grid and not text.isdigit() else self.bound(text)
        return extent + UpperBound.of(-1) if extent is not None and kind.endswith("Idx") else extent

    def bound(self, text: str) -> UpperBound | None:
        """The bound of a text without variables."""
        return IndexBounds(Facts(), self).of(expression_of(text))

    def text(self, bound: UpperBound) -> str:
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
            if tile.terms[factors] == 1 and all(
                words.count(factor) >= factors.count(factor) for factor in factors
            ):
                if atom == blocks:
                    return (f"round_up({match[1]}, {match[2]})",)
                return () if atom in factors else (atom,)
        return (atom,)


def _smaller(first: UpperBound | None, second: UpperBound | None, sizes: Set[str]) -> UpperBound | None:
    """The lower of two bounds where they differ by a number, else one of sizes alone, or the first known."""
    if first is None or second is None:
        return first or second
    apart = (second + -first).number
    if apart is not None:
        return second if apart < 0 else first
    return second if _names_of(second) <= sizes and not _names_of(first) <= sizes else first


def _larger(first: UpperBound | None, second: UpperBound | None) -> UpperBound | None:
    """The higher of two bounds where that is known; a size is taken to be higher than a number."""
    if first is None or second is None:
        return None
    apart = (second + -first).number
    if apart is not None:
        return second if apart > 0 else first
    return first if second.number is not None else second if first.number is not None else None


class IndexBounds:
    """The upper bounds of the indices of one kernel."""

    def __init__(self, facts: Facts, launch: LaunchShape) -> None:
        self._facts, self._launch = facts, launch
        self._known: dict[str, UpperBound | None] = {}  # of variables; None for one that depends on itself

    def of_array(self, array: str) -> tuple[list[str], bool]:
        """How many elements the indices of an array need, and whether all of them have a bound."""
        uses = self._facts.of(array)
        checked = [use for use in uses if not self._is_guarded(use)] or uses
        places = [(self._around(use), use.index) for use in checked]
        bounds = [around._compared(index) or around.of(index) for around, index in places]
        known = [self._launch.text(bound + UpperBound.of(1)) for bound in bounds if bound is not None]
        is_complete = len(known) == len(bounds) > 0 and array not in self._facts.escaped
        return list(dict.fromkeys(known)), is_complete

    def _around(self, use: Access) -> IndexBounds:
        """The same without loops that an access is not in, if one that it is in has the same variable."""
        own = {part for guard in use.guards for part in self._heads.get(id(guard), ())}
        loops = [(ast.unparse(test.left), test) for test in self._facts.compared if test.is_loop]
        names = {name for name, loop in loops if id(loop.right) in own}
        others = {id(loop) for name, loop in loops if name in names and id(loop.right) not in own}
        if not others:
            return self
        left = [test for test in self._facts.compared if id(test) not in others]
        return IndexBounds(replace(self._facts, compared=left), self._launch)

    @cached_property
    def _heads(self) -> Mapping[int, frozenset[int]]:
        """The parts of each loop's head, by their identities."""
        return {id(head): frozenset(map(id, ast.walk(head))) for head in self._facts.loops}

    def reads_neighbours(self, array: str) -> bool:
        """Whether guards seem to keep some indices of an array within a size."""
        return any(self._is_guarded(use) for use in self._facts.of(array))

    def _is_guarded(self, use: Access) -> bool:
        """Whether a condition keeps an element's neighbours within a size."""
        return any(_keeps_inside(guard) for guard in use.guards[-1:] if id(guard) not in self._heads)

    def _compared(self, index: ast.expr) -> UpperBound | None:
        """The bound of an expression that is compared with a size as it stands, or has such a sum."""
        added = [*addends_of(index)]
        for test in self._facts.compared:
            is_size = isinstance(test.right, ast.Name) and test.right.id in self._launch.names
            if not is_size or test.operator != "<":
                continue
            bounded = [ast.unparse(part) for part in addends_of(test.left)]
            others = [part for part in added if ast.unparse(part) not in bounded]
            if len(others) + len(bounded) == len(added) and (len(bounded) > 1 or not others):
                total = UpperBound.atom(ast.unparse(test.right)) + UpperBound.of(-1)
                for bound in map(self.of, others):
                    if bound is None:
                        return None
                    total += bound
                return total
        return None

    def of(self, node: ast.expr | None) -> UpperBound | None:
        """The upper bound of an expression."""
        match node:
            case ast.Constant(value=int(number)):
                return UpperBound.of(int(number))
            case ast.BinOp(left=left, op=operator, right=right):
                return self._compared(node) or self._operation(left, operator, right)
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(
                ast.Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim" as kind), "x" | "y" | "z" as axis
            ):
                return self._launch.extent(kind, "xyz".index(axis))
            case ast.IfExp(body=body, orelse=otherwise):
                return _larger(self.of(body), self.of(otherwise))
            case ast.Call(func=ast.Name(id="ceil_div")):  # the value of an argument
                return UpperBound.atom(ast.unparse(node))
            case ast.Call(func=ast.Name(id="min"), args=[left, right]):
                return _smaller(self.of(left), self.of(right), self._launch.sizes)
            case ast.Call(func=ast.Name(id="max"), args=[left, right]):
                return _larger(self.of(left), self.of(right))
            case ast.Call(func=ast.Name(id="clamp"), args=[_, _, right]):
                return self.of(right)
        return None

    def _operation(self, left: ast.expr, operator: ast.operator, right: ast.expr) -> UpperBound | None:
        first, second = self.of(left), self.of(right)
        number = None if second is None else second.number
        match operator:
            case ast.Mod() | ast.BitAnd() if second is not None:
                return second if isinstance(operator, ast.BitAnd) else second + UpperBound.of(-1)
            case ast.Sub() if first is not None:
                return (
                    first + UpperBound.of(-int(number))
                    if number is not None
                    else first + -self._constant(right)
                )
            case ast.Div() | ast.FloorDiv() | ast.RShift() if first is not None:
                divisor = 2**number if isinstance(operator, ast.RShift) and number is not None else number
                if divisor:
                    return first * UpperBound({(): 1 / Fraction(divisor)})
                fixed = self._constant(right)
                whole = f"({self._launch.text(first)}) // ({self._launch.text(fixed)})"
                return UpperBound.atom(f"({whole})") if fixed.terms else first
        if first is None or second is None:
            return None
        match operator:
            case ast.Add():
                return first + second
            case ast.Mult():
                return first * second
            case ast.LShift() if number is not None:
                return first * UpperBound.of(2 ** int(number))
        return None

    def _constant(self, node: ast.expr) -> UpperBound:
        """What is subtracted at least: a macro's value or a size, 0 for what varies."""
        words = names_in(node)
        fixed = words <= self._launch.names | self._launch.numbers.keys()
        is_call = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return (self.of(node) if fixed and not is_call else None) or UpperBound()

    def _name(self, name: str) -> UpperBound | None:
        if name in self._launch.numbers:
            return self.of(self._launch.numbers[name])
        if name in self._launch.names:
            return UpperBound.atom(name)
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._variable(name)
        return self._known[name]

    def _variable(self, name: str) -> UpperBound | None:
        values = self._facts.values.get(name, [])
        bounds = [self._raised(self.of(value), name) for value in values]
        is_open = name in self._facts.grows or not bounds or None in bounds
        guards = [self.of(right) for right in self._guards(name)]
        below = [guard + UpperBound.of(-1) for guard in guards if guard is not None]
        sized = [guard for guard in below if self._launch.sizes & _names_of(guard)]
        texts = {ast.unparse(value) for value in values}
        if len(set(sized)) > 1 and len(texts) > 1:  # set anew for another array: which bound is whose?
            return None
        if sized or (is_open and below):
            return sized[-1] if sized else sum(dict.fromkeys(below), UpperBound())
        if is_open:
            return None
        return max(filter(None, bounds), key=lambda bound: (len(bound.terms), bound.number or 0))

    def _raised(self, bound: UpperBound | None, name: str) -> UpperBound | None:
        """A bound of a variable with all that may be added to it after that."""
        steps = [self.of(step) for step in self._facts.raised.get(name, ())]
        known = [step for step in steps if step is not None]
        if bound is None or len(known) < len(steps):
            return None
        # a condition may leave a negative step out
        return sum((step for step in known if any(factor > 0 for factor in step.terms.values())), bound)

    def _guards(self, name: str) -> Iterator[ast.expr]:
        """What a variable is compared with, as an exclusive bound."""
        one = ast.Constant(value=1)
        for compared in self._facts.compared:
            if isinstance(compared.left, ast.Name) and compared.left.id == name:
                is_open = compared.operator == "<"
                yield compared.right if is_open else ast.BinOp(compared.right, ast.Add(), one)


def _names_of(bound: UpperBound) -> set[str]:
    return {name for words in bound.terms for atom in words for name in re.findall(r"[A-Za-z_]\w*", atom)}


def _keeps_inside(guard: ast.expr) -> bool:
    """True for a condition on a neighbour: `x + 1 < nx`, `x < nx - 1`, not `x == nx - 1`."""
    is_else = isinstance(guard, ast.UnaryOp)
    for part in ast.walk(guard):
        match part:
            case ast.Compare(_, [ast.Eq() | ast.NotEq() as operator], [ast.BinOp(op=ast.Sub())]):
                if is_else == isinstance(operator, ast.Eq):
                    return True
            case ast.Compare(ast.BinOp(op=ast.Add()), [ast.Lt() | ast.LtE()]):
                return True
            case ast.Compare(_, [ast.Lt() | ast.LtE()], [ast.BinOp(op=ast.Sub())]):
                return True
    return False
