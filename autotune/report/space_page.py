"""The page of a space before any search: what its constraints leave, and which parameters they link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import names_behind, parse
from autotune.core.trials import Trial
from autotune.report.page import cut, page_html, short
from autotune.report.search import Search
from autotune.report.search_page import search_json
from autotune.space import ConstraintReport, Finding, ValidSpace
from autotune.space.constraints import RowConstraints
from autotune.space.enumeration import RowConstraint, RowLimits, Rows, count_rows

_SAMPLE = 4_000  # configurations drawn for charts of two parameters or more
_LIMITS = RowLimits(rows=1_000_000)  # larger intermediate results are estimated
_DRAWN = 200_000  # combinations, for these estimates
_MAX_ROWS = 100_000  # from which ties are worked out


def space_html(
    space: ValidSpace, constraints: Sequence[ConstraintReport], findings: Iterable[Finding]
) -> str:
    """The whole page; `constraints` and `findings` are those of `autotune.space`."""
    return page_html(f"{space.spec.kernel}, space", cut(space_json(space, constraints, findings)))


def space_json(
    space: ValidSpace, constraints: Sequence[ConstraintReport], findings: Iterable[Finding]
) -> dict[str, Any]:
    """Everything that the page needs."""
    rng = np.random.default_rng(0)
    return {
        "kind": "space",
        "valid": len(space),
        "combinations": space.cartesian,
        "constraints": [
            {
                "line": report.line,
                "text": report.text,
                "left": left.count,
                "isExact": left.is_exact,
                "removesAlone": report.removes_alone,
                "appearWithout": report.appear_without,
            }
            for report, left in zip(constraints, funnel(space), strict=True)
        ],
        "counts": [
            np.bincount(space.rows[:, column].astype(np.intp), minlength=len(parameter.values)).tolist()
            for column, parameter in enumerate(space.parameters)
        ],
        "conditions": dict(space.spec.conditions),
        "ties": _ties(space, rng),
        "findings": [[item.kind.replace("_", " "), item.subject, item.placed] for item in findings],
        "sample": {**_sample_json(space, rng), "isSpace": True},
    }


def _sample_json(space: ValidSpace, rng: np.random.Generator) -> dict[str, Any]:
    """Valid configurations, in the form of a search that has not measured them."""
    size = min(_SAMPLE, len(space))
    drawn = np.sort(rng.choice(len(space), size, replace=False))
    trials = tuple(Trial(space.config(int(row)), str(row)) for row in drawn)
    problem = space.problem
    return search_json(
        Search(
            kernel=space.spec.kernel,
            device_name=space.device.name,
            sizes=problem.sizes,
            dtype=problem.dtype,
            data=problem.data,
            source=str(space.spec.path),
            tried=trials,
            device=space.device,
            spec=space.spec,
        )
    )


def _ties(space: ValidSpace, rng: np.random.Generator) -> list[dict[str, Any]]:
    """How far the valid values of one parameter depend on another's, for every pair.

    This is their mutual information over all valid configurations, as a share of the smaller entropy: 0 if
    they are independent, 1 if one decides the other.
    """
    rows = space.rows
    if len(rows) > _MAX_ROWS:
        rows = rows[rng.choice(len(rows), _MAX_ROWS, replace=False)]
    columns = [rows[:, column].astype(np.intp) for column in range(rows.shape[1])]
    lengths = [len(parameter.values) for parameter in space.parameters]
    alone = [_entropy(np.bincount(column)) for column in columns]
    lines = _lines_by_parameter(space)
    ties = []
    for left, right in combinations(range(len(columns)), 2):
        least = min(alone[left], alone[right])
        together = _entropy(np.bincount(columns[left] * lengths[right] + columns[right]))
        share = (alone[left] + alone[right] - together) / least if least > 0 else 0.0
        names = (space.parameters[left].name, space.parameters[right].name)
        both = sorted(lines[names[0]] & lines[names[1]])
        ties.append({"one": left, "other": right, "share": short(max(0.0, share)), "lines": both})
    return ties


def _entropy(counts: NDArray[np.intp]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _lines_by_parameter(space: ValidSpace) -> Mapping[str, set[int]]:
    """The lines of the constraints that read a parameter, directly or through derived names."""
    lines: dict[str, set[int]] = {parameter.name: set() for parameter in space.parameters}
    for constraint in space.spec.constraints:
        names = names_behind(parse(constraint.text).names, space.spec.derived)
        for name in names & lines.keys():
            lines[name].add(constraint.line)
    return lines


@dataclass(frozen=True)
class Left:
    """Combinations that satisfy a constraint and all before it; None where none of a sample does."""

    count: int | None
    is_exact: bool


def funnel(space: ValidSpace) -> tuple[Left, ...]:
    """Count what is left after each constraint; where that takes too long, estimate it from a sample."""
    stages = RowConstraints(space.spec, space.device, space.problem).stages()
    parameters = space.parameters
    exact = [
        count_rows(parameters, [part for parts in stages[: number + 2] for part in parts], _LIMITS)
        for number in range(len(stages) - 1)
    ]
    if None not in exact:
        return tuple(Left(count, True) for count in exact)
    rng = np.random.default_rng(0)
    columns = [rng.integers(len(parameter.values), size=_DRAWN) for parameter in parameters]
    rows: Rows = np.stack(columns, axis=1).astype(space.rows.dtype)
    total = math.prod(len(parameter.values) for parameter in parameters)
    counts = []
    for parts, count in zip(stages, [None, *exact], strict=True):
        for part in parts:
            rows = rows[_holds(part, rows)]
        estimate = round(total * len(rows) / _DRAWN) or None
        counts.append(Left(estimate if count is None else count, count is not None))
    return tuple(counts[1:])


def _holds(constraint: RowConstraint, rows: Rows) -> NDArray[np.bool_]:
    """A mask of the rows that satisfy a constraint, from its table if it has one."""
    if constraint.columns and constraint.is_tabled(_LIMITS) and constraint.table is not None:
        allowed: NDArray[np.bool_] = constraint.table[tuple(rows[:, column] for column in constraint.columns)]
        return allowed
    return constraint.keep(rows)
