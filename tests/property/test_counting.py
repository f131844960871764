"""500 random spaces: values of expressions, and counts, against one combination at a time."""

import math
import random
from itertools import product

import pytest

from autotune.core.expressions import Expression, parse
from autotune.core.launch_plan import device_values
from autotune.core.records import Parameter
from autotune.errors import ExpressionError
from autotune.space import SpaceSpec
from autotune.space.counting import Condition, count_rows
from autotune.space.enumeration import Limits, Scope
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
def test_tables_hold_what_plain_evaluation_gives_types_and_failures_included(batch):
    rng = random.Random(batch)
    for _ in range(60):
        parameters = [Parameter(f"P{position}", rng.choice(NUMBERS)) for position in range(3)]
        names = [parameter.name for parameter in parameters]
        derived = {"D": parse(a_value(rng, names, 2))}
        tables = Tables(parameters, derived, CONSTANTS)
        expression = parse(rng.choice((a_value, a_condition))(rng, [*names, "D"], 3))
        table = tables.of(expression)
        for combination in product(*(range(len(parameter.values)) for parameter in parameters)):
            values = CONSTANTS | {p.name: p.values[at] for p, at in zip(parameters, combination, strict=True)}
            if (value := evaluated(derived["D"], values)) is not Failed:
                values["D"] = value
            found = table.values[table.codes[tuple(combination[column] for column in table.columns)]]
            assert typed(found) == typed(evaluated(expression, values)), (expression.text, values)


def counts_by_evaluation(spec: SpaceSpec) -> tuple[list[int], list[int]]:
    """Combinations that break nothing, then those that break one constraint only; those that satisfy each."""
    derived = {name: parse(text) for name, text in spec.derived.items()}
    constraints = [parse(constraint.text) for constraint in spec.constraints]
    only, satisfying = [0] * (1 + len(constraints)), [0] * len(constraints)
    for combination in product(*(parameter.values for parameter in spec.parameters)):
        values = CONSTANTS | {p.name: value for p, value in zip(spec.parameters, combination, strict=True)}
        impossible = set()
        for name, expression in derived.items():
            value = evaluated(expression, values)
            if value is Failed or impossible & expression.names:
                impossible.add(name)
            values[name] = None if value is Failed else value
        broken = []
        for number, constraint in enumerate(constraints):
            if impossible & constraint.names or not constraint.holds(values):
                broken.append(number)
            else:
                satisfying[number] += 1
        if not impossible and len(broken) < 2:
            only[broken[0] + 1 if broken else 0] += 1
    return only, satisfying


@pytest.mark.parametrize("batch", range(10))
def test_counts_are_those_of_going_through_all_combinations(batch):
    rng = random.Random(batch)
    for _ in range(50):
        spec = a_space(rng)
        lengths = [len(parameter.values) for parameter in spec.parameters]
        scope = Scope(spec.parameters, {n: parse(text) for n, text in spec.derived.items()}, CONSTANTS)
        parts = [scope.rules(parse(constraint.text)) for constraint in spec.constraints]
        conditions = [Condition(rule) for rule in scope.derived_rules()]
        conditions += [Condition(rule, number) for number, rules in enumerate(parts, 1) for rule in rules]
        only, satisfying = counts_by_evaluation(spec)
        limits = Limits(table=rng.choice((1, 8, 100_000)), chunk=rng.choice((1, 7, 1_000_000)))
        assert count_rows(lengths, conditions, len(parts), limits) == only, (spec, limits)
        for rules, expected in zip(parts, satisfying, strict=True):
            assert count_rows(lengths, [Condition(rule) for rule in rules]) == [expected], spec
        few = Limits(rows=rng.choice((1, 5, 20)), chunk=rng.choice((1, 7, 1_000_000)))
        for found, expected in zip(count_rows(lengths, conditions, len(parts), few), only, strict=True):
            assert found in (None, expected), (spec, few)


def test_counts_beyond_64_bits_are_exact():
    lengths = [100] * 30
    parameters = [Parameter(f"P{position}", tuple(range(100))) for position in range(30)]
    scope = Scope(parameters, {}, {})
    texts = [f"P{position} <= P{position + 1}" for position in range(0, 30, 2)]
    conditions = [
        Condition(rule, number) for number, text in enumerate(texts, 1) for rule in scope.rules(parse(text))
    ]
    holds, fails = math.comb(101, 2), math.comb(100, 2)
    assert count_rows(lengths, conditions, 15) == [holds**15, *[holds**14 * fails] * 15]
