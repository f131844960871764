"""Spaces: from a YAML file to the valid configurations of a kernel on a device."""

from autotune.space.arguments import Fill, FilledArgument
from autotune.space.configurations import Landmark
from autotune.space.constraint_report import ConstraintReport, constraint_report, limit_report
from autotune.space.findings import Finding, Findings
from autotune.space.lint import lint, lint_source
from autotune.space.lint_names import require_seen
from autotune.space.source_places import place_at, source_place
from autotune.space.space import ValidSpace, bind, problem_of
from autotune.space.spec import Constraint, SpaceSpec, load_space
from autotune.space.yaml_document import located

__all__ = [
    "Constraint",
    "ConstraintReport",
    "Fill",
    "FilledArgument",
    "Finding",
    "Findings",
    "Landmark",
    "SpaceSpec",
    "ValidSpace",
    "bind",
    "constraint_report",
    "limit_report",
    "lint",
    "lint_source",
    "load_space",
    "located",
    "place_at",
    "problem_of",
    "require_seen",
    "source_place",
]
