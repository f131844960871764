"""Spaces: from a YAML file to the valid configurations of a kernel on a device."""

from autotune.space.arguments import Fill, FilledArgument
from autotune.space.binding import Space, bind, problem_of
from autotune.space.lint import ConstraintReport, Finding, constraint_report, lint
from autotune.space.spec import Constraint, Landmark, SpaceSpec, load_space

__all__ = [
    "Constraint",
    "ConstraintReport",
    "Fill",
    "FilledArgument",
    "Finding",
    "Landmark",
    "Space",
    "SpaceSpec",
    "bind",
    "constraint_report",
    "lint",
    "load_space",
    "problem_of",
]
