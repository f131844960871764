"""Exact construction of all valid configurations without visiting the whole Cartesian product.

Every constraint is split at its `and`s. Each part becomes a truth table over the product of the values
of only the parameters it reads, filled in by plain evaluation; parameters are then joined one at a
time, and every part filters the rows as soon as its parameters are all there. So the result is that of
plain evaluation, at the price of a table look-up. A part that reads too many parameters for a table is
evaluated on the combinations that are left of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import ExpressionError
from autotune.expressions import Expression, conjuncts, parse
from autotune.model import Parameter, Value

Rows = NDArray[Any]  # (configurations, parameters): position of each value, unsigned, big-endian


@dataclass(frozen=True)
class Limits:
    """What bounds the time and the memory of an enumeration."""

    rows: int = 30_000_000
    table: int = 100_000  # combinations; a table of this size takes about 0.2 s to fill in
    chunk: int = 1_000_000  # candidate rows looked at in one go


LIMITS = Limits()


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
    def table(self) -> NDArray[np.bool_]:
        """The verdicts on all combinations, one axis per parameter."""
        domains = [parameter.values for parameter in self.parameters]
        flat = np.fromiter(self.verdicts(product(*domains)), np.bool_, self.combinations)
        return flat.reshape([len(domain) for domain in domains])

    def keep(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows satisfy the rule; every distinct combination is evaluated once."""
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
        )


def enumerate_rows(parameters: Sequence[Parameter], rules: Sequence[Rule], limits: Limits = LIMITS) -> Rows:
    """All rows that satisfy every rule, in lexicographic order of the positions.

    Shape (valid, parameters), in the smallest unsigned type that holds every position, big-endian so
    that the order of a row's bytes is the order of the rows. Raises TooManyRows.
    """
    lengths = [len(parameter.values) for parameter in parameters]
    small = [rule for rule in rules if rule.combinations <= limits.table]
    large = [rule for rule in rules if rule.combinations > limits.table]
    is_possible = all(rule.table.any() for rule in small)
    dtype = np.min_scalar_type(max(lengths) - 1).newbyteorder(">")
    rows = np.zeros((int(is_possible), len(parameters)), dtype)
    joined: set[int] = set()
    for column in _join_order(lengths, small, large):
        joined.add(column)
        fast = [rule for rule in small if _completes(rule, column, joined)]
        slow = [rule for rule in large if _completes(rule, column, joined)]
        rows = _join(rows, column, lengths[column], fast, slow, limits)
    _keys(rows).sort()
    return rows


def find_row(rows: Rows, row: Sequence[int]) -> int | None:
    """Index of a row among sorted ones by bisection; None when it is not there."""
    key = _keys(np.array([row], rows.dtype))
    index = int(np.searchsorted(_keys(rows), key)[0])
    return index if index < len(rows) and rows[index].tolist() == list(row) else None


def find_rows(rows: Rows, wanted: Rows) -> NDArray[np.intp]:
    """Index of each of many rows among sorted ones; -1 where it is not there."""
    if not len(wanted):
        return np.empty(0, dtype=np.intp)
    keys, known = _keys(wanted.astype(rows.dtype)), _keys(rows)
    found = np.minimum(np.searchsorted(known, keys), len(rows) - 1)
    return np.where(known[found] == keys, found, -1)


def _keys(rows: Rows) -> NDArray[np.bytes_]:
    """Each row as one byte string; a view when the rows are contiguous, so sorting it sorts them."""
    rows = np.ascontiguousarray(rows)
    return rows.view(f"S{rows.shape[1] * rows.itemsize}").reshape(len(rows))


def _completes(rule: Rule, column: int, joined: set[int]) -> bool:
    return column in rule.columns and joined.issuperset(rule.columns)


def _join_order(lengths: Sequence[int], small: Sequence[Rule], large: Sequence[Rule]) -> Iterator[int]:
    """Next the parameter that is expected to multiply the rows by the least; those in no rule last."""
    shares = [(rule, float(rule.table.mean())) for rule in small]
    constrained = {column for rule in (*small, *large) for column in rule.columns}
    joined: set[int] = set()

    def growth(column: int) -> tuple[float, int]:
        after = joined | {column}
        complete = (share for rule, share in shares if _completes(rule, column, after))
        return lengths[column] * math.prod(complete), column

    while constrained - joined:
        column = min(constrained - joined, key=growth)
        joined.add(column)
        yield column
    yield from (column for column in range(len(lengths)) if column not in constrained)


def _join(
    rows: Rows, column: int, length: int, fast: Sequence[Rule], slow: Sequence[Rule], limits: Limits
) -> Rows:
    """The rows with every value of one more parameter that its newly complete rules allow."""
    if not (fast or slow) and len(rows) * length > limits.rows:
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
    values = np.arange(length)
    keep = np.ones((len(rows), length), np.bool_)
    for rule in rules:
        index = (values if other == column else rows[:, other, None] for other in rule.columns)
        keep &= rule.table[tuple(index)]
    owners, chosen = np.nonzero(keep)
    extended = rows[owners]
    extended[:, column] = chosen
    return extended
