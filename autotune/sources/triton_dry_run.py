"""Run programs of a kernel in Triton on indices alone: which elements of arrays they reach.

A tile of whole numbers is an array of numpy, and a number is one of Python. What is loaded, and what is no
whole number, is unknown. Where a condition or a mask is unknown, programs only may reach what it guards; what
is found is what they surely reach.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune.core.expression_ops import COMPARE
from autotune.sources.dry_run import Beyond, Divergent, Memory, Steps
from autotune.sources.exact_statements import NotUnderstood
from autotune.sources.thread_values import Bools, Ints
from autotune.sources.triton_follower import BITS, UNKNOWN, Follower, Names, NotFollowed, bind
from autotune.sources.triton_module import LOOP_RANGES, Module, decorator_name

_MOST = 2**31  # larger numbers may not fit their type
_LARGEST_TILE = 1 << 20
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_FLOORED = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)  # with negative numbers, Triton has other results
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Return, ast.Expr),
    *(ast.Pass, ast.Assert),
)
_PLAIN = (int, float, str, type(None))
_SAME = ("multiple_of", "max_contiguous", "max_constancy", "constexpr")
_WITHOUT_EFFECT = ("assume", "static_assert", "device_assert", "static_print", "debug_barrier")


@dataclass(frozen=True)
class Places:
    """Elements of an array that pointers are at, counted from its begin; unknown ones are `UNKNOWN`."""

    memory: Memory
    elements: Any


@dataclass(frozen=True)
class Perhaps:
    """A mask that holds at most where another one does."""

    mask: Bools


@dataclass(frozen=True)
class Block:
    """A part of an array: what a block pointer is at, or, without offsets, what a descriptor moves."""

    base: Places
    extents: tuple[int, ...]  # of the array
    strides: tuple[int, ...]
    offsets: tuple[int, ...] | None
    sizes: tuple[int, ...]

    def at(self, offsets: Sequence[int], checked: Sequence[int]) -> tuple[Places, Bools]:
        """The elements of the part at offsets, and which of them are within the checked dimensions."""
        axes = np.ix_(*(at + np.arange(size) for at, size in zip(offsets, self.sizes, strict=True)))
        elements = self.base.elements + sum(one * step for one, step in zip(axes, self.strides, strict=True))
        inside = np.ones(self.sizes, np.bool_)
        for axis in checked:
            inside &= (axes[axis] >= 0) & (axes[axis] < self.extents[axis])
        return Places(self.base.memory, elements), inside


class TritonDryRun:
    """Runs programs of one launch."""

    def __init__(self, module: Module, steps: Steps) -> None:
        self.found: dict[tuple[int, str], Beyond | Divergent] = {}  # the first at each line of the file
        self.is_whole = True  # False once something may have reached arrays that could not be followed
        self._module, self._steps = module, steps

    def run(self, entry: str, named: Mapping[str, Any], grid: tuple[int, int, int], programs: Ints) -> None:
        """Run some programs, given by their indices along x, y and z in three rows.

        `named` has the kernel's arguments and constants: memories, numbers, None for a pointer that is not
        passed, and `UNKNOWN`.

        Raises:
            NotUnderstood: The kernel has what only a compiler understands.
            OutOfSteps: It takes too long; what was found until then is right.
        """
        given = {name: Places(one, 0) if isinstance(one, Memory) else one for name, one in named.items()}
        for x, y, z in programs.T.tolist():
            program = _Program(self._module, self._steps, self.found, grid, (x, y, z))
            try:
                program.run(self._module.kernels[entry], (), given)
            except (
                NotFollowed,
                ArithmeticError,
                LookupError,
                TypeError,
                ValueError,
            ):  # such as tiles that do not fit each other
                raise NotUnderstood from None
            self.is_whole = self.is_whole and program.is_whole


class _Program(Follower):
    def __init__(
        self,
        module: Module,
        steps: Steps,
        found: dict[tuple[int, str], Beyond | Divergent],
        grid: tuple[int, int, int],
        program: tuple[int, int, int],
    ) -> None:
        super().__init__(module)
        self.is_whole = True
        self._file, self._line = module, 0
        self._steps, self._found, self._grid, self._program = steps, found, grid, program
        self._is_sure = True  # False where statements only may run

    def run(self, function: ast.FunctionDef, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """As a follower does; after a `return` that only may happen, callers go on surely."""
        was_sure = self._is_sure
        returned = super().run(function, given, named)
        self._is_sure = was_sure
        return returned

    # statements

    def _statement(self, node: ast.stmt, names: Names, returned: list[Any]) -> bool:
        if not isinstance(node, _STATEMENTS):
            raise NotFollowed
        self._steps.pay(0)
        if self._module is self._file:
            self._line = node.lineno
        return super()._statement(node, names, returned)

    def _branch(
        self, test: Any, then: list[ast.stmt], otherwise: list[ast.stmt], names: Names, returned: list[Any]
    ) -> bool:
        if self._decided(test) is not None:
            return super()._branch(test, then, otherwise, names, returned)
        was_sure, self._is_sure = self._is_sure, False
        before = len(returned)
        ends = super()._branch(test, then, otherwise, names, returned)
        self._is_sure = was_sure and len(returned) == before
        return ends

    def _loop(self, node: ast.For | ast.While, names: Names, returned: list[Any]) -> None:
        if isinstance(node, ast.For):
            turns = self._turns(node.iter, names)
            for turn in turns or ():
                bind(node.target, turn, names)
                self._turn(node, names, returned)
            is_known = turns is not None
        else:
            while holds := self._decided(self._value(node.test, names)):
                self._turn(node, names, returned)
            is_known = holds is not None
        if not is_known:  # any number of turns: what they change is unknown
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    names[part.id] = self._forgotten(names.get(part.id, UNKNOWN))
            was_sure, self._is_sure = self._is_sure, False
            self._turn(node, names, returned)
            self._is_sure = was_sure

    def _turns(self, node: ast.expr, names: Names) -> range | None:
        """The numbers that a loop counts; None if they are unknown."""
        if not isinstance(node, ast.Call) or decorator_name(node) not in LOOP_RANGES:
            raise NotFollowed
        ends = [self._value(one, names) for one in node.args]
        if not _are_numbers(ends) or 0 in ends[2:3]:
            return None
        return range(*ends)

    def _turn(self, node: ast.For | ast.While, names: Names, returned: list[Any]) -> None:
        self._steps.pay(0)
        if self._block(node.body, names, returned):  # Triton has no `return` and no `break` in loops
            raise NotFollowed

    # values

    def _number(self, value: Any) -> Any:
        return value

    def _decided(self, value: Any) -> bool | None:
        if value is UNKNOWN or isinstance(value, Places | Perhaps | np.ndarray):
            return None
        return bool(value)

    def _joined(self, values: Sequence[Any]) -> Any:
        if not values:
            return None
        first, *rest = values
        if all(_is_same(first, one) for one in rest):
            return first
        return self._forgotten(*values)

    def _forgotten(self, *values: Any) -> Any:
        """What may be any of several values, or changes: of pointers to one array, at least that is known."""
        arrays = {id(one.memory): one.memory for one in values if isinstance(one, Places)}
        if len(arrays) == 1 and all(isinstance(one, Places) for one in values):
            return Places(next(iter(arrays.values())), UNKNOWN)
        self._lose(*values)
        return UNKNOWN

    def _lose(self, *values: Any) -> None:
        """Note arrays that are reached in a way which is not followed."""
        for one in values:
            if isinstance(one, Places):
                one.memory.is_lost = True
            elif isinstance(one, Block):
                one.base.memory.is_lost = True
            elif isinstance(one, tuple):
                self._lose(*one)

    def _item(self, held: Any, index: ast.expr, names: Names) -> Any:
        if isinstance(held, tuple):
            place = self._value(index, names)
            return held[place] if type(place) is int and -len(held) <= place < len(held) else UNKNOWN
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        places: list[slice | None] = []
        for one in parts:
            match one:
                case ast.Constant(None):
                    places.append(None)
                case ast.Slice(None, None, None):
                    places.append(slice(None))
                case _:
                    return self._forgotten(held)
        return self._shaped(held, lambda one: np.asarray(one)[tuple(places)])

    def _shaped(self, value: Any, change: Callable[[Any], Any]) -> Any:
        """A value whose shape changes."""
        if isinstance(value, Places):
            return replace(value, elements=self._shaped(value.elements, change))
        if isinstance(value, Perhaps):
            return Perhaps(change(value.mask))
        return change(value) if _is_whole(value) else UNKNOWN

    def _compared(self, left: Any, operator: ast.cmpop, right: Any) -> Any:
        if isinstance(operator, ast.Is | ast.IsNot):
            if left is UNKNOWN or right is UNKNOWN:
                return UNKNOWN
            return (left is right) == isinstance(operator, ast.Is)
        is_known = _is_whole(left) and _is_whole(right)
        if not is_known and not (isinstance(left, _PLAIN) and isinstance(right, _PLAIN)):
            return UNKNOWN
        try:
            return COMPARE[type(operator)](left, right)
        except (KeyError, TypeError):
            return UNKNOWN

    def _unary(self, operator: ast.unaryop, value: Any) -> Any:
        match operator, value:
            case ast.USub(), int() | float() | np.ndarray():
                return -value
            case ast.UAdd(), _:
                return value
            case ast.Invert(), bool():
                return not value
            case ast.Invert(), int() | np.ndarray():
                return ~value
        return UNKNOWN

    def _binary(self, left: Any, operator: ast.operator, right: Any) -> Any:
        if isinstance(right, Places) and isinstance(operator, ast.Add):
            left, right = right, left
        if isinstance(left, Places) and isinstance(operator, ast.Add | ast.Sub):
            return replace(left, elements=self._arithmetic(left.elements, operator, right))
        if isinstance(operator, ast.BitAnd):
            masks = [_most(one) for one in (left, right)]
            if any(isinstance(one, Perhaps) or one is UNKNOWN for one in (left, right)):
                known = [one for one in masks if one is not None]
                return Perhaps(np.logical_and.reduce(np.broadcast_arrays(*known))) if known else UNKNOWN
        self._lose(left, right)
        return self._arithmetic(left, operator, right)

    def _arithmetic(self, left: Any, operator: ast.operator, right: Any) -> Any:
        if not (_is_whole(left) and _is_whole(right)) or type(operator) not in _OPERATORS:
            return UNKNOWN
        if isinstance(operator, _FLOORED):
            divides = isinstance(operator, ast.FloorDiv | ast.Mod)
            if np.min(left) < 0 or np.min(right) < divides or np.max(right) >= (_MOST if divides else 31):
                return UNKNOWN
        if not isinstance(operator, _OF_BITS):  # where numpy takes conditions for numbers
            left, right = (one + 0 if np.asarray(one).dtype == np.bool_ else one for one in (left, right))
        found = _OPERATORS[type(operator)](left, right)
        size = np.size(found)
        if size > _LARGEST_TILE:
            raise NotFollowed
        self._steps.pay(size)
        return found if not size or (np.min(found) >= -_MOST and np.max(found) < _MOST) else UNKNOWN

    # functions of Triton

    def _built_in(self, node: ast.Call, called: str, own: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match called, own:
            case "program_id" | "num_programs", _:
                axis = next(iter([*own, *named.values()]), UNKNOWN)
                numbers = self._program if called == "program_id" else self._grid
                return numbers[axis] if type(axis) is int and 0 <= axis < 3 else UNKNOWN
            case "arange", [int(first), int(end)] if end - first <= _LARGEST_TILE:
                return np.arange(first, end, dtype=np.int64)
            case "cdiv", [one, other]:
                more = self._arithmetic(self._arithmetic(one, ast.Add(), other), ast.Sub(), 1)
                return self._arithmetic(more, ast.FloorDiv(), other)
            case "minimum" | "maximum", [one, other]:
                return _picked(called[:3], one, other)
            case "min" | "max", [one, other] if isinstance(node.func, ast.Name):
                return _picked(called, one, other)
            case "swizzle2d", [*numbers] if len(numbers) == 5 and _are_numbers(numbers):
                return _swizzled(*numbers)
            case "where", [np.ndarray() as condition, one, other] if _is_whole(one) and _is_whole(other):
                return np.where(condition, one, other)
            case "where", [_, one, other]:
                return self._forgotten(one, other)
            case "make_block_ptr" | "make_tensor_descriptor", _:
                return self._part(own, named, has_offsets=called == "make_block_ptr")
            case "advance", [Block() as block, tuple(moves)] if block.offsets and _are_numbers(moves):
                moved = zip(block.offsets, moves, strict=True)
                return replace(block, offsets=tuple(one + other for one, other in moved))
            case "load" | "store", [Block(offsets=None) as block, tuple(offsets), *_] if _are_numbers(
                offsets
            ):
                every = range(len(block.sizes))  # descriptors check all dimensions
                self._access(
                    *block.at(offsets, every), is_read=called == "load", is_written=called == "store"
                )
            case "load" | "store", [Block(offsets=tuple(offsets)) as block, *_]:
                checked = named.get("boundary_check", ())
                if not isinstance(checked, tuple) or not _are_numbers(checked):
                    raise NotFollowed
                self._access(
                    *block.at(offsets, checked), is_read=called == "load", is_written=called == "store"
                )
            case "load" | "store", [Places() as place, *rest]:
                mask = named.get("mask", next(iter(rest[called == "store" :]), None))
                self._access(place, mask, is_read=called == "load", is_written=called == "store")
            case _, [Places() as place, *rest] if called.startswith("atomic_"):
                mask = named.get("mask", next(iter(rest[1:]), None)) if called != "atomic_cas" else None
                self._access(place, mask, is_read=True, is_written=True)
            case "to" | "cast", [one, *kinds]:
                is_number = any(isinstance(kind, str) and kind in BITS for kind in [*kinds, *named.values()])
                if is_number and _is_whole(one):
                    return one
                self._lose(one)
            case "full", [tuple(shape), int(value), str()] if _are_numbers(shape):
                return np.full(shape, value, np.int64)
            case "expand_dims", [one, int(axis)]:
                return self._shaped(one, lambda array: np.expand_dims(array, axis))
            case "broadcast_to" | "reshape" | "view", [one, *shape]:
                sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else tuple(shape)
                if not _are_numbers(sizes):
                    return self._forgotten(one)
                change = np.broadcast_to if called == "broadcast_to" else np.reshape
                return self._shaped(one, lambda array: change(array, sizes))
            case "trans", [one]:
                return self._shaped(one, np.transpose)
            case "ravel", [one]:
                return self._shaped(one, np.ravel)
            case name, [one, *_] if name in _SAME:
                return one
            case name, _ if name in _WITHOUT_EFFECT:
                return None
            case "load" | "store" | "gather" | "scatter", [_, *_]:
                self.is_whole = False
            case _:
                self._lose(*own, *named.values())
        return UNKNOWN

    def _part(self, given: Sequence[Any], named: Mapping[str, Any], *, has_offsets: bool) -> Any:
        order = ("base", "shape", "strides", *(("offsets",) if has_offsets else ()), "block_shape")
        parts = dict(zip(order, given, strict=False)) | dict(named)
        base, *lists = (parts.get(name, UNKNOWN) for name in order)
        is_known = isinstance(base, Places) and type(base.elements) is int
        if not is_known or not all(isinstance(one, tuple) and _are_numbers(one) for one in lists):
            self._lose(*given, *named.values())
            return UNKNOWN
        extents, strides, *offsets, sizes = lists
        return Block(base, extents, strides, offsets[0] if offsets else None, sizes)

    def _access(self, place: Places, mask: Any, *, is_read: bool, is_written: bool) -> None:
        memory, elements = place.memory, place.elements
        if not _is_whole(elements) or memory.size is None:
            memory.is_lost = True
            return
        most = True if mask is None else _most(mask)
        is_sure = self._is_sure and most is not None and not isinstance(mask, Perhaps)
        at, may = np.broadcast_arrays(elements, True if most is None else most)
        self._steps.pay(4 * at.size)  # as many operations as it takes
        held = memory.size // memory.unit
        is_beyond = may & ((at < 0) | (at >= held))
        if is_beyond.any():
            memory.is_lost = True
            if is_sure:
                element = int(at[is_beyond][0])
                found = Beyond(memory, element, held, is_written, f"program {self._program}")
                self._found.setdefault((self._line, memory.name), found)
        inside = at[may & ~is_beyond]
        for reached, asked in ((memory.read, is_read), (memory.written, is_written)):
            if reached is not None and asked:
                reached[inside] = True


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(type(one) is int for one in values)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.ndarray)


def _most(mask: Any) -> Any:
    """Where a mask may hold; None if that may be anywhere."""
    if isinstance(mask, Perhaps):
        return mask.mask
    return np.asarray(mask).astype(np.bool_) if _is_whole(mask) else None


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, Places) and isinstance(other, Places):
        return one.memory is other.memory and _is_same(one.elements, other.elements)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return _is_whole(one) and _is_whole(other) and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


def _swizzled(row: int, column: int, rows: int, columns: int, tall: int) -> tuple[int, int]:
    """Where a tile is if tiles are taken in groups of rows, column by column."""
    group, within = divmod(row * columns + column, tall * columns)
    height = min(rows - group * tall, tall)
    return group * tall + within % height, within // height


def _picked(name: str, one: Any, other: Any) -> Any:
    if not (_is_whole(one) and _is_whole(other)):
        return UNKNOWN
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other) if name == "min" else max(one, other)
    return np.minimum(one, other) if name == "min" else np.maximum(one, other)
