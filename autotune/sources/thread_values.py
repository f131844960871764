"""Whole numbers of all threads of a run, as C counts with them; what is not known of them stays unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.core.expression_ops import COMPARE
from autotune.sources.whole_numbers import OPERATORS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Value(NamedTuple):
    """A whole number in each thread; `kind` is empty for anything else."""

    kind: str
    data: Ints
    known: Bools


NO, YES = np.zeros(1, np.bool_), np.ones(1, np.bool_)
UNKNOWN = Value("", np.zeros(1, np.int64), NO)


@lru_cache(maxsize=4096)  # the same constants at every turn of a loop; nothing writes to a value's data
def whole(number: int, kind: str = "") -> Value:
    """One number in all threads; without a type, that of C for such a number."""
    bits = number.bit_length()
    kind = kind or ("i32" if bits < 32 else "i64" if bits < 64 else "u64")
    held = (number + (1 << 63)) % (1 << 64) - (1 << 63)
    return Value(kind, np.array([held], np.int64), YES if bits <= 64 else NO)


def joined(old: Value, new: Value, sure: Bools, may: Bools) -> Value:
    """A value with another one in the threads that surely get it; unknown in those that may."""
    if kind := common(old, new):
        old, new = converted(old, kind), converted(new, kind)
    return Value(
        new.kind or old.kind,
        np.where(sure, new.data, old.data),
        np.where(sure, new.known & bool(new.kind), old.known & ~may & bool(old.kind)),
    )


def common(left: Value, right: Value) -> str:
    """The type to which C takes two values before it counts with them; empty without."""
    return _RANKED[min(_RANKS[left.kind], _RANKS[right.kind])] if left.kind and right.kind else ""


def converted(value: Value, kind: str) -> Value:
    """A value in another type."""
    if not value.kind or not kind:
        return UNKNOWN
    if value.kind == kind:
        return value
    data = value.data
    if kind == "u32":
        data = data & 0xFFFFFFFF
    elif kind == "i32":
        data = ((data + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    elif kind == "i1":
        data = (data != 0).astype(np.int64)
    return Value(kind, data, value.known)


def negative(value: Value) -> Value:
    """What a minus gives."""
    return arithmetic(ast.Sub(), whole(0), value)


def arithmetic(op: ast.operator, first: Value, second: Value, *, is_cut: bool = False) -> Value:
    """The result of an operator of C; unknown where it divides by 0 or, unless it `is_cut`, overflows."""
    is_shift = isinstance(op, ast.LShift | ast.RShift)
    kind = first.kind if is_shift and second.kind else common(first, second)
    if not kind:
        return UNKNOWN
    left = converted(first, kind).data
    right = (second if is_shift else converted(second, kind)).data
    known = first.known if first.known is second.known else first.known & second.known
    if isinstance(op, ast.BitAnd) and not known.all():  # one side may decide
        known = known | (first.known & (left == 0)) | (second.known & (right == 0))
    if isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
        if kind == "u64":
            known = known & (left >= 0) & (right >= 0)
        known = known & (right != 0)
        divisor = np.where(right == 0, 1, right)
        quotient = np.abs(left) // np.abs(divisor) * np.sign(left) * np.sign(divisor)
        data = left - quotient * divisor if isinstance(op, ast.Mod) else quotient
    elif is_shift:
        known = known & (right >= 0) & (right < int(kind[1:])) & ((left >= 0) | isinstance(op, ast.LShift))
        data = OPERATORS[type(op)](left, np.clip(right, 0, 62))
    else:
        data = OPERATORS[type(op)](left, right)
    if kind == "u32":
        data = data & 0xFFFFFFFF
    elif kind == "i32" and (data.min() < -(1 << 31) or data.max() >= 1 << 31):
        if is_cut:
            return converted(Value("i64", data, known), kind)
        known = known & (data >= -(1 << 31)) & (data < 1 << 31)
    return Value(kind, data, known)


def compared(first: Value, op: ast.cmpop, second: Value) -> Value:
    """1 where a comparison holds, and 0 elsewhere."""
    kind = common(first, second)
    if not kind:
        return UNKNOWN
    left, right = converted(first, kind).data, converted(second, kind).data
    if kind == "u64":
        left, right = left.view(np.uint64), right.view(np.uint64)
    is_so: Bools = COMPARE[type(op)](left, right)  # type: ignore[assignment]
    return Value("i32", is_so.astype(np.int64), first.known & second.known)


def _least(first: Value, second: Value) -> Value:
    return _picked(first, second, np.minimum)


def _most(first: Value, second: Value) -> Value:
    return _picked(first, second, np.maximum)


def _picked(first: Value, second: Value, pick: Callable[[Ints, Ints], Ints]) -> Value:
    kind = common(first, second)
    left, right = converted(first, kind), converted(second, kind)
    known = first.known & second.known
    if kind == "u64":
        known = known & (left.data >= 0) & (right.data >= 0)
    return Value(kind, pick(left.data, right.data), known) if kind else UNKNOWN


def _sum_of_product(factor: Value, second: Value, added: Value) -> Value:
    return arithmetic(ast.Add(), arithmetic(ast.Mult(), factor, second), added)


def _magnitude(value: Value) -> Value:
    return Value(value.kind, np.abs(value.data), value.known)


EXACT: dict[str, Callable[..., Value]] = {
    **{"min": _least, "max": _most, "abs": _magnitude, "mad24": _sum_of_product},
    "clamp": lambda one, low, high: _least(_most(one, low), high),
}
ARGUMENTS = {"min": 2, "max": 2, "abs": 1, "mad24": 3, "clamp": 3}
_RANKED = ("u64", "i64", "u32", "i32", "i1")  # the last is Triton's, of conditions
_RANKS = {kind: number for number, kind in enumerate(_RANKED)}
