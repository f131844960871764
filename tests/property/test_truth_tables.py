"""Truth tables and counts of random spaces, compared with evaluating one combination at a time."""

import math
import random
from dataclasses import replace
from itertools import product

import pytest

from autotune.core.expressions import Expression, parse
from autotune.core.launch_plan import device_values
from autotune.core.records import Parameter
from autotune.errors import ExpressionError
from autotune.space import SpaceSpec
from autotune.space.enumeration import RowLimits, Scope, count_rows
from autotune.space.truth_tables import Failed, Tables
from tests.property.test_enumeration import DEVICE, NUMBERS, PROBLEM, a_condition, a_space, a_value

CONSTANTS = device_values(DEVICE) | dict(PROBLEM.sizes) | {"DTYPE": PROBLEM.dtype}


def evaluated(expression: Expression, values: dict) -> object:
    try:
        return expression(values)
    except ExpressionError:
        return Failed


def typed(value: object) -> object:
    return repr(value) if value is Failed or value != value else (type(value), value)


@pytest.mark.parametrize("batch", range(5))
def test_truth_tables_hold_the_values_types_and_failures_of_plain_evaluation(batch):
    rng = random.Random(batch)
    for _ in range(60):
        parameters = [Parameter(f"P{position}", rng.choice(NUMBERS)) for position in range(3)]
        names = [parameter.name for parameter in parameters]
        derived = {"D": a_value(rng, names, 2)}
        tables = Tables(parameters, derived, CONSTANTS)
        expression = parse(rng.choice((a_value, a_condition))(rng, [*names, "D"], 3))
        table = tables.table_of(expression)
        for combination in product(*(range(len(parameter.values)) for parameter in parameters)):
            values = CONSTANTS | {p.name: p.values[at] for p, at in zip(parameters, combination, strict=True)}
            if (value := evaluated(parse(derived["D"]), values)) is not Failed:
                values["D"] = value
            found = table.values[table.codes[tuple(combination[column] for column in table.columns)]]
            assert typed(found) == typed(evaluated(expression, values)), (expression.text, values)


def counts_by_evaluation(spec: SpaceSpec) -> tuple[list[int], list[int]]:
    """For each constraint, how many combinations violate it, and how many violate it and nothing else."""
    derived = {name: parse(text) for name, text in spec.derived.items()}
    constraints = [parse(constraint.text) for constraint in spec.constraints]
    violating, violating_only = [0] * len(constraints), [0] * len(constraints)
    for combination in product(*(parameter.values for parameter in spec.parameters)):
        values = CONSTANTS | {p.name: value for p, value in zip(spec.parameters, combination, strict=True)}
        impossible = set()
        for name, expression in derived.items():
            value = evaluated(expression, values)
            if value is Failed or impossible & expression.names:
                impossible.add(name)
            values[name] = None if value is Failed else value
        violated = [
            number
            for number, constraint in enumerate(constraints)
            if impossible & constraint.names or not constraint.holds(values)
        ]
        for number in violated:
            violating[number] += 1
        if not impossible and len(violated) == 1:
            violating_only[violated[0]] += 1
    return violating, violating_only


@pytest.mark.parametrize("batch", range(10))
def test_counts_are_those_of_evaluating_every_combination(batch):
    rng = random.Random(batch)
    for _ in range(50):
        spec = a_space(rng)
        scope = Scope(spec.parameters, spec.derived, CONSTANTS)
        constraints = [parse(constraint.text) for constraint in spec.constraints]
        violating, violating_only = counts_by_evaluation(spec)
        for number, constraint in enumerate(constraints):
            negation = scope.whole(constraint).negation
            assert count_rows(spec.parameters, [negation]) == violating[number], spec
            others = constraints[:number] + constraints[number + 1 :]
            required = [*scope.of_derived(), *(part for other in others for part in scope.parts(other))]
            limits = RowLimits(table=rng.choice((1, 8, 100_000)), chunk=rng.choice((1, 7, 1_000_000)))
            assert count_rows(spec.parameters, [*required, negation], limits) == violating_only[number], spec
            few = replace(limits, rows=rng.choice((1, 5, 20)))
            found = count_rows(spec.parameters, [*required, negation], few)
            assert found in (None, violating_only[number]), (spec, few)


def test_free_parameters_multiply_the_count_beyond_64_bits():
    parameters = [Parameter(f"P{position}", tuple(range(100))) for position in range(30)]
    constraints = Scope(parameters, {}, {}).parts(parse("P0 < P1"))
    assert count_rows(parameters, constraints) == math.comb(100, 2) * 100**28
