"""500 random spaces: which configurations are valid, and why others are not, against plain Python."""

import math
import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.core.expressions import parse
from autotune.core.launch_plan import device_values
from autotune.core.records import Config, Parameter
from autotune.core.trials import Problem
from autotune.errors import SpaceError
from autotune.space import Constraint, SpaceSpec, ValidSpace, bind
from autotune.space.enumeration import RowConstraint, RowLimits, Scope, TooManyRows, enumerate_rows
from tests.space_example import GPU

DEVICE = replace(GPU, warp_size=8, has_shuffle=False, registers_per_block=None)
PROBLEM = Problem({"n": 24}, "int32")
NUMBERS = (
    (1, 2, 4, 8),
    (3, 1, 7, 5),
    (16, 32, 64),
    (0, 1, 2, 3),
    (-2, 3, 5),
    (2, 1.5, 0.5),
    (False, True),
    (4,),
)
TEXTS = ("tree", "atomic", "shuffle")
PYTHON = {
    "abs": abs,
    "ceil": math.ceil,
    "ceil_div": lambda dividend, divisor: -(-dividend // divisor),
    "floor": math.floor,
    "gcd": math.gcd,
    "max": max,
    "min": min,
    "device": SimpleNamespace(warp_size=8, has_shuffle=False, registers_per_block=None),
    "DTYPE": "int32",
    "n": 24,
}
ODD_LEAVES = (
    "DTYPE",
    "'tree'",
    "device.registers_per_block",
    "device.has_shuffle",
    "0",
)  # many make it raise


def a_value(rng: random.Random, names: list[str], depth: int) -> str:
    """The text of a random expression, nearly always for a number."""
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.02:
            return rng.choice((*ODD_LEAVES, *names))
        numbers = [name for name in names if not name.startswith("T")]
        return rng.choice((*numbers, *numbers, *numbers, "n", "device.warp_size", "1", "3", "0.5"))
    one, two = (a_value(rng, names, depth - 1) for _ in range(2))
    forms = (
        *(f"({one} {operator} {two})" for operator in "+-*+-*/%"),
        f"({one} // {two})",
        rng.choice(
            (f"({one} & {two})", f"({one} ** 2)", f"({one} << ({two} % 4))", f"(~{one})", f"(-{one})")
        ),
        f"{rng.choice(('max', 'min', 'gcd', 'ceil_div'))}({one}, {two})",
        f"{rng.choice(('abs', 'ceil', 'floor'))}({one})",
        f"({one} {rng.choice(('or', 'and'))} {two})",
    )
    if rng.random() < 1 / (len(forms) + 1):
        return f"({one} if {a_condition(rng, names, depth - 1)} else {two})"
    return rng.choice(forms)


def a_condition(rng: random.Random, names: list[str], depth: int) -> str:
    """The text of a random condition."""
    if depth > 0 and rng.random() < 0.5:
        left, right = (a_condition(rng, names, depth - 1) for _ in range(2))
        forms = (f"({left} or {right})", f"{left} and {right}", f"({left} and {right})", f"not ({left})")
        return rng.choice((forms[0], *forms))
    one, two, three = (a_value(rng, names, depth) for _ in range(3))
    compare, again = (rng.choice(("==", "!=", "<", "<=", ">", ">=")) for _ in range(2))
    forms = (
        f"{one} {compare} {two}",
        f"{one} {compare} {two} {again} {three}",
        f"{one} % {two} {compare} 1",
        f"{rng.choice(names)} {rng.choice(('in', 'not in'))} (1, 3, 8, 16, {two}, 'tree')",
        f"{rng.choice(names)} != 'shuffle'",
        one,
    )
    return rng.choice(forms)


def a_space(rng: random.Random) -> SpaceSpec:
    """A random space of up to five parameters, four constraints and two derived names."""
    names = [f"{rng.choice('PPPPT')}{position}" for position in range(rng.randint(1, 5))]
    parameters = tuple(Parameter(name, TEXTS if name[0] == "T" else rng.choice(NUMBERS)) for name in names)
    derived: dict[str, str] = {}
    for position in range(rng.choice((0, 0, 1, 2))):
        derived[f"D{position}"] = a_value(rng, [*names, *derived], 2)
    readable = [*names, *derived]
    texts = [
        a_condition(rng, rng.sample(readable, min(3, len(readable))), 2) for _ in range(rng.randint(0, 4))
    ]
    config = Config({parameter.name: parameter.values[0] for parameter in parameters})
    return SpaceSpec(
        path=Path("random.yaml"),
        sha256="",
        kernel="random",
        dialect="portable",
        source=Path("random.cu"),
        reference=Path("random.py"),
        sizes={"default": PROBLEM.sizes},
        dtypes=(PROBLEM.dtype,),
        parameters=parameters,
        constraints=tuple(Constraint(text, line) for line, text in enumerate(texts, 1)),
        derived=derived,
        default=config,
        launch=(),
    )


def positions_by_python(spec: SpaceSpec) -> list[tuple[int, ...]]:
    """The valid positions, by Python's own evaluation of every combination; what raises is not valid."""
    derived = [(name, compile(text, name, "eval")) for name, text in spec.derived.items()]
    constraints = [compile(constraint.text, "constraint", "eval") for constraint in spec.constraints]
    valid = []
    for positions in product(*(range(len(parameter.values)) for parameter in spec.parameters)):
        values = dict(PYTHON)
        for parameter, position in zip(spec.parameters, positions, strict=True):
            values[parameter.name] = parameter.values[position]
        try:
            for name, code in derived:
                values[name] = eval(code, {}, values)
            if all(eval(code, {}, values) for code in constraints):
                valid.append(positions)
        except (ArithmeticError, ValueError, TypeError):
            pass
    return valid


def a_telling_space(rng: random.Random) -> tuple[SpaceSpec, list[tuple[int, ...]]]:
    """A space and its valid positions; most often neither none nor all of the combinations."""
    while True:
        spec = a_space(rng)
        expected = positions_by_python(spec)
        combinations = math.prod(len(parameter.values) for parameter in spec.parameters)
        if 0 < len(expected) < combinations or rng.random() < 0.1:
            return spec, expected


def constraints_of(spec: SpaceSpec) -> list[RowConstraint]:
    scope = Scope(
        spec.parameters,
        spec.derived,
        device_values(DEVICE) | dict(PROBLEM.sizes) | {"DTYPE": PROBLEM.dtype},
    )
    parts = [scope.parts(parse(constraint.text)) for constraint in spec.constraints]
    return [*scope.of_derived(), *(part for whole in parts for part in whole)]


@pytest.mark.parametrize("batch", range(10))
def test_enumeration_equals_plain_python_on_random_spaces(batch):
    rng = random.Random(batch)
    for _ in range(50):
        spec, expected = a_telling_space(rng)
        limits = RowLimits(table=rng.choice((1, 8, 100_000)), chunk=rng.choice((1, 7, 1_000_000)))
        rows = enumerate_rows(spec.parameters, constraints_of(spec), limits)
        assert [tuple(row) for row in rows.tolist()] == expected, (spec, limits)
        if expected:
            check_answers(bind(spec, DEVICE, PROBLEM), expected, rng)
        else:
            with pytest.raises(SpaceError, match="no configuration is valid"):
                bind(spec, DEVICE, PROBLEM)


def check_answers(space: ValidSpace, expected: list[tuple[int, ...]], rng: random.Random) -> None:
    """Rows and configurations match both ways, and reasons are given for invalid configurations only."""
    index_of = {positions: index for index, positions in enumerate(expected)}
    assert len(space) == len(expected)
    for positions, config in zip(expected, space, strict=True):
        assert config == {p.name: p.values[at] for p, at in zip(space.parameters, positions, strict=True)}
    combinations = list(product(*(range(len(parameter.values)) for parameter in space.parameters)))
    for positions in rng.sample(combinations, min(10, len(combinations))):
        config = Config({p.name: p.values[at] for p, at in zip(space.parameters, positions, strict=True)})
        index = index_of.get(positions)
        assert space.index(config) == index
        assert (config in space) == space.holds(config, PROBLEM.sizes) == (index is not None)
        assert (space.why_invalid(config) == ()) == (index is not None)
        assert index is None or space.config(index) == config


def test_a_domain_of_more_than_256_values_keeps_its_order():
    parameters = (Parameter("A", tuple(range(300))), Parameter("B", tuple(range(300))))
    constraints = Scope(parameters, {}, {}).parts(parse("(A + B) % 7 == 0"))
    expected = [[a, b] for a in range(300) for b in range(300) if (a + b) % 7 == 0]
    assert enumerate_rows(parameters, constraints).tolist() == expected


@pytest.mark.parametrize(("text", "count"), [("True", 100), ("A < 9 or B < 9", 99)])
@pytest.mark.parametrize("table", [1, 1000])
def test_more_rows_than_the_limit_are_refused(text, count, table):
    parameters = (Parameter("A", tuple(range(10))), Parameter("B", tuple(range(10))))
    constraints = Scope(parameters, {}, {}).parts(parse(text))
    assert len(enumerate_rows(parameters, constraints, RowLimits(rows=100, table=table))) == count
    with pytest.raises(TooManyRows):
        enumerate_rows(parameters, constraints, RowLimits(rows=count - 1, table=table))
