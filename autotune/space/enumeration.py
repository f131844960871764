"""Exact construction of all valid configurations without visiting the whole Cartesian product.

Every constraint is split at its `and`s. Each part becomes a truth table over the product of the values
of only the parameters it reads; parameters are then joined one at a time, and every part filters the
rows as soon as its parameters are all there. So the result is that of plain evaluation, at the price of
a table look-up. A part that reads too many parameters for a table is evaluated on the combinations that
are left of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import Expression, conjuncts, parse
from autotune.core.records import Parameter, Value
from autotune.errors import ExpressionError
from autotune.space.truth_tables import Failed, Tables, TooManyOperands

Rows = NDArray[Any]  # (configurations, parameters): position of each value, unsigned, big-endian


@dataclass(frozen=True)
class Limits:
    """What bounds the time and the memory of an enumeration."""

    rows: int = 30_000_000
    table: int = 1_000_000  # combinations; a table of this size takes about 0.2 s
    chunk: int = 1_000_000  # candidate rows looked at in one go


LIMITS = Limits()
MAX_COUNT = 2**62  # that 64 bits count without a doubt


class TooManyRows(Exception):
    """More rows than the limit are left while joining; the caller knows whose they are."""


@dataclass(frozen=True, eq=False)
class Rule:
    """One condition on the parameters at `columns`, which are in ascending order.

    `derived` are the names to evaluate first, in order; failing to do so breaks the rule.
    """

    expression: Expression
    derived: tuple[tuple[str, Expression], ...]
    parameters: tuple[Parameter, ...]
    columns: tuple[int, ...]
    constants: Mapping[str, Any]
    tables: Tables

    @cached_property
    def combinations(self) -> int:
        """Size of the product of the values it depends on."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    def verdicts(self, combinations: Iterable[Sequence[Value]]) -> Iterator[bool]:
        """Whether each combination of values satisfies the rule."""
        values = dict(self.constants)
        names = [parameter.name for parameter in self.parameters]
        for combination in combinations:
            values.update(zip(names, combination, strict=True))
            try:
                for name, expression in self.derived:
                    values[name] = expression(values)
            except ExpressionError:
                yield False
            else:
                yield self.expression.holds(values)

    @cached_property
    def table(self) -> NDArray[np.bool_] | None:
        """The verdicts on all combinations, one axis per parameter; None where that takes too long."""
        verdicts = np.ones([len(parameter.values) for parameter in self.parameters], np.bool_)
        try:
            for name, _ in self.derived:
                known = self.tables.of_derived(name)
                verdicts &= known.where([value is not Failed for value in known.values], self.columns)
            known = self.tables.of(self.expression)
            return verdicts & known.where(
                [value is not Failed and bool(value) for value in known.values], self.columns
            )
        except TooManyOperands:
            return None

    def is_tabled(self, limits: Limits) -> bool:
        """Whether `allows` may be asked; `keep` always may."""
        return self.combinations <= limits.table and self.table is not None

    def share(self, limits: Limits) -> float:
        """Of the combinations, those that satisfy it; 1 where nobody knows."""
        return self._share if self.is_tabled(limits) else 1.0

    @cached_property
    def _share(self) -> float:
        return 1.0 if self.table is None else float(self.table.mean())

    def allows(self, rows: Rows, column: int) -> NDArray[np.bool_]:
        """Of shape (rows, values of the parameter at `column`): which of them may be added to which row."""
        assert self.table is not None
        table = np.moveaxis(self.table, self.columns.index(column), -1)
        place = np.zeros(len(rows), np.intp)
        others = (other for other in self.columns if other != column)
        for other, length in zip(others, table.shape[:-1], strict=True):
            place = place * length + rows[:, other]
        return table.reshape(-1, table.shape[-1])[place]

    def keep(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows satisfy the rule; every distinct combination is evaluated once."""
        if not self.columns:
            return np.full(len(rows), self.table)
        distinct, place = np.unique(_keys(rows[:, self.columns]), return_inverse=True)
        positions = distinct.view(rows.dtype).reshape(len(distinct), len(self.columns))
        domains = [parameter.values for parameter in self.parameters]
        combinations = (
            [domain[position] for domain, position in zip(domains, row, strict=True)]
            for row in positions.tolist()
        )
        return np.fromiter(self.verdicts(combinations), np.bool_, len(distinct))[place]


@dataclass(frozen=True)
class Scope:
    """What expressions are about: parameters, derived names in their order, and names with fixed values."""

    parameters: Sequence[Parameter]
    derived: Mapping[str, Expression]
    constants: Mapping[str, Any]

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.parameters, self.derived, self.constants)

    def rule(self, expression: Expression) -> Rule:
        """An expression as one rule."""
        return self._rule(expression, expression.names)

    def rules(self, expression: Expression) -> list[Rule]:
        """One rule per part between `and`s: together they are the expression."""
        return [self.rule(part) for part in conjuncts(expression)]

    def derived_rules(self) -> list[Rule]:
        """One rule per derived name: that it can be evaluated."""
        return [self._rule(parse("True"), {name}) for name in self.derived]

    def _rule(self, expression: Expression, names: Iterable[str]) -> Rule:
        """A rule that needs `names`; a derived name stands for the names it reads."""
        needed = set(names)
        for name in reversed(tuple(self.derived)):  # it reads earlier ones only
            if name in needed:
                needed |= self.derived[name].names
        columns = [column for column, item in enumerate(self.parameters) if item.name in needed]
        return Rule(
            expression=expression,
            derived=tuple((name, item) for name, item in self.derived.items() if name in needed),
            parameters=tuple(self.parameters[column] for column in columns),
            columns=tuple(columns),
            constants=self.constants,
            tables=self._tables,
        )


def enumerate_rows(parameters: Sequence[Parameter], rules: Sequence[Rule], limits: Limits = LIMITS) -> Rows:
    """All rows that satisfy every rule, in lexicographic order of the positions.

    Shape (valid, parameters), in the smallest unsigned type that holds every position, big-endian so
    that the order of a row's bytes is the order of the rows. Raises TooManyRows.
    """
    lengths = [len(parameter.values) for parameter in parameters]
    is_possible = all(rule.share(limits) > 0 for rule in rules)
    dtype = np.min_scalar_type(max(lengths) - 1).newbyteorder(">")
    rows = np.zeros((int(is_possible), len(parameters)), dtype)
    joined: set[int] = set()
    for column in _join_order(lengths, rules, limits):
        joined.add(column)
        complete = [rule for rule in rules if completes(rule, column, joined)]
        rows = _join(rows, column, lengths[column], complete, limits)
    return rows[np.argsort(numbered(rows))]


def find_row(rows: Rows, row: Sequence[int]) -> int | None:
    """Index of a row among sorted ones by bisection; None when it is not there."""
    key = _keys(np.array([row], rows.dtype))
    index = int(np.searchsorted(_keys(rows), key)[0])
    return index if index < len(rows) and rows[index].tolist() == list(row) else None


def find_rows(rows: Rows, wanted: Rows) -> NDArray[np.intp]:
    """Index of each of many rows among sorted ones; -1 where it is not there."""
    if not len(wanted):
        return np.empty(0, dtype=np.intp)
    sought, known = _keys(wanted.astype(rows.dtype)), _keys(rows)
    found = np.minimum(np.searchsorted(known, sought), len(rows) - 1)
    return np.where(known[found] == sought, found, -1)


def _keys(rows: Rows) -> NDArray[np.bytes_]:
    """Each row as one byte string; a view when the rows are contiguous, so sorting it sorts them."""
    rows = np.ascontiguousarray(rows)
    return rows.view(f"S{rows.shape[1] * rows.itemsize}").reshape(len(rows))


def numbered(rows: Rows) -> NDArray[np.int64]:
    """A number for each row, in the order of the rows; the same for equal rows only."""
    numbers, limit = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        length = int(column.max(initial=0)) + 1
        if limit * length > MAX_COUNT:
            numbers, limit = np.unique(numbers, return_inverse=True)[1], len(rows)
        numbers *= length
        numbers += column
        limit *= length
    return numbers


def completes(rule: Rule, column: int, joined: set[int]) -> bool:
    """Whether the parameter at `column`, the last of those that are joined, is the last that a rule reads."""
    return column in rule.columns and joined.issuperset(rule.columns)


def _join_order(lengths: Sequence[int], rules: Sequence[Rule], limits: Limits) -> Iterator[int]:
    """Next the parameter that is expected to multiply the rows by the least; those in no rule last."""
    constrained = {column for rule in rules for column in rule.columns}
    joined: set[int] = set()

    def growth(column: int) -> tuple[float, int]:
        after = joined | {column}
        shares = (rule.share(limits) for rule in rules if completes(rule, column, after))
        return lengths[column] * math.prod(shares), column

    while constrained - joined:
        column = min(constrained - joined, key=growth)
        joined.add(column)
        yield column
    yield from (column for column in range(len(lengths)) if column not in constrained)


def _join(rows: Rows, column: int, length: int, rules: Sequence[Rule], limits: Limits) -> Rows:
    """The rows with every value of one more parameter that its newly complete rules allow."""
    fast = [rule for rule in rules if rule.is_tabled(limits)]
    slow = [rule for rule in rules if not rule.is_tabled(limits)]
    if not rules and len(rows) * length > limits.rows:
        raise TooManyRows
    parts, candidates = [rows[:0]], 0
    step = max(1, limits.chunk // length)
    for start in range(0, len(rows), step):
        part = _extend(rows[start : start + step], column, length, fast)
        candidates += len(part)
        if candidates > limits.rows:
            raise TooManyRows
        for rule in slow:
            part = part[rule.keep(part)]
        parts.append(part)
    return np.concatenate(parts, dtype=rows.dtype)  # whose byte order would otherwise become native


def _extend(rows: Rows, column: int, length: int, rules: Iterable[Rule]) -> Rows:
    """The rows with every value of one more parameter, as far as the rules' tables allow."""
    keep = np.ones((len(rows), length), np.bool_)
    for rule in rules:
        keep &= rule.allows(rows, column)
    owners, chosen = np.nonzero(keep)
    extended = rows[owners]
    extended[:, column] = chosen
    return extended
