"""Spaces: from a YAML file to the valid configurations of a kernel on a device."""

from autotune.space.arguments import Fill, FilledArgument
from autotune.space.lint import ConstraintReport, Finding, constraint_report, lint, lint_source
from autotune.space.space import Space, bind, problem_of
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
    "lint_source",
    "load_space",
    "problem_of",
]
