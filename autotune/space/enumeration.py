"""Exact construction of all valid configurations without visiting the whole Cartesian product.

Every constraint is split at its `and`s, and its parts are constraints of their own. Each becomes a truth
table over only the parameters that it reads. Parameters are then joined one at a time, and every constraint
filters the rows as soon as all its parameters are joined. The result is that of plain evaluation, at the
price of a table look-up. A constraint that reads too many parameters for a table is evaluated on the distinct
combinations among the remaining rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import Expression, conjuncts, names_behind, parse
from autotune.core.records import Parameter, Value
from autotune.errors import ExpressionError
from autotune.space.truth_tables import Failed, Tables, TooManyOperands

Rows = NDArray[Any]  # (configurations, parameters): position of each value, unsigned, big-endian


@dataclass(frozen=True)
class RowLimits:
    """Limits on the time and memory of an enumeration."""

    rows: int = 30_000_000
    table: int = 1_000_000  # combinations; a table of this size takes about 0.2 s
    chunk: int = 1_000_000  # candidate rows filtered at a time


LIMITS = RowLimits()
COUNTING_LIMITS = RowLimits(rows=5_000_000)
_MAX_ROW_NUMBER = 2**62  # fits into 64 bits


class TooManyRows(Exception):
    """Joining the parameters takes more rows than the limit."""


@dataclass(frozen=True, eq=False)
class RowConstraint:
    """A constraint, a part of one or a limit of the device, on the parameters at `columns`, which ascend.

    `derived` are the names to evaluate first, in order. An expression that cannot be evaluated does not
    hold, so a negated constraint, which is satisfied where the expression does not hold, is satisfied there.
    """

    expression: Expression
    derived: tuple[tuple[str, Expression], ...]
    parameters: tuple[Parameter, ...]
    columns: tuple[int, ...]
    constants: Mapping[str, Any]
    tables: Tables
    is_negated: bool = False

    @property
    def negation(self) -> RowConstraint:
        """The constraint that is satisfied where this one is violated."""
        return replace(self, is_negated=not self.is_negated)

    @cached_property
    def combinations(self) -> int:
        """Number of combinations of its parameters' values."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    @cached_property
    def table(self) -> NDArray[np.bool_] | None:
        """A mask of combinations that satisfy it, with an axis per parameter; None if that takes too long."""
        holds = np.ones([len(parameter.values) for parameter in self.parameters], np.bool_)
        try:
            for name, _ in self.derived:
                values = self.tables.of_derived(name)
                holds &= values.where([value is not Failed for value in values.values], self.columns)
            values = self.tables.table_of(self.expression)
        except TooManyOperands:
            return None
        is_true = [value is not Failed and bool(value) for value in values.values]
        holds &= values.where(is_true, self.columns)
        return ~holds if self.is_negated else holds

    def is_tabled(self, limits: RowLimits) -> bool:
        """True if the constraint has a table within the limits, which `allows` needs and `keep` does not."""
        return self.combinations <= limits.table and self.table is not None

    def share(self, limits: RowLimits) -> float:
        """The share of combinations that satisfy it; 1 without a table."""
        return self._share if self.is_tabled(limits) else 1.0

    @cached_property
    def _share(self) -> float:
        return 1.0 if self.table is None else float(self.table.mean())

    def allows(self, rows: Rows, column: int) -> NDArray[np.bool_]:
        """A mask of the values that the parameter at `column` may take in each row: shape (rows, values)."""
        assert self.table is not None
        table = np.moveaxis(self.table, self.columns.index(column), -1)
        index = np.zeros(len(rows), np.intp)
        others = (other for other in self.columns if other != column)
        for other, length in zip(others, table.shape[:-1], strict=True):
            index = index * length + rows[:, other]
        return np.take(table.reshape(-1, table.shape[-1]), index, axis=0)

    def keep(self, rows: Rows) -> NDArray[np.bool_]:
        """A mask of the rows that satisfy the constraint; every distinct combination is evaluated once."""
        if not self.columns:
            return np.full(len(rows), self.table)
        distinct, index = np.unique(_row_bytes(rows[:, self.columns]), return_inverse=True)
        positions = distinct.view(rows.dtype).reshape(len(distinct), len(self.columns))
        domains = [parameter.values for parameter in self.parameters]
        combinations = (
            [domain[position] for domain, position in zip(domains, row, strict=True)]
            for row in positions.tolist()
        )
        return np.fromiter(map(self._is_satisfied, combinations), np.bool_, len(distinct))[index]

    def _is_satisfied(self, combination: Sequence[Value]) -> bool:
        values = dict(self.constants)
        values.update(
            (parameter.name, value) for parameter, value in zip(self.parameters, combination, strict=True)
        )
        try:
            for name, expression in self.derived:
                values[name] = expression(values)
        except ExpressionError:
            return self.is_negated
        return self.expression.holds(values) is not self.is_negated


@dataclass(frozen=True)
class Scope:
    """What the expressions of a space may read: parameters, derived names in order, and constants."""

    parameters: Sequence[Parameter]
    derived: Mapping[str, str]
    constants: Mapping[str, Any]

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.parameters, self.derived, self.constants)

    def whole(self, expression: Expression) -> RowConstraint:
        """An expression as one constraint."""
        return self._constraint(expression, expression.names)

    def parts(self, expression: Expression) -> list[RowConstraint]:
        """An expression as one constraint for each part between its `and`s."""
        return [self.whole(part) for part in conjuncts(expression)]

    def of_derived(self) -> list[RowConstraint]:
        """One constraint for each derived name, satisfied where the name can be evaluated."""
        return [self._constraint(parse("True"), {name}) for name in self.derived]

    def _constraint(self, expression: Expression, names: Iterable[str]) -> RowConstraint:
        """A constraint on the parameters that `names` stand for, directly or through derived names."""
        needed = names_behind(names, self.derived)
        columns = [column for column, item in enumerate(self.parameters) if item.name in needed]
        return RowConstraint(
            expression=expression,
            derived=tuple((name, parse(text)) for name, text in self.derived.items() if name in needed),
            parameters=tuple(self.parameters[column] for column in columns),
            columns=tuple(columns),
            constants=self.constants,
            tables=self._tables,
        )


def enumerate_rows(
    parameters: Sequence[Parameter], constraints: Sequence[RowConstraint], limits: RowLimits = LIMITS
) -> Rows:
    """All rows that satisfy every constraint, in lexicographic order of the positions.

    Returns:
        Shape (valid, parameters), in the smallest unsigned type that holds every position, big-endian so
        that rows compare as their bytes do.

    Raises:
        TooManyRows: There are more than `limits.rows`, or joining the parameters takes as many.
    """
    rows = _constrained_rows(parameters, constraints, limits)
    for column in _free_columns(parameters, constraints):
        rows = _join(rows, column, len(parameters[column].values), (), limits)
    return rows[np.argsort(_row_numbers(rows))]


def count_rows(
    parameters: Sequence[Parameter], constraints: Sequence[RowConstraint], limits: RowLimits = COUNTING_LIMITS
) -> int | None:
    """Number of rows that satisfy every constraint; None if too many would have to be enumerated.

    Parameters that no constraint reads are not enumerated: they multiply the count.
    """
    try:
        rows = _constrained_rows(parameters, constraints, limits)
    except TooManyRows:
        return None
    free = _free_columns(parameters, constraints)
    return len(rows) * math.prod(len(parameters[column].values) for column in free)


def _constrained_rows(
    parameters: Sequence[Parameter], constraints: Sequence[RowConstraint], limits: RowLimits
) -> Rows:
    """The rows that satisfy every constraint, unsorted, with 0 for every parameter that none reads."""
    lengths = [len(parameter.values) for parameter in parameters]
    dtype = np.min_scalar_type(max(lengths) - 1).newbyteorder(">")
    is_possible = all(constraint.share(limits) > 0 for constraint in constraints)
    rows = np.zeros((int(is_possible), len(parameters)), dtype)
    joined: set[int] = set()
    for column in _join_order(lengths, constraints, limits):
        joined.add(column)
        complete = [constraint for constraint in constraints if _completes(constraint, column, joined)]
        rows = _join(rows, column, lengths[column], complete, limits)
    return rows


def _free_columns(parameters: Sequence[Parameter], constraints: Sequence[RowConstraint]) -> list[int]:
    """The columns of the parameters that no constraint reads."""
    constrained = {column for constraint in constraints for column in constraint.columns}
    return [column for column in range(len(parameters)) if column not in constrained]


def find_row(rows: Rows, row: Sequence[int]) -> int | None:
    """Index of a row among sorted ones by bisection; None when it is not there."""
    key = _row_bytes(np.array([row], rows.dtype))
    index = int(np.searchsorted(_row_bytes(rows), key)[0])
    return index if index < len(rows) and rows[index].tolist() == list(row) else None


def find_rows(rows: Rows, queries: Rows) -> NDArray[np.intp]:
    """Index of each query among sorted rows; -1 where it is not there."""
    if not len(queries):
        return np.empty(0, dtype=np.intp)
    sorted_keys, keys = _row_bytes(rows), _row_bytes(queries.astype(rows.dtype))
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(rows) - 1)
    return np.where(sorted_keys[places] == keys, places, -1)


def _row_bytes(rows: Rows) -> NDArray[np.bytes_]:
    """Each row as one byte string; a view when the rows are contiguous, so sorting it sorts them."""
    rows = np.ascontiguousarray(rows)
    return rows.view(f"S{rows.shape[1] * rows.itemsize}").reshape(len(rows))


def _row_numbers(rows: Rows) -> NDArray[np.int64]:
    """A number for each row: in the order of the rows, and equal for equal rows only."""
    numbers, limit = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        length = int(column.max(initial=0)) + 1
        if limit * length > _MAX_ROW_NUMBER:
            numbers, limit = np.unique(numbers, return_inverse=True)[1], len(rows)
        numbers *= length
        numbers += column
        limit *= length
    return numbers


def _completes(constraint: RowConstraint, column: int, joined: set[int]) -> bool:
    """True if joining `column` last completes a constraint's parameters."""
    return column in constraint.columns and joined.issuperset(constraint.columns)


def _join_order(
    lengths: Sequence[int], constraints: Sequence[RowConstraint], limits: RowLimits
) -> Iterator[int]:
    """The constrained columns; the next is always the one that should multiply the rows least."""
    constrained = {column for constraint in constraints for column in constraint.columns}
    joined: set[int] = set()

    def growth(column: int) -> tuple[float, int]:
        after = joined | {column}
        shares = (one.share(limits) for one in constraints if _completes(one, column, after))
        return lengths[column] * math.prod(shares), column

    while constrained - joined:
        column = min(constrained - joined, key=growth)
        joined.add(column)
        yield column


def _join(
    rows: Rows, column: int, length: int, constraints: Sequence[RowConstraint], limits: RowLimits
) -> Rows:
    """The rows with every value of one more parameter that the constraints it completes allow."""
    tabled = [constraint for constraint in constraints if constraint.is_tabled(limits)]
    others = [constraint for constraint in constraints if not constraint.is_tabled(limits)]
    if not constraints and len(rows) * length > limits.rows:
        raise TooManyRows
    parts, candidates = [rows[:0]], 0
    step = max(1, limits.chunk // length)
    for start in range(0, len(rows), step):
        part = _extend(rows[start : start + step], column, length, tabled)
        candidates += len(part)
        if candidates > limits.rows:
            raise TooManyRows
        for constraint in others:
            part = part[constraint.keep(part)]
        parts.append(part)
    return np.concatenate(parts, dtype=rows.dtype)  # which would otherwise become native in byte order


def _extend(rows: Rows, column: int, length: int, constraints: Iterable[RowConstraint]) -> Rows:
    """The rows with every value of one more parameter that the constraints' tables allow."""
    keep = np.ones((len(rows), length), np.bool_)
    for constraint in constraints:
        keep &= constraint.allows(rows, column)
    owners, chosen = np.nonzero(keep)
    extended = rows[owners]
    extended[:, column] = chosen
    return extended
