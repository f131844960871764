"""Run programs of a kernel in Triton on indices alone: which elements of arrays they reach.

A tile of whole numbers is a value with a place for each element, and so is a number that is not known when
Triton compiles; a constant is as Python has it, and a tuple is a list. What is loaded, and what is no whole
number, is unknown. Where a condition or a mask is unknown, programs only may reach what it guards; what is
found is what they surely reach. Nothing of the source is run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from autotune.core.expression_ops import BINARY, COMPARE
from autotune.core.launch_plan import NO_ARRAY
from autotune.core.records import Launch
from autotune.sources.launch_run import FollowedArray, LaunchRun, Mask, NotUnderstood, OddTile, Steps
from autotune.sources.thread_values import (
    EXACT,
    NO,
    UNKNOWN,
    YES,
    Ints,
    Value,
    arithmetic,
    common,
    compared,
    converted,
    joined,
    whole,
)
from autotune.sources.triton import entry_signature, parameters
from autotune.sources.triton_follower import WHOLE_TYPES, Follower
from autotune.sources.triton_module import LOOP_RANGES, TritonModule, decorator_name
from autotune.sources.whole_numbers import OPERATORS

_Names = dict[str, Any]
_LARGEST_TILE = 1 << 20
_MOST = 2**31  # of constants: Triton may take a larger one for one without a sign
_FOLLOWED = (*OPERATORS, ast.FloorDiv, ast.Mod)
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_NUMBERS = (int, float)
_SAME = ("multiple_of", "max_contiguous", "max_constancy", "constexpr")
_WITHOUT_EFFECT = ("assume", "static_assert", "device_assert", "static_print", "debug_barrier")


@dataclass(frozen=True)
class Places:
    """Elements of an array that pointers are at, counted from its begin."""

    memory: FollowedArray
    elements: Value


@dataclass(frozen=True)
class Block:
    """A part of an array: what a block pointer is at, or, without offsets, what a descriptor moves."""

    base: Places
    extents: Sequence[int]  # of the array
    strides: Sequence[int]
    offsets: Sequence[int] | None
    sizes: Sequence[int]

    def at(self, offsets: Sequence[int], checked: Sequence[int]) -> tuple[Places, Value]:
        """The elements of the part at offsets, and which of them are within the checked dimensions."""
        axes = np.ix_(*(at + np.arange(size) for at, size in zip(offsets, self.sizes, strict=True)))
        elements = sum(axis * stride for axis, stride in zip(axes, self.strides, strict=True))
        inside = np.ones(self.sizes, np.bool_)
        for axis in checked:
            inside &= (axes[axis] >= 0) & (axes[axis] < self.extents[axis])
        base = self.base.elements
        places = Places(self.base.memory, base._replace(data=base.data + elements))
        return places, Value("i1", inside.astype(np.int64), YES)


class _NotFollowed(Exception):
    """The kernel is too large, or has what is not understood."""


class TritonDryRun(LaunchRun, Follower[Any]):
    """Runs programs of one launch."""

    unknown = UNKNOWN

    def __init__(
        self, module: TritonModule, steps: Steps, *, most_turns: int = sys.maxsize, is_wide: bool = False
    ) -> None:
        """Prepare to run.

        Of a loop with more turns than `most_turns`, so many and the last one run: before it, values change
        as they did last. A run that is wide counts with 64 bits where Triton counts with 32.
        """
        LaunchRun.__init__(self, steps)
        Follower.__init__(self, module)
        self._file, self._most_turns, self._is_wide = module, most_turns, is_wide
        self._whole = "i64" if is_wide else "i32"
        self._number = 0  # of the program
        self._writers: dict[str, Ints] = {}  # the number of the last program that wrote each element, from 1

    def run(self, launch: Launch, passed: Mapping[str, FollowedArray | int | None], programs: Ints) -> None:
        """Run some programs of a launch, given by their indices along x, y and z in three rows.

        `passed` has the arguments of the launch by name: memories, numbers, and None for other values.

        Raises:
            NotUnderstood: The kernel has what only a compiler understands.
            OutOfSteps: It takes too long; what was found until then is right.
        """
        entry, kinds, named = entry_signature(launch.entry)
        function = self._file.kernels[entry]
        taken = [parameter.name for parameter in parameters(function.args) if not parameter.is_constant]
        values = iter(launch.arguments)
        for name, kind in zip(taken, kinds, strict=True):
            named[name] = None if kind == NO_ARRAY else self._passed(passed[next(values)], kind)
        for self._number, program in enumerate(programs.T.tolist(), 1):
            self._grid, self._program = launch.grid, tuple(program)
            try:
                self.follow(self._file, function, (), named)
            except (_NotFollowed, ArithmeticError, LookupError, TypeError, ValueError):
                raise NotUnderstood from None  # such as tiles that do not fit each other

    def _passed(self, given: FollowedArray | int | None, kind: str) -> Any:
        """An argument of a launch, of a type as an entry names it."""
        if isinstance(given, FollowedArray):
            return Places(given, whole(0, "i64"))  # places in memory are counted with 64 bits
        if given is None or kind[0] not in "iu":
            return UNKNOWN
        return whole(given, "i64" if self._is_wide or kind.startswith(("i64", "u64", "u32")) else "i32")

    def _who(self, lane: int) -> str:
        return f"program {self._program}"

    # statements

    def _statement(self, node: ast.stmt, names: _Names, returned: list[Any]) -> bool:
        self._steps.pay(0)
        if self._module is self._file:
            self._at = node.lineno
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
        ends = [self._value(argument, names) for argument in node.args]
        numbers = _numbers(ends)
        if numbers is None or 0 in numbers[2:3]:
            return None
        every = range(*numbers)
        chosen = every if len(every) <= self._most_turns + 1 else [*every[: self._most_turns], every[-1]]
        typed = [end for end in ends if isinstance(end, Value)]
        if not typed and decorator_name(node) != "range":
            return chosen, len(every) - len(chosen)
        kind = "i64" if any(end.kind == "i64" for end in typed) else self._whole
        return [whole(turn, kind) for turn in chosen], len(every) - len(chosen)

    def _carried(self, old: Any, new: Any, turns: int) -> Any:
        """What further turns of a loop make of a value that each changes as the last one has."""
        match old, new:
            case _ if old is new:
                return new
            case list(), list() if len(old) == len(new):
                return [self._carried(*pair, turns) for pair in zip(old, new, strict=True)]
            case Places(memory), Places(array) if memory is array:
                return Places(array, self._carried(old.elements, new.elements, turns))
            case Block(offsets=list(first)), Block(offsets=list(second)):
                return replace(new, offsets=self._carried(first, second, turns))
            case int(), int():
                return new + turns * (new - old)
            case _ if (kind := self._value_of(new).kind) not in ("", "i1") and self._value_of(old).kind:
                before, last = (converted(self._value_of(value), "i64") for value in (old, new))
                more = arithmetic(ast.Mult(), arithmetic(ast.Sub(), last, before), whole(turns, "i64"))
                return converted(arithmetic(ast.Add(), last, more), kind)
        return self._joined([old, new])

    def _turn(self, node: ast.For | ast.While, names: _Names, returned: list[Any]) -> None:
        self._steps.pay(0)
        if self._block(node.body, names, returned):  # Triton has no `return` and no `break` in loops
            raise _NotFollowed

    # values

    def _value_of(self, given: Any) -> Value:
        """A whole number, which a constant may be, as Triton counts with it."""
        if isinstance(given, bool):
            return whole(int(given), "i1")
        if isinstance(given, int):
            return whole(given, self._whole) if -_MOST <= given < _MOST else UNKNOWN
        return given if isinstance(given, Value) else UNKNOWN

    def _decided(self, value: Any) -> bool | None:
        if isinstance(value, Value):
            return bool(value.data.any()) if _is_one(value) else None
        return None if isinstance(value, Places) else bool(value)

    def _joined(self, values: Sequence[Any]) -> Any:
        return reduce(self._either, values) if values else None

    def _either(self, value: Any, other: Any) -> Any:
        """What is known of one of two values; of pointers to one array, at least that."""
        first, second = self._value_of(value), self._value_of(other)
        if value is other or (type(value) is type(other) and isinstance(value, int | str) and value == other):
            return value
        if isinstance(value, Places) and isinstance(other, Places) and value.memory is other.memory:
            return replace(value, elements=self._either(value.elements, other.elements))
        self._lose(value, other)
        if first.data.shape != second.data.shape:
            return UNKNOWN
        return joined(first, second, NO, ~(second.known & (first.data == second.data)))

    def _constant(self, value: Any) -> Any:
        return value if isinstance(value, int | float | str | None) else UNKNOWN

    def _listed(self, values: Sequence[Any]) -> Any:
        return [*values]

    def _forgotten(self, value: Any) -> Any:
        """What is known of a value that changes: of a pointer, its array."""
        if isinstance(value, Places):
            return replace(value, elements=UNKNOWN)
        self._lose(value)
        return UNKNOWN

    def _lose(self, *values: Any) -> None:
        """Note arrays that are reached in a way which is not followed."""
        for value in values:
            if isinstance(value, Places):
                value.memory.is_lost = True
            elif isinstance(value, Block):
                value.base.memory.is_lost = True
            elif isinstance(value, list):
                self._lose(*value)

    def _item(self, held: Any, index: ast.expr, names: _Names) -> Any:
        if isinstance(held, list):
            place = self._value(index, names)
            return held[place] if type(place) is int and -len(held) <= place < len(held) else UNKNOWN
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        places: list[slice | None] = []
        for part in parts:
            match part:
                case ast.Constant(None):
                    places.append(None)
                case ast.Slice(None, None, None):
                    places.append(slice(None))
                case _:
                    self._lose(held)
                    return UNKNOWN
        return self._shaped(held, lambda data: data[tuple(places)])

    def _shaped(self, value: Any, change: Callable[[Any], Any]) -> Any:
        """A value whose shape changes."""
        if isinstance(value, Places):
            return replace(value, elements=self._shaped(value.elements, change))
        number = self._value_of(value)
        if not number.kind:
            return UNKNOWN
        known = number.known  # most are known in all elements, and stay so in any shape
        known = YES if known.all() else change(np.broadcast_to(known, number.data.shape))
        return Value(number.kind, change(number.data), known)

    def _compared(self, values: Sequence[Any], operators: Sequence[ast.cmpop]) -> Any:
        if len(values) > 2 or any(value is UNKNOWN for value in values):
            return UNKNOWN
        (left, right), (operator,) = values, operators
        if isinstance(operator, ast.Is | ast.IsNot):
            return (left is right) == isinstance(operator, ast.Is)
        if type(operator) not in COMPARE:
            return UNKNOWN
        if isinstance(left, Value) or isinstance(right, Value):
            return converted(compared(self._value_of(left), operator, self._value_of(right)), "i1")
        try:
            return COMPARE[type(operator)](left, right)
        except TypeError:
            return UNKNOWN

    def _unary(self, operator: ast.unaryop, value: Any) -> Any:
        match operator, value:
            case ast.UAdd(), _:
                return value
            case ast.Invert(), bool():
                return not value
            case ast.Invert(), int():
                return ~value
            case ast.USub(), int() | float():
                return -value
            case ast.Invert(), Value():
                return self._binary(value, ast.BitXor(), value.kind == "i1" or -1)
            case ast.USub(), Value():
                return self._binary(0, ast.Sub(), value)
        return UNKNOWN

    def _binary(self, left: Any, operator: ast.operator, right: Any) -> Any:
        kind_of = type(operator)
        if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return BINARY[kind_of](left, right) if kind_of in _FOLLOWED else UNKNOWN
        if isinstance(right, Places) and kind_of is ast.Add:
            left, right = right, left
        if isinstance(left, Places) and kind_of in (ast.Add, ast.Sub):
            return replace(left, elements=self._binary(left.elements, operator, right))
        self._lose(left, right)
        if kind_of not in _FOLLOWED:
            return UNKNOWN
        first, second = self._value_of(left), self._value_of(right)
        if kind_of is ast.BitAnd:  # a mask that is known bounds one that is not
            first = first if first.kind else second._replace(known=NO)
            second = second if second.kind else first._replace(known=NO)
        if not (kind := common(first, second)):
            return UNKNOWN
        if kind == "i1" and kind_of not in _OF_BITS:
            first, second = converted(first, self._whole), converted(second, self._whole)
        result = arithmetic(operator, first, second, is_cut=True)
        if result.data.size > _LARGEST_TILE:
            raise _NotFollowed
        self._steps.pay(result.data.size)
        return result if result.known is YES or result.known.any() else UNKNOWN

    # functions of Triton

    def _built_in(self, called: str, own: Sequence[Any], named: Mapping[str, Any], *, is_method: bool) -> Any:
        match called, own:
            case "program_id" | "num_programs", _:
                axis = next(iter([*own, *named.values()]), UNKNOWN)
                numbers = self._program if called == "program_id" else self._grid
                return whole(numbers[axis], self._whole) if type(axis) is int and 0 <= axis < 3 else UNKNOWN
            case "arange", [int(first), int(end)] if end - first <= _LARGEST_TILE:
                if self._is_sure and (end - first) & (end - first - 1):
                    self.found.setdefault((self._at, ""), OddTile(end - first))
                return Value(self._whole, np.arange(first, end), YES)
            case "cdiv", [left, right]:
                more = self._binary(self._binary(left, ast.Add(), right), ast.Sub(), 1)
                return self._binary(more, ast.FloorDiv(), right)
            case "minimum" | "maximum", [int(left), int(right)]:
                return min(left, right) if called == "minimum" else max(left, right)
            case "minimum" | "maximum", [left, right]:
                return EXACT[called[:3]](self._value_of(left), self._value_of(right))
            case "swizzle2d", _ if len(own) == 5 and (tile := _numbers(own)):
                return _swizzled(*tile)
            case "where", [condition, Value() | int() as left, Value() | int() as right]:
                sure, may = self._mask(condition)
                return joined(self._value_of(right), self._value_of(left), sure, may)
            case "where", [_, left, right]:
                return self._either(left, right)
            case "make_block_ptr" | "make_tensor_descriptor", _:
                return self._part(own, named, has_offsets=called == "make_block_ptr")
            case "advance", [Block() as block, list(moves)] if block.offsets and (steps := _numbers(moves)):
                moved = zip(block.offsets, steps, strict=True)
                return replace(block, offsets=[offset + step for offset, step in moved])
            case "load" | "store", [Block() as block, *further]:
                every = [*range(len(block.sizes))]  # descriptors check all dimensions
                checked = every if block.offsets is None else _numbers(named.get("boundary_check", []))
                offsets = _numbers(next(iter(further), None)) if block.offsets is None else block.offsets
                if checked is None:
                    raise _NotFollowed
                if offsets is None:
                    self.is_whole = False
                else:
                    part = block.at(offsets, checked)
                    self._access(*part, is_read=called == "load", is_written=called == "store")
            case "load" | "store", [Places() as places, *further]:
                mask = named.get("mask", next(iter(further[called == "store" :]), None))
                self._access(places, mask, is_read=called == "load", is_written=called == "store")
            case _, [Places() as place, *further] if called.startswith("atomic_"):
                mask = named.get("mask", next(iter(further[1:]), None)) if called != "atomic_cas" else None
                self._access(place, mask, is_read=True, is_written=True)
            case "to" | "cast", [value, *kinds]:
                kind = next((kind for kind in [*kinds, *named.values()] if isinstance(kind, str)), "")
                if kind in WHOLE_TYPES and (number := self._value_of(value)).kind:
                    return self._typed(number, kind)
                self._lose(value)
            case "full", [shape, value, str(kind)] if kind in WHOLE_TYPES and (sizes := _numbers(shape)):
                return self._typed(self._shaped(value, lambda data: np.full(sizes, data)), kind)
            case "expand_dims", [operand, int(axis)]:
                return self._shaped(operand, lambda array: np.expand_dims(array, axis))
            case "broadcast_to" | "reshape" | "view", [value, *shape]:
                extents = _numbers(shape[0] if shape and isinstance(shape[0], list) else shape)
                if extents is None:
                    self._lose(value)
                    return UNKNOWN
                change = np.broadcast_to if called == "broadcast_to" else np.reshape
                return self._shaped(value, lambda data: change(data, extents))
            case "trans", [operand]:
                return self._shaped(operand, np.transpose)
            case "ravel", [operand]:
                return self._shaped(operand, np.ravel)
            case name, [operand, *_] if name in _SAME:
                return operand
            case name, _ if name in _WITHOUT_EFFECT:
                return None
            case "load" | "store" | "gather" | "scatter", [_, *_]:
                self.is_whole = False
            case _:
                self._lose(*own, *named.values())
        return UNKNOWN

    def _typed(self, value: Value, kind: str) -> Value:
        """A whole number in a type of Triton."""
        return converted(value, "i64" if self._is_wide else f"{kind[0]}{kind[-2:]}")

    def _part(self, given: Sequence[Any], named: Mapping[str, Any], *, has_offsets: bool) -> Any:
        order = ("base", "shape", "strides", *(("offsets",) if has_offsets else ()), "block_shape")
        parts = dict(zip(order, given, strict=False)) | dict(named)
        base, *lists = (parts.get(name, UNKNOWN) for name in order)
        extents, strides, *offsets, sizes = map(_numbers, lists)
        is_one_place = isinstance(base, Places) and _numbers([base.elements]) is not None
        if not is_one_place or extents is None or strides is None or sizes is None or None in offsets:
            self._lose(*given, *named.values())
            return UNKNOWN
        return Block(base, extents, strides, offsets[0] if offsets else None, sizes)

    def _mask(self, given: Any) -> Mask:
        """Where a condition surely holds, and where it may."""
        value = self._value_of(given)
        holds = value.data != 0
        return Mask(holds, holds) if value.known.all() else Mask(holds & value.known, holds | ~value.known)

    def _access(self, place: Places, mask: Any, *, is_read: bool, is_written: bool) -> None:
        memory, own = place.memory, self._mask(True if mask is None else mask)
        own = own if self._is_sure else own._replace(sure=NO)
        if memory.size is not None:
            self._steps.pay(4 * place.elements.data.size)  # as many operations as it takes
        inside = self._reach(memory, place.elements, own, 1, 1, is_read=is_read, is_written=is_written)
        is_sure = own.sure is own.may
        if is_written and not is_read and memory.written is not None and is_sure:
            writers = self._writers.setdefault(memory.name, np.zeros(len(memory.written), np.int64))
            memory.is_overwritten |= bool(((writers[inside] != self._number) & (writers[inside] > 0)).any())
            writers[inside] = self._number


def _is_one(value: Value) -> bool:
    """Whether all elements have one number, which is known."""
    return value.data.size == 1 and bool(value.known.all())


def _numbers(values: Any) -> list[int] | None:
    """The numbers of a tuple that are the same in all elements; None if one of them is not known."""
    numbers = []
    for value in values if isinstance(values, list) else [None]:
        if isinstance(value, int) and not isinstance(value, bool):
            numbers.append(value)
        elif isinstance(value, Value) and value.kind not in ("", "i1") and _is_one(value):
            numbers.append(int(value.data.item()))
        else:
            return None
    return numbers


def _swizzled(row: int, column: int, rows: int, columns: int, tall: int) -> list[int]:
    """Where a tile is if tiles are taken in groups of rows, column by column."""
    group, within = divmod(row * columns + column, tall * columns)
    height = min(rows - group * tall, tall)
    return [group * tall + within % height, within // height]
