"""A space bound to a device and a problem: its valid configurations, and their launches and macros."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from autotune.core import launch_plan as plan
from autotune.core.c_types import C_TYPES, SCALARS, require_dtype_name
from autotune.core.expressions import Expression, parse
from autotune.core.records import Config, DeviceInfo, Launch, Sizes, Value
from autotune.core.text import hint, nearest
from autotune.core.trials import Problem
from autotune.errors import ExpressionError, InputError, SpaceError
from autotune.space.constraints import RowConstraints, device_limits
from autotune.space.enumeration import Rows, find_row
from autotune.space.functions import function_name
from autotune.space.spec import SpaceSpec

_UNLIMITED = 2**31 - 1  # bytes
_ROWS_PER_BATCH = 4096


def problem_of(
    spec: SpaceSpec,
    device: DeviceInfo,
    sizes: Mapping[str, int] | None = None,
    dtype: str | None = None,
    data: str | None = None,
) -> Problem:
    """The problem to tune for.

    Args:
        spec: The space file.
        device: Its kind, cpu or gpu, selects the default sizes; Triton's interpreter takes the
            smallest of those to verify.
        sizes: Sizes that replace the defaults.
        dtype: Element type; by default the first one of the space.
        data: Name of the inputs' content; by default the first one of the space.

    Raises:
        InputError: A size, the element type or the content is unknown, or a size is below 1.
    """
    chosen = dict(spec.sizes.get(device.kind, spec.sizes["default"]))
    if device.backend == "interpreter" and spec.verify_sizes:  # sizes for a GPU would take it hours
        smallest = min(spec.verify_sizes, key=lambda sizes: math.prod(sizes.values()))
        chosen |= smallest
    for name, size in (sizes or {}).items():
        if name not in chosen:
            raise InputError(f"{spec.path}: unknown size {name!r}{hint(name, chosen)}")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(
                f"{spec.path}: size {name}: expected a whole number of at least 1, found {size!r}"
            )
        chosen[name] = size
    dtype = spec.dtypes[0] if dtype is None else dtype
    require_dtype_name(dtype, str(spec.path))
    if dtype not in spec.dtypes:
        if dtype not in C_TYPES:
            raise InputError(
                f"{spec.path}: unknown dtype {dtype!r}; the space's dtypes are {', '.join(spec.dtypes)}"
                f"{nearest(SCALARS.get(dtype, dtype), C_TYPES)}"
            )
        raise InputError(
            f"{spec.path}: dtype {dtype} is not among the space's dtypes: {', '.join(spec.dtypes)}; "
            f"write --dtype {spec.dtypes[0]}, or add {dtype} to `dtypes` if the kernel takes it"
        )
    if data is not None and data not in spec.data:
        known = hint(data, spec.data) if spec.data else "; the space names no contents"
        raise InputError(f"{spec.path}: unknown data {data!r}{known}")
    return Problem(chosen, dtype, data=data or next(iter(spec.data), ""))


def bind(spec: SpaceSpec, device: DeviceInfo, problem: Problem) -> ValidSpace:
    """Enumerate the configurations that satisfy the constraints of a space and the limits of a device.

    Landmarks that are declared wrong are left out: no search proposes them, and no cache serves them.

    Raises SpaceError when there are none, or more than 30 million.
    """
    if device.backend == "hip":  # formulas are for NVIDIA's pipelines; the compiler knows what fits on AMD's
        device = replace(device, shared_bytes_per_block=_UNLIMITED)
    constraints = RowConstraints(spec, device, problem)
    rows = constraints.rows()
    if not len(rows):
        line, reason = constraints.contradiction()
        raise SpaceError(f"{spec.path}:{line}: no configuration is valid on {device.name}: {reason}")
    space = ValidSpace(spec, device, problem, rows)
    if spec.declared_wrong:
        places = map(space.index, spec.declared_wrong)
        rows = np.delete(rows, [place for place in places if place is not None], axis=0)
        if not len(rows):
            raise SpaceError(f"{spec.path}: every valid configuration on {device.name} is declared wrong")
        space = ValidSpace(spec, device, problem, rows)
    if not spec.functions.constraints:
        return space
    kept = np.fromiter(
        (space.satisfies_functions(space.values(config)) for config in space), np.bool_, len(rows)
    )
    if not kept.any():
        names = ", ".join(map(function_name, spec.functions.constraints))
        raise SpaceError(f"{spec.path}: no configuration is valid on {device.name}: none satisfies {names}")
    return ValidSpace(spec, device, problem, rows[kept])


class ValidSpace:
    """The valid configurations of a space, in the order of the file: the last parameter varies fastest.

    `rows` has shape (valid, parameters) and holds the position of each value in its parameter's list;
    `cartesian` counts the combinations before any constraint.
    """

    def __init__(self, spec: SpaceSpec, device: DeviceInfo, problem: Problem, rows: Rows) -> None:
        self.spec = spec
        self.device = device
        self.problem = problem
        self.parameters = spec.parameters
        self.rows = rows
        self.cartesian = math.prod(len(parameter.values) for parameter in self.parameters)
        self._names = tuple(parameter.name for parameter in self.parameters)
        self._positions = [
            {_typed(value): position for position, value in enumerate(parameter.values)}
            for parameter in self.parameters
        ]
        self._constraints = [parse(constraint.text) for constraint in spec.constraints]
        self.metrics = {name: parse(text) for name, text in spec.metrics.items()}
        self.objective = parse(spec.objective) if spec.objective else None
        self.require = [parse(text) for text in spec.require]
        self._limits = device_limits(spec.launch, device, spec.functions.values)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Config]:
        for start in range(0, len(self.rows), _ROWS_PER_BATCH):
            for row in self.rows[start : start + _ROWS_PER_BATCH].tolist():
                yield self._config(row)

    def __contains__(self, config: object) -> bool:
        return isinstance(config, Mapping) and self.index(config) is not None

    def config(self, index: int) -> Config:
        """The configuration of a row."""
        return self._config(self.rows[index].tolist())

    def index(self, config: Mapping[str, Value]) -> int | None:
        """The row of a configuration; None for an invalid one. True, 1 and 1.0 are different values."""
        if set(config) != set(self._names):
            return None
        try:
            row = self._row(config)
        except KeyError:  # another value
            return None
        return find_row(self.rows, row)

    def nearest(self, config: Config) -> Config:
        """The valid configuration closest to `config`: the fewest parameters differ, by the fewest steps."""
        wanted = self._row(config)
        farthest = sum(len(parameter.values) for parameter in self.parameters)
        nearest_rows = []
        for start in range(0, len(self.rows), _ROWS_PER_BATCH):  # wide copies of all rows take gigabytes
            steps = np.abs(self.rows[start : start + _ROWS_PER_BATCH].astype(np.int64) - wanted)
            distances = farthest * np.count_nonzero(steps, axis=1) + steps.sum(axis=1)
            row = int(distances.argmin())
            nearest_rows.append((int(distances[row]), start + row))
        return self.config(min(nearest_rows)[1])

    def neighbours(self, config: Config, max_changes: int) -> list[Config]:
        """The valid configurations that differ from it in 1 to `max_changes` parameters, fewest first."""
        wanted = self._row(config)
        neighbours = []
        for start in range(0, len(self.rows), _ROWS_PER_BATCH):
            changes = np.count_nonzero(self.rows[start : start + _ROWS_PER_BATCH] != wanted, axis=1)
            near = np.flatnonzero((changes > 0) & (changes <= max_changes))
            neighbours += [(int(changes[row]), start + int(row)) for row in near]
        return [self.config(row) for _, row in sorted(neighbours)]

    def why_invalid(self, config: Mapping[str, Value]) -> tuple[str, ...]:
        """The reasons why a configuration is invalid, one sentence each; none for a valid one.

        Constraints and device limits are checked only if every parameter has one of its values.
        """
        reasons = [
            f"unknown parameter {name}{hint(name, self._names)}" for name in config if name not in self._names
        ]
        for parameter, positions in zip(self.parameters, self._positions, strict=True):
            if parameter.name not in config:
                reasons.append(f"no value for {parameter.name}")
            elif _typed(config[parameter.name]) not in positions:
                listed = ", ".join(str(value) for value in parameter.values)
                reasons.append(f"{parameter.name}={config[parameter.name]} is not one of {listed}")
        if reasons:
            return tuple(reasons)
        try:
            values = self.values(config)
        except ExpressionError as error:
            return (f"a derived name cannot be evaluated: {error}",)
        constraints = (*self._constraints, *self._limits)
        broken = [_violation(one, values) for one in constraints if not one.holds(values)]
        functions = self.spec.functions.constraints
        broken += [
            f"{function_name(function)} does not hold" for function in functions if not function(values)
        ]
        return tuple(broken)

    def satisfies_functions(self, values: Mapping[str, Any]) -> bool:
        """True if every constraint that is a Python function holds; what it raises passes through."""
        return all(holds(values) for holds in self.spec.functions.constraints)

    def holds(self, config: Mapping[str, Value], sizes: Sizes) -> bool:
        """True if a configuration satisfies every constraint for other sizes."""
        return self.valid_values(config, sizes) is not None

    def valid_values(self, config: Mapping[str, Value], sizes: Sizes) -> dict[str, Any] | None:
        """As `values` for other sizes; None if the configuration does not satisfy every constraint there."""
        try:
            values = self.values(config, sizes)
        except ExpressionError:
            return None
        valid = all(constraint.holds(values) for constraint in self._constraints)
        return values if valid and self.satisfies_functions(values) else None

    def values(self, config: Mapping[str, Value], sizes: Sizes | None = None) -> dict[str, Any]:
        """Every name that an expression may read; `sizes` replace those of the problem.

        Raises ExpressionError if a derived name cannot be evaluated, which never happens for a valid
        configuration and the problem's own sizes.
        """
        chosen = dict(self.problem.sizes) | dict(sizes or {})
        return plan.known_values(self.device, chosen, self.problem.dtype, config, self.spec.derived)

    def launch_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values for the launch plan: `values`, and names that Python functions compute from them."""
        return {**values, **{name: compute(values) for name, compute in self.spec.functions.values.items()}}

    def launches(self, config: Mapping[str, Value], sizes: Sizes | None = None) -> tuple[Launch, ...]:
        """The launches of a configuration, in order; raises ExpressionError for an extent below 1."""
        values = self.launch_values(self.values(config, sizes))
        return plan.launches(self.spec.launch, values, self.spec.arguments)

    def symbol_names(self, launches: Iterable[Launch]) -> tuple[str, ...]:
        """The names that launches look up in a binary; none in dialects whose names are the source's."""
        has_names = self.spec.dialect in ("cuda", plan.TRITON)
        return plan.symbol_names(launches, self.spec.arguments) if has_names else ()

    def macros(self, config: Mapping[str, Value]) -> dict[str, Value]:
        """The macros to define when compiling a configuration."""
        return plan.macros(self.parameters, config, self.problem.dtype)

    def options(self, config: Mapping[str, Value], dialect: str) -> tuple[str, ...]:
        """The compiler options of a dialect: True gives the flag, False nothing, a value `flag=value`."""
        return plan.compiler_options(self.spec.compiler_options.get(dialect, {}), self.values(config))

    def _row(self, config: Mapping[str, Value]) -> list[int]:
        """The position of each value in its parameter's list; raises KeyError for one that is not there."""
        columns = zip(self._names, self._positions, strict=True)
        return [positions[_typed(config[name])] for name, positions in columns]

    def _config(self, row: list[int]) -> Config:
        columns = zip(self.parameters, row, strict=True)
        return Config({parameter.name: parameter.values[position] for parameter, position in columns})


def _typed(value: Value) -> tuple[type, Value]:
    """A key by which True, 1 and 1.0 differ; numpy scalars equal Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    return type(value), value


def _violation(constraint: Expression, values: Mapping[str, Any]) -> str:
    read = ", ".join(f"{name}={values[name]}" for name in sorted(constraint.names))
    try:
        constraint(values)
    except ExpressionError as error:
        return f"{error} ({read})"
    return f"{constraint.text} does not hold ({read})"
