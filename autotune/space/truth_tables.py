"""Expressions on all combinations of the parameters they read, without visiting these one by one.

An operation has many operands but few distinct ones: it is evaluated once for each distinct tuple of
operands, and what remains for every combination is to look up a number. The evaluation is that of
`expressions`, so the results are those of plain evaluation, errors included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import Expression, operation
from autotune.core.records import Parameter
from autotune.errors import ExpressionError

Codes = NDArray[np.intp]
_MAX_KEPT = 10_000  # combinations of a table that is kept for another expression that has it as a part
_MAX_EVALUATIONS = 100_000  # of one operation: about 0.2 s


class TooManyOperands(Exception):
    """An operation has more distinct operands than there is time to evaluate it for."""


class Failed:
    """Stands for the value of what cannot be evaluated."""


@dataclass(frozen=True, eq=False)
class Table:
    """The values of an expression: `values[codes]`, where codes has one axis for each of `columns`.

    The columns are positions of parameters, ascending. Values are distinct; True, 1 and 1.0 are three.
    """

    columns: tuple[int, ...]
    codes: Codes
    values: list[Any]

    def spread(self, columns: Sequence[int]) -> Codes:
        """The codes with an axis of length 1 for each of `columns` that the table has not."""
        lengths = dict(zip(self.columns, self.codes.shape, strict=True))
        return self.codes.reshape([lengths.get(column, 1) for column in columns])

    def where(self, chosen: Sequence[bool], columns: Sequence[int]) -> NDArray[np.bool_]:
        """Which combinations have one of the chosen values, spread over `columns`."""
        return np.array(chosen, np.bool_)[self.spread(columns)]


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of expressions over parameters, derived names in their order, and names with fixed values."""

    parameters: Sequence[Parameter]
    derived: Mapping[str, Expression]
    constants: Mapping[str, Any]
    _known: dict[str, Table] = field(default_factory=dict)  # derived names, and small expressions

    def of(self, expression: Expression) -> Table:
        """The table of an expression; raises TooManyOperands."""
        known = self._known.get(expression.text)
        if known is None:
            known = self._of(expression)
            if known.codes.size <= _MAX_KEPT:
                self._known[expression.text] = known
        return known

    def _of(self, expression: Expression) -> Table:
        task, operands = operation(expression)
        if operands:
            return _apply(task, [self.of(operand) for operand in operands])
        for name in task.names:
            for column, parameter in enumerate(self.parameters):
                if parameter.name == name:
                    return Table((column,), np.arange(len(parameter.values)), list(parameter.values))
            if name in self.derived:
                return self.of_derived(name)
        return Table((), np.array(0), [_value(task, self.constants)])

    def of_derived(self, name: str) -> Table:
        """The table of a derived name; raises TooManyOperands."""
        if name not in self._known:
            self._known[name] = self.of(self.derived[name])
        return self._known[name]


def _apply(task: Expression, operands: Sequence[Table]) -> Table:
    """The table of an operation on operands that are called `0`, `1` and so on."""
    columns = tuple(sorted({column for operand in operands for column in operand.columns}))
    joint: Codes = np.zeros([1] * len(columns), np.intp)
    tuples = np.zeros((1, 0), np.intp)  # the distinct operands of `joint`, as codes
    for operand in operands:
        count = len(operand.values)
        found, joint = _distinct(joint * count + operand.spread(columns), len(tuples) * count)
        tuples = np.column_stack([tuples[found // count], found % count])
    if len(tuples) > _MAX_EVALUATIONS:
        raise TooManyOperands
    values: list[Any] = []
    code_of: dict[Any, int] = {}
    codes = []
    for chosen in tuples.tolist():
        read = (operand.values[code] for operand, code in zip(operands, chosen, strict=True))
        value = _value(task, {str(place): item for place, item in enumerate(read) if item is not Failed})
        codes.append(code_of.setdefault(_typed(value), len(values)))
        if len(code_of) > len(values):
            values.append(value)
    return Table(columns, np.array(codes, np.intp)[joint], values)


def _distinct(numbers: Codes, limit: int) -> tuple[Codes, Codes]:
    """The distinct ones among numbers below a limit, ascending, and the place among them of each."""
    if limit > 4 * numbers.size + 1024:
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.reshape(numbers.shape)
    occurs = np.zeros(limit, np.bool_)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _value(expression: Expression, names: Mapping[str, Any]) -> Any:
    """Failed where reading a name that is missing, an operand that failed, or anything else is in the way."""
    try:
        return expression(names)
    except ExpressionError:
        return Failed


def _typed(value: Any) -> Any:
    """A key that tells True from 1 and 1 from 1.0, in lists, too."""
    if isinstance(value, tuple):
        return tuple, tuple(_typed(item) for item in value)
    return type(value), value
