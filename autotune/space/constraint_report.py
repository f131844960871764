"""Count what each constraint, and each limit of the device, removes from a space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from autotune.core.expressions import names_behind, parse
from autotune.space.constraints import RowConstraints
from autotune.space.findings import Finding
from autotune.space.space import ValidSpace


@dataclass(frozen=True)
class ConstraintReport:
    """What one constraint or limit of the device removes; None where counting takes too long.

    `removes_alone` counts the combinations of the Cartesian product that violate it; `appear_without` counts
    the configurations that become valid without it.
    """

    text: str
    line: int  # 0 for a limit of the device
    removes_alone: int | None
    appear_without: int | None

    @property
    def never_removes(self) -> bool:
        """Whether every combination satisfies it on this device."""
        return self.removes_alone == 0


def constraint_report(space: ValidSpace) -> tuple[ConstraintReport, ...]:
    """Count what each constraint of a space removes, in the order of the file."""
    constraints = RowConstraints(space.spec, space.device, space.problem)
    return tuple(
        ConstraintReport(
            one.text, one.line, constraints.violating(number), constraints.violating_only(number)
        )
        for number, one in enumerate(space.spec.constraints)
    )


def limit_report(space: ValidSpace) -> tuple[ConstraintReport, ...]:
    """Count what each limit of the device removes that no constraint does.

    Limits that remove nothing are left out.
    """
    constraints = RowConstraints(space.spec, space.device, space.problem)
    reports = (
        ConstraintReport(text, 0, constraints.violating(number), constraints.violating_only(number))
        for number, text in enumerate(constraints.limits, len(space.spec.constraints))
    )
    return tuple(report for report in reports if report.appear_without)


def idle_constraints(space: ValidSpace, constraints: Iterable[ConstraintReport]) -> Iterator[Finding]:
    """Constraints that remove nothing here, unless they say for which sizes the space is made."""
    for number, report in enumerate(constraints):
        if names_behind(parse(report.text).names, space.spec.derived) <= space.problem.sizes.keys():
            continue
        if report.never_removes and not _removes_at_checks(space, number):
            others = "; it may on other devices" if "device." in report.text else ""
            detail = f"this constraint removes nothing on {space.device.name}{others}"
            yield Finding("idle_constraint", report.text, detail, f"{space.spec.path}:{report.line}")


def _removes_at_checks(space: ValidSpace, constraint: int) -> bool:
    """Whether a constraint removes combinations at one of `verify_sizes`, such as `n % VECTOR == 0`."""
    problems = (
        replace(space.problem, sizes={**space.problem.sizes, **sizes}) for sizes in space.spec.verify_sizes
    )
    constraints = (RowConstraints(space.spec, space.device, problem) for problem in problems)
    return any(at_sizes.violating(constraint) != 0 for at_sizes in constraints)
