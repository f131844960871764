"""The constraints of a space, and the limits of its device as constraints: enumerated and counted."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from autotune.core.expressions import Expression, parse
from autotune.core.launch_plan import device_values
from autotune.core.records import DeviceInfo, LaunchSpec
from autotune.core.trials import Problem
from autotune.errors import ExpressionError, SpaceError
from autotune.hardware.launch_limits import amounts, conditions
from autotune.space.enumeration import (
    LIMITS,
    RowConstraint,
    Rows,
    Scope,
    TooManyRows,
    count_rows,
    enumerate_rows,
)
from autotune.space.parameters import unlisted_value
from autotune.space.spec import Constraint, SpaceSpec


def device_limits(
    plan: Sequence[LaunchSpec], device: DeviceInfo, computed: Container[str] = ()
) -> tuple[Expression, ...]:
    """The conditions under which a device accepts every launch of a plan.

    A condition that reads one of the `computed` names, which come from Python functions, is left out: the
    device checks it at the launch. So is each number's lower bound, which the launch plan checks.
    """
    texts = (
        f"not ({step.when}) or {text}" if step.when != "True" else text
        for step in plan
        for text in _limits(step, device)
    )
    limits = (parse(text) for text in dict.fromkeys(texts))
    return tuple(limit for limit in limits if not any(name in computed for name in limit.names))


def _limits(step: LaunchSpec, device: DeviceInfo) -> Iterator[str]:
    for amount in amounts(step, device):
        limit = f"{amount.text} <= {amount.most}"
        if amount.most and not (amount.text.isdecimal() and parse(limit).holds(device_values(device))):
            yield limit
    yield from conditions(step, device)


class RowConstraints:
    """All conditions on a valid configuration of a space, on a device and for a problem."""

    def __init__(self, spec: SpaceSpec, device: DeviceInfo, problem: Problem) -> None:
        self._spec = spec
        constants = device_values(device) | dict(problem.sizes) | {"DTYPE": problem.dtype}
        scope = Scope(spec.parameters, spec.derived, constants)
        constraints = [parse(constraint.text) for constraint in spec.constraints]
        self._derived = scope.of_derived()
        self._constraints = [scope.whole(constraint) for constraint in constraints]
        self._parts = [scope.parts(constraint) for constraint in constraints]
        self._limits = [
            scope.whole(limit) for limit in device_limits(spec.launch, device, spec.functions.values)
        ]

    def rows(self) -> Rows:
        """The valid rows; raises SpaceError for too many."""
        try:
            return enumerate_rows(self._spec.parameters, [*self._required(), *self._limits])
        except TooManyRows:
            problem = f"more than {LIMITS.rows:,} configurations are left; constrain more or drop values"
            raise SpaceError(f"{self._spec.path}:{self._first_line}: {problem}") from None

    @property
    def limits(self) -> list[str]:
        """The conditions of the device; their numbers follow those of the constraints."""
        return [limit.expression.text for limit in self._limits]

    def violating(self, number: int) -> int | None:
        """Number of combinations that violate a constraint; None if that takes too long to count."""
        return self._count([], number)

    def violating_only(self, number: int) -> int | None:
        """Number of combinations that only one constraint excludes: valid ones if it is dropped.

        The device's limits do not count, because a constraint may repeat them. None where counting takes
        too long.
        """
        return self._count(self._required(without=number), number)

    def stages(self) -> list[list[RowConstraint]]:
        """The constraints of the derived names, then the parts of each one of the file, in order."""
        return [self._derived, *self._parts]

    def _count(self, required: list[RowConstraint], violated: int) -> int | None:
        negation = [*self._constraints, *self._limits][violated].negation
        if not negation.is_tabled(LIMITS):
            return None
        return count_rows(self._spec.parameters, [*required, negation])

    def contradiction(self) -> tuple[int, str]:
        """The line and reason that a space is empty: a derived name, one constraint, or several together."""
        for derived in self._derived:
            if derived.share(LIMITS) == 0:
                return self._first_line, f"a derived name cannot be evaluated: {self._failure(derived)}"
        for written, constraint in zip(self._spec.constraints, self._constraints, strict=True):
            if constraint.share(LIMITS) == 0:
                mend = unlisted_value(written.text, self._spec.parameters) or self._too_few(written)
                return written.line, f"nothing satisfies {written.text!r}{mend}"
        allowed = count_rows(self._spec.parameters, self._required())
        if allowed != 0:
            count = "configurations" if allowed is None else f"{allowed:,}"
            alone = [limit for limit in self._limits if limit.share(LIMITS) == 0]
            limits = " and ".join(limit.expression.text for limit in alone or self._limits)
            return self._first_line, (
                f"{count} satisfy the constraints, but none satisfies {limits}, a limit of the device; make "
                "`block` or `shared_bytes` in `launch` smaller, or add smaller values to `parameters`"
            )
        reason = "the constraints exclude each other"
        counts = [self.violating_only(number) or 0 for number in range(len(self._constraints))]
        if not any(counts):
            return self._first_line, reason
        most = max(counts)
        dropped = self._spec.constraints[counts.index(most)]
        return dropped.line, f"{reason}; {most:,} would be valid without {dropped.text!r}"

    def _too_few(self, constraint: Constraint) -> str:
        """The values for which a constraint never holds, and what limits others, as the end of a message."""
        read = parse(constraint.text).names
        listed = [item for item in self._spec.parameters if item.name in read]
        if not listed:
            return "; correct or remove the constraint"
        values = " and ".join(f"{item.name} is one of {', '.join(map(str, item.values))}" for item in listed)
        others = [
            f"{limit.text!r} on line {limit.line}"
            for limit in self._spec.constraints
            if limit is not constraint and parse(limit.text).names & {item.name for item in listed}
        ]
        too = f" that also satisfy {' and '.join(others)}" if others else ""
        return f", because {values}; correct or remove the constraint, or add values{too}"

    def _required(self, without: int | None = None) -> list[RowConstraint]:
        """The constraints of the derived names and the parts of all, except number `without` if given."""
        parts = [part for number, parts in enumerate(self._parts) if number != without for part in parts]
        return [*self._derived, *parts]

    def _failure(self, derived: RowConstraint) -> str:
        """The reason why derived names cannot be evaluated for the default."""
        values = dict(derived.constants) | dict(self._spec.default)
        try:
            for name, expression in derived.derived:
                values[name] = expression(values)
        except ExpressionError as error:
            return str(error)
        return derived.derived[-1][0]

    @property
    def _first_line(self) -> int:
        return self._spec.constraints[0].line if self._spec.constraints else 1
