"""Evaluate expressions on all combinations of the parameters they read.

An operation is evaluated once for each distinct tuple of operand values, of which there are few. A table
stores for every combination the index (code) of its value. Results are those of plain evaluation, errors
included, because each operation is evaluated by `expressions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import Expression, operation, parse
from autotune.core.records import Parameter
from autotune.errors import ExpressionError

Codes = NDArray[np.intp]
_MAX_CACHED = 10_000  # combinations of a table that is kept for other expressions with the same part
_MAX_EVALUATIONS = 100_000  # of one operation: about 0.2 s


class TooManyOperands(Exception):
    """An operation has too many distinct operands to be evaluated on all of them."""


class Failed:
    """The value of an expression that cannot be evaluated."""


@dataclass(frozen=True, eq=False)
class TruthTable:
    """The values of an expression: `values[codes]`, where codes has one axis for each of `columns`.

    Columns are positions of parameters, ascending. Values are distinct; True, 1 and 1.0 are three values.
    """

    columns: tuple[int, ...]
    codes: Codes
    values: list[Any]

    def spread(self, columns: Sequence[int]) -> Codes:
        """The codes with an axis of length 1 for each of `columns` that the table does not have."""
        lengths = dict(zip(self.columns, self.codes.shape, strict=True))
        return self.codes.reshape([lengths.get(column, 1) for column in columns])

    def where(self, chosen: Sequence[bool], columns: Sequence[int]) -> NDArray[np.bool_]:
        """A mask of the combinations with one of the chosen values, with an axis for each of `columns`."""
        return np.array(chosen, np.bool_)[self.spread(columns)]


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of expressions that read parameters, derived names (in their order) and constants."""

    parameters: Sequence[Parameter]
    derived: Mapping[str, str]
    constants: Mapping[str, Any]
    _cached: dict[str, TruthTable] = field(default_factory=dict)  # of derived names and small expressions

    def table_of(self, expression: Expression) -> TruthTable:
        """The table of an expression; raises TooManyOperands."""
        table = self._cached.get(expression.text)
        if table is None:
            table = self._of(expression)
            if table.codes.size <= _MAX_CACHED:
                self._cached[expression.text] = table
        return table

    def _of(self, expression: Expression) -> TruthTable:
        outermost, operands = operation(expression)
        if operands:
            return _apply(outermost, [self.table_of(operand) for operand in operands])
        for name in outermost.names:
            for column, parameter in enumerate(self.parameters):
                if parameter.name == name:
                    return TruthTable((column,), np.arange(len(parameter.values)), list(parameter.values))
            if name in self.derived:
                return self.of_derived(name)
        return TruthTable((), np.array(0), [_value(outermost, self.constants)])

    def of_derived(self, name: str) -> TruthTable:
        """The table of a derived name; raises TooManyOperands."""
        if name not in self._cached:
            self._cached[name] = self.table_of(parse(self.derived[name]))
        return self._cached[name]


def _apply(outermost: Expression, operands: Sequence[TruthTable]) -> TruthTable:
    """The table of an operation whose operands are named `0`, `1` and so on."""
    columns = tuple(sorted({column for operand in operands for column in operand.columns}))
    joint: Codes = np.zeros([1] * len(columns), np.intp)
    tuples = np.zeros((1, 0), np.intp)  # the distinct operands of `joint`, as codes
    for operand in operands:
        count = len(operand.values)
        distinct, joint = _distinct(joint * count + operand.spread(columns), len(tuples) * count)
        tuples = np.column_stack([tuples[distinct // count], distinct % count])
    if len(tuples) > _MAX_EVALUATIONS:
        raise TooManyOperands
    values: list[Any] = []
    code_of: dict[Any, int] = {}
    codes = []
    for chosen in tuples.tolist():
        read = (operand.values[code] for operand, code in zip(operands, chosen, strict=True))
        value = _value(outermost, {str(place): item for place, item in enumerate(read) if item is not Failed})
        codes.append(code_of.setdefault(_typed(value), len(values)))
        if len(code_of) > len(values):
            values.append(value)
    return TruthTable(columns, np.array(codes, np.intp)[joint], values)


def _distinct(numbers: Codes, limit: int) -> tuple[Codes, Codes]:
    """The distinct numbers, ascending, and for each number its index among them; all are below `limit`."""
    if limit > 4 * numbers.size + 1024:
        distinct, places = np.unique(numbers, return_inverse=True)
        return distinct, places.reshape(numbers.shape)
    occurs = np.zeros(limit, np.bool_)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _value(expression: Expression, names: Mapping[str, Any]) -> Any:
    """The value of an expression; Failed where it, or an operand that it reads, cannot be evaluated."""
    try:
        return expression(names)
    except ExpressionError:
        return Failed


def _typed(value: Any) -> Any:
    """A key by which True, 1 and 1.0 differ, also inside lists."""
    if isinstance(value, tuple):
        return tuple, tuple(_typed(item) for item in value)
    return type(value), value
