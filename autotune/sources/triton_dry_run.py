"""Run programs of a kernel in Triton on indices alone: which elements of arrays they reach.

A tile of whole numbers is an array of numpy, a number is a scalar of numpy with the bits that Triton counts
with, and a constant is a number of Python. What is loaded, and what is no whole number, is unknown. Where a
condition or a mask is unknown, programs only may reach what it guards; what is found is what they surely
reach. Nothing of the source is run.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune.core.expression_ops import COMPARE
from autotune.core.launch_plan import NO_ARRAY
from autotune.core.records import Launch
from autotune.sources.dry_run import Beyond, Divergent, Memory, Steps
from autotune.sources.exact_statements import NotUnderstood
from autotune.sources.thread_values import Bools, Ints
from autotune.sources.triton import entry_signature, parameters
from autotune.sources.triton_follower import Follower
from autotune.sources.triton_module import LOOP_RANGES, Module, decorator_name

UNKNOWN = object()
_Names = dict[str, Any]
_WHOLE = ("int32", "int64")  # types of Triton that are followed
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
_MOST = 2**31  # of constants
_FLOORED = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)  # with negative numbers, Triton has other results
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_PLAIN = (int, float, str, type(None), np.integer, np.bool_)
_SAME = ("multiple_of", "max_contiguous", "max_constancy", "constexpr")
_WITHOUT_EFFECT = ("assume", "static_assert", "device_assert", "static_print", "debug_barrier")


@dataclass(frozen=True)
class Places:
    """Elements of an array that pointers are at, counted from its begin; unknown ones are `UNKNOWN`."""

    memory: Memory
    elements: Any


@dataclass(frozen=True)
class OddTile:
    """A tile whose length is no power of two: Triton does not compile it."""

    length: int


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


class _NotFollowed(Exception):
    """The kernel is too large or too deep to follow, or has what is not understood."""


class TritonDryRun(Follower[Any]):
    """Runs programs of one launch."""

    unknown = UNKNOWN

    def __init__(
        self, module: Module, steps: Steps, *, most_turns: int = sys.maxsize, is_wide: bool = False
    ) -> None:
        """Prepare to run.

        Of a loop with more turns than `most_turns`, so many and the last one run: before it, values change
        as they did last. A run that is wide counts with 64 bits where Triton counts with 32.
        """
        super().__init__(module)
        self.found: dict[
            tuple[int, str], Beyond | Divergent | OddTile
        ] = {}  # the first at each line of the file
        # the array of each access, where in it a program surely is, and False where that is unknown
        self.reached: list[tuple[str, bytes, bool]] = []
        self.is_whole = True  # False once something may have reached arrays that could not be followed
        self._file = module
        self._steps, self._most_turns = steps, most_turns
        self._whole: type[np.int32 | np.int64] = np.int64 if is_wide else np.int32
        self._line = self._number = 0
        self._writers: dict[str, Ints] = {}  # the number of the last program that wrote each element, from 1

    def run(self, launch: Launch, passed: Mapping[str, Memory | int | None], programs: Ints) -> None:
        """Run some programs of a launch, given by their indices along x, y and z in three rows.

        `passed` has the arguments of the launch by name: memories, numbers, and None for other values.

        Raises:
            NotUnderstood: The kernel has what only a compiler understands.
            OutOfSteps: It takes too long; what was found until then is right.
        """
        entry, kinds, named = entry_signature(launch.entry)
        function = self._file.kernels[entry]
        taken = [one.name for one in parameters(function.args) if not one.is_constant]
        values = iter(launch.arguments)
        for name, kind in zip(taken, kinds, strict=True):
            named[name] = None if kind == NO_ARRAY else self._passed(passed[next(values)], kind)
        for self._number, program in enumerate(programs.T.tolist(), 1):
            self._grid, self._program = launch.grid, tuple(program)
            try:
                with np.errstate(over="ignore"):
                    self.follow(self._file, function, (), named)
            except (_NotFollowed, ArithmeticError, LookupError, TypeError, ValueError):
                raise NotUnderstood from None  # such as tiles that do not fit each other

    def _passed(self, one: Memory | int | None, kind: str) -> Any:
        """An argument of a launch, of a type as an entry names it."""
        if isinstance(one, Memory):
            return Places(one, np.int64(0))  # places in memory are counted with 64 bits
        is_long = kind.startswith(("i64", "u64", "u32"))
        return UNKNOWN if one is None or kind[0] not in "iu" else (np.int64 if is_long else self._whole)(one)

    # statements

    def _statement(self, node: ast.stmt, names: _Names, returned: list[Any]) -> bool:
        self._steps.pay(0)
        if self._module is self._file:
            self._line = node.lineno
        return super()._statement(node, names, returned)

    def _not_followed(self, node: ast.stmt) -> None:
        raise _NotFollowed

    def _loop(self, node: ast.For | ast.While, names: _Names, returned: list[Any]) -> None:
        if isinstance(node, ast.For):
            turns = self._turns(node.iter, names)
            chosen, left_out = turns or ((), 0)
            before = names
            for turn in chosen:
                if left_out and turn is chosen[-1]:
                    names |= {name: self._carried(old, names[name], left_out) for name, old in before.items()}
                before = dict(names)
                self._bind(node.target, turn, names)
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

    def _turns(self, node: ast.expr, names: _Names) -> tuple[Sequence[Any], int] | None:
        """The numbers that a loop counts, and how many it leaves out before the last; None if unknown."""
        if not isinstance(node, ast.Call) or decorator_name(node) not in LOOP_RANGES:
            raise _NotFollowed
        ends = [self._value(one, names) for one in node.args]
        if not _are_numbers(ends) or 0 in ends[2:3]:
            return None
        every = range(*map(int, ends))
        chosen = every if len(every) <= self._most_turns + 1 else [*every[: self._most_turns], every[-1]]
        typed = [one for one in ends if type(one) is not int]
        if typed or decorator_name(node) == "range":
            kind = np.result_type(self._whole, *typed).type
            return [kind(one) for one in chosen], len(every) - len(chosen)
        return chosen, len(every) - len(chosen)

    def _carried(self, old: Any, new: Any, turns: int) -> Any:
        """What further turns of a loop make of a value that each changes as the last one has."""
        match old, new:
            case _ if _is_same(old, new):
                return new
            case tuple(), tuple() if len(old) == len(new):
                return tuple(self._carried(*pair, turns) for pair in zip(old, new, strict=True))
            case Places(memory), Places(other) if memory is other:
                return Places(other, self._carried(old.elements, new.elements, turns))
            case Block(offsets=tuple(first)), Block(offsets=tuple(second)):
                return replace(new, offsets=self._carried(first, second, turns))
            case _ if _is_whole(old) and _is_whole(new) and np.asarray(new).dtype != np.bool_:
                step = np.subtract(new, old, dtype=np.int64)
                kind = self._whole if type(new) is int else new.dtype
                return (new + turns * step).astype(kind)
        return self._forgotten(old, new)

    def _turn(self, node: ast.For | ast.While, names: _Names, returned: list[Any]) -> None:
        self._steps.pay(0)
        if self._block(node.body, names, returned):  # Triton has no `return` and no `break` in loops
            raise _NotFollowed

    # values

    def _decided(self, value: Any) -> bool | None:
        if value is UNKNOWN or isinstance(value, Places | Perhaps | np.ndarray):
            return None
        return bool(value)

    def _joined(self, values: Sequence[Any]) -> Any:
        if not values:
            return None
        return values[0] if all(_is_same(values[0], one) for one in values) else self._forgotten(*values)

    def _constant(self, value: Any) -> Any:
        return value if isinstance(value, int | float | str | None) else UNKNOWN

    def _listed(self, values: Sequence[Any]) -> Any:
        return tuple(values)

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

    def _item(self, held: Any, index: ast.expr, names: _Names) -> Any:
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

    def _compared(self, values: Sequence[Any], operators: Sequence[ast.cmpop]) -> Any:
        if len(values) > 2:
            return UNKNOWN
        (left, right), (operator,) = values, operators
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
            case ast.USub(), int() | float() | np.ndarray() | np.integer():
                return -value
            case ast.UAdd(), _:
                return value
            case ast.Invert(), bool():
                return not value
            case ast.Invert(), int() | np.ndarray() | np.integer() | np.bool_():
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
            if np.min(left) < 0 or np.min(right) < divides or (not divides and np.max(right) > 30):
                return UNKNOWN
        if not isinstance(operator, _OF_BITS):  # where numpy takes conditions for numbers
            left, right = (self._typed(one, "int32") if _is_bool(one) else one for one in (left, right))
        is_large = any(type(one) is int and not -_MOST <= one < _MOST for one in (left, right))
        if is_large:  # Triton may take it for one without a sign
            return UNKNOWN
        found = _OPERATORS[type(operator)](left, right)
        if np.size(found) > _LARGEST_TILE:
            raise _NotFollowed
        self._steps.pay(np.size(found))
        return found

    def _typed(self, one: Any, kind: str) -> Any:
        """Whole numbers as a type of Triton holds them."""
        return np.asarray(one).astype(np.int64 if kind == "int64" else self._whole)[()]

    # functions of Triton

    def _built_in(self, called: str, own: Sequence[Any], named: Mapping[str, Any], *, is_method: bool) -> Any:
        match called, own:
            case "program_id" | "num_programs", _:
                axis = next(iter([*own, *named.values()]), UNKNOWN)
                numbers = self._program if called == "program_id" else self._grid
                return self._whole(numbers[axis]) if type(axis) is int and 0 <= axis < 3 else UNKNOWN
            case "arange", [int(first), int(end)] if end - first <= _LARGEST_TILE:
                if self._is_sure and (end - first) & (end - first - 1):
                    self.found.setdefault((self._line, ""), OddTile(end - first))
                return np.arange(first, end, dtype=self._whole)
            case "cdiv", [one, other]:
                more = self._arithmetic(self._arithmetic(one, ast.Add(), other), ast.Sub(), 1)
                return self._arithmetic(more, ast.FloorDiv(), other)
            case "minimum" | "maximum", [one, other]:
                return _picked(called[:3], one, other)
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
                    raise _NotFollowed
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
                kind = next((kind for kind in [*kinds, *named.values()] if isinstance(kind, str)), "")
                if kind in _WHOLE and _is_whole(one):
                    return self._typed(one, kind)
                self._lose(one)
            case "full", [tuple(shape), int() | np.integer() as value, str(kind)] if _are_numbers(shape):
                return self._typed(np.full(shape, value), kind)
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
        is_known = isinstance(base, Places) and _are_numbers([base.elements])
        if not is_known or not all(isinstance(one, tuple) and _are_numbers(one) for one in lists):
            self._lose(*given, *named.values())
            return UNKNOWN
        extents, strides, *offsets, sizes = lists
        return Block(base, extents, strides, offsets[0] if offsets else None, sizes)

    def _access(self, place: Places, mask: Any, *, is_read: bool, is_written: bool) -> None:
        memory, elements = place.memory, place.elements
        most = True if mask is None else _most(mask)
        is_sure = self._is_sure and most is not None and not isinstance(mask, Perhaps)
        if not _is_whole(elements):
            memory.is_lost = True
            self.reached.append((memory.name, b"", not is_sure))
            return
        at, may = np.broadcast_arrays(elements, True if most is None else most)
        self.reached.append((memory.name, at[may].tobytes() if is_sure else b"", True))
        if memory.size is None:
            memory.is_lost = True
            return
        self._steps.pay(4 * at.size)  # as many operations as it takes
        held = memory.size // memory.unit
        is_beyond = may & ((at < 0) | (at >= held))
        if is_beyond.any():
            memory.is_lost = True
            if is_sure:
                element = int(at[is_beyond][0])
                found = Beyond(memory, element, held, is_written, f"program {self._program}")
                self.found.setdefault((self._line, memory.name), found)
        inside = at[may & ~is_beyond]
        for reached, asked in ((memory.read, is_read), (memory.written, is_written)):
            if reached is not None and asked:
                reached[inside] = True
        if is_written and not is_read and is_sure and memory.written is not None:
            writers = self._writers.setdefault(memory.name, np.zeros(held, np.int64))
            memory.is_overwritten |= bool(((writers[inside] != self._number) & (writers[inside] > 0)).any())
            writers[inside] = self._number


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(one, int | np.integer) and not _is_bool(one) for one in values)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.ndarray | np.integer | np.bool_)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_


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
