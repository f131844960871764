"""How many rows there are, also with one constraint left out, counted without being listed.

Parameters are joined one at a time, as in enumeration. But once no rule will read a parameter any more,
rows that differ in it only become one row with a weight: dynamic programming over what is still to be
read. And a row may break one constraint: it then counts for the space that this one is left out of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.enumeration import MAX_COUNT, Limits, Rule, completes, numbered

LIMITS = Limits(rows=2_000_000)
_NOTHING = 0  # what a row without a fault breaks

Flags = NDArray[np.bool_]
Broken = NDArray[np.intp]  # numbers of constraints


@dataclass(frozen=True, eq=False)
class Condition:
    """A rule and the number of the constraint it is part of, from 1; 0 for one that may not be broken."""

    rule: Rule
    constraint: int = 0

    def judge(self, holds: Flags, broken: Broken) -> tuple[Flags, Broken]:
        """Which rows stay, and which constraint each breaks now; `broken` is the one it broke so far."""
        if self.constraint == _NOTHING:
            return holds, broken
        broken = np.where(~holds & (broken == _NOTHING), self.constraint, broken)
        return holds | (broken == self.constraint), broken


@dataclass(frozen=True, eq=False)
class _States:
    """Rows, with the constraint that each breaks in a last column, and how many each of them stands for."""

    rows: NDArray[Any]
    weights: NDArray[Any]

    def __getitem__(self, chosen: slice | NDArray[Any]) -> _States:
        return _States(self.rows[chosen], self.weights[chosen])

    @property
    def broken(self) -> Broken:
        """The constraint that each row breaks."""
        return self.rows[:, -1].astype(np.intp)

    def merged(self, columns: Sequence[int]) -> _States:
        """What is left when some columns make no difference any more."""
        if not columns or not len(self.rows):
            return self
        self.rows[:, columns] = 0
        numbers = numbered(self.rows)
        order = np.argsort(numbers)
        numbers = numbers[order]
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        return _States(self.rows[order[starts]], np.add.reduceat(self.weights[order], starts))


def count_rows(
    lengths: Sequence[int], conditions: Sequence[Condition], constraints: int = 0, limits: Limits = LIMITS
) -> list[int | None]:
    """How many rows break nothing, then for each constraint how many break that one only.

    None where more than `limits.rows` different rows would have to be told apart.
    """
    states = _start(lengths, conditions, constraints)
    unknown: set[int] = set()
    joined: set[int] = set()
    for column in _order(lengths, conditions, limits):
        joined.add(column)
        complete = [condition for condition in conditions if completes(condition.rule, column, joined)]
        idle = sorted(_unread(conditions, joined) - _unread(conditions, joined - {column}))
        parts = [states[:0]]
        for part in _extensions(states, column, lengths[column], complete, limits):
            parts.append(part)
            if sum(len(part.rows) for part in parts) > limits.rows:
                parts = [_fitting(_united(parts).merged(idle), limits.rows, unknown)]
        states = _fitting(_united(parts).merged(idle), limits.rows, unknown)
        if _NOTHING in unknown:
            return [None] * (1 + constraints)
    free = math.prod(length for column, length in enumerate(lengths) if column not in joined)
    return [
        None if number in unknown else free * int(states.weights[states.broken == number].sum())
        for number in range(1 + constraints)
    ]


def _start(lengths: Sequence[int], conditions: Sequence[Condition], constraints: int) -> _States:
    """One row, unless a condition that reads no parameter is against it."""
    kind = np.min_scalar_type(max([*lengths, constraints + 1]) - 1).newbyteorder(">")
    weight = np.int64 if math.prod(lengths) <= MAX_COUNT else object
    states = _States(np.zeros((1, len(lengths) + 1), kind), np.ones(1, weight))
    return _judged(states, [condition for condition in conditions if not condition.rule.columns])


def _judged(states: _States, conditions: Sequence[Condition]) -> _States:
    """The states that conditions allow, all of whose parameters are joined."""
    for condition in conditions:
        stay, broken = condition.judge(condition.rule.keep(states.rows), states.broken)
        states.rows[:, -1] = broken
        states = states[stay]
    return states


def _extensions(
    states: _States, column: int, length: int, conditions: Sequence[Condition], limits: Limits
) -> Iterator[_States]:
    """The states with every value of one more parameter that its newly complete conditions allow."""
    fast = [condition for condition in conditions if condition.rule.is_tabled(limits)]
    slow = [condition for condition in conditions if not condition.rule.is_tabled(limits)]
    step = max(1, limits.chunk // length)
    for start in range(0, len(states.rows), step):
        part = states[start : start + step]
        broken = np.repeat(part.broken[:, None], length, axis=1)
        stay = np.ones(broken.shape, np.bool_)
        for condition in fast:
            allowed, broken = condition.judge(condition.rule.allows(part.rows, column), broken)
            stay &= allowed
        owners, chosen = np.nonzero(stay)
        part = part[owners]
        part.rows[:, column] = chosen
        part.rows[:, -1] = broken[stay]
        yield _judged(part, slow)


def _united(parts: Sequence[_States]) -> _States:
    rows = np.concatenate([part.rows for part in parts], dtype=parts[0].rows.dtype)  # keeps the byte order
    return _States(rows, np.concatenate([part.weights for part in parts]))


def _fitting(states: _States, most: int, unknown: set[int]) -> _States:
    """At most so many states; given up for good are the constraints that most of them break."""
    states = states[~np.isin(states.broken, list(unknown))]
    while len(states.rows) > most:
        broken = states.broken
        worst = int(np.bincount(broken).argmax())
        unknown.add(worst)
        states = states[broken != worst]
    return states


def _order(lengths: Sequence[int], conditions: Sequence[Condition], limits: Limits) -> Iterator[int]:
    """Next the parameter after which the fewest states are expected; those in no rule never."""
    joined: set[int] = set()

    def growth(column: int) -> tuple[float, int]:
        after = joined | {column}
        shares = (item.rule.share(limits) for item in conditions if completes(item.rule, column, after))
        idle = _unread(conditions, after) - _unread(conditions, joined)
        merged = math.prod(lengths[other] for other in idle)
        return lengths[column] * math.prod(shares) / merged, column

    while left := {column for item in conditions for column in item.rule.columns} - joined:
        column = min(left, key=growth)
        joined.add(column)
        yield column


def _unread(conditions: Sequence[Condition], joined: set[int]) -> set[int]:
    """Those of the joined parameters that no condition is still to read."""
    return joined.difference(
        *(item.rule.columns for item in conditions if not joined.issuperset(item.rule.columns))
    )
