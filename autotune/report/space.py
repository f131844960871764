"""A space: its counts, parameters, constraints and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from autotune.model import DeviceInfo
from autotune.report.tables import console, problem_text, table
from autotune.space import ConstraintReport, Finding, Space


def print_space(
    space: Space, device: DeviceInfo, constraints: Sequence[ConstraintReport], findings: Sequence[Finding]
) -> None:
    """Counts, parameters, constraints, findings."""
    out = console()
    out.print(f"{space.spec.kernel} on {device.name}, {problem_text(space)}")
    out.print(f"{len(space):,} valid of {space.cartesian:,} combinations\n")
    domains = [
        (item.name, str(len(item.values)), ", ".join(map(str, item.values))) for item in space.parameters
    ]
    out.print(table(("parameter", "values", ""), domains))
    out.print()
    effects = [
        (str(item.line), _share(item.removes_alone, space.cartesian), _number(item.appear_without), item.text)
        for item in constraints
    ]
    out.print(table(("line", "removes alone", "valid without it", "constraint"), effects))
    out.print("\nno findings" if not findings else "")
    if findings:
        out.print(table(("finding", "", ""), [(item.kind, item.subject, item.detail) for item in findings]))


def space_json(
    space: Space, constraints: Sequence[ConstraintReport], findings: Sequence[Finding]
) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "kernel": space.spec.kernel,
        "valid": len(space),
        "combinations": space.cartesian,
        "parameters": {item.name: list(item.values) for item in space.parameters},
        "constraints": [asdict(item) for item in constraints],
        "findings": [asdict(item) for item in findings],
    }


def _share(count: int | None, of: int) -> str:
    return "-" if count is None else f"{count / of:.1%}"


def _number(count: int | None) -> str:
    return "-" if count is None else f"+{count:,}"
