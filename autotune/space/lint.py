"""Find likely mistakes in a legal space and its source; comments and strings of the source are ignored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product

import numpy as np

from autotune.core.error_bounds import HALF, HALF_RTOL, neighbours, rtol_by_type
from autotune.core.expressions import number as evaluate
from autotune.core.expressions import parse
from autotune.core.launch_plan import TRITON, known_values
from autotune.core.records import Config
from autotune.errors import ExpressionError
from autotune.sources.bare_code import bare_code
from autotune.sources.kernel_source import KernelSource
from autotune.sources.triton_module import TritonModule
from autotune.space.constraint_report import ConstraintReport, idle_constraints
from autotune.space.dry_runs import run_mistakes
from autotune.space.findings import Finding, Findings
from autotune.space.lint_launches import odd_tiles, partial_warps, untried_edges, wrong_launches
from autotune.space.lint_names import (
    reserved_words,
    undeclared_names,
    unknown_macros,
    unlisted_values,
    unseen_parameters,
    unused_parameters,
)
from autotune.space.signatures import mismatches, read_default
from autotune.space.space import ValidSpace
from autotune.space.spec import SpaceSpec
from autotune.space.yaml_document import located

# Findings whose consequences a run would report as separate mistakes.
_BREAKS = (
    "signature",
    "redefined_parameter",
    "unknown_macro",
    "unknown_name",
    "hidden_variable",
    "flat_block",
    "odd_tile",
)


def lint(space: ValidSpace, source: str, constraints: Iterable[ConstraintReport]) -> Findings:
    """Find likely mistakes in a bound space and its source, given the `constraint_report` of the space."""
    findings = _of_source(space, source)
    of_space = (
        *idle_constraints(space, constraints),
        *_unreachable_values(space),
        *_invalid_default(space),
        *partial_warps(space),
    )
    return findings._replace(mistakes=(*findings.mistakes, *of_space))


def lint_source(space: ValidSpace, source: str) -> tuple[Finding, ...]:
    """Find the likely mistakes that do not depend on the device; a search shows them first."""
    return _of_source(space, source).mistakes


def _of_source(space: ValidSpace, source: str) -> Findings:
    is_python = space.spec.source.suffix == ".py"
    read = None if is_python else read_default(space, source)
    code = bare_code(source, is_python=is_python)
    unknown = (*unknown_macros(space, source, code, read),)
    findings = (
        *(mismatches(space, source, read) if is_python or read is not None else ()),
        *unused_parameters(space, code),
        *unlisted_values(space),
        *_repeated_landmarks(space.spec),
        *unseen_parameters(space, source),
        *unknown,
        *(
            ()
            if read is None
            else undeclared_names(space, source, read, {finding.subject for finding in unknown})
        ),
        *(() if is_python else reserved_words(space)),
        *untried_edges(space),
        *_tight_tolerance(space),
        *(() if read is None else wrong_launches(space, read)),
    )
    runs: TritonModule | KernelSource | None = read
    if space.spec.dialect == TRITON:
        path = space.spec.source
        runs = module = TritonModule(path.read_text(encoding="utf-8-sig"), path)
        findings += (*odd_tiles(space, module),)
    if runs is None or any(finding.kind in _BREAKS for finding in findings):
        return Findings(findings)
    of_runs = run_mistakes(space, runs)
    return of_runs._replace(mistakes=(*findings, *of_runs.mistakes))


def _repeated_landmarks(spec: SpaceSpec) -> Iterator[Finding]:
    """Landmarks that are the same configuration as one before them, such as after a parameter has gone.

    One with a note is meant to be there.
    """
    names: dict[Config, str] = {}
    landmarks = [landmark for landmark in spec.landmarks if not landmark.note]
    repeated = [item for item in landmarks if names.setdefault(item.config, item.name) != item.name]
    if repeated:
        name, earlier = repeated[0].name, names[repeated[0].config]
        more = f", and {len(repeated) - 1} more repeat others" if repeated[1:] else ""
        detail = f"the same configuration as {earlier}{more}; remove what repeats another"
        yield Finding("repeated_landmark", name, detail, located(spec.path, f"landmarks.{name}"))


def _unreachable_values(space: ValidSpace) -> Iterator[Finding]:
    """Values in no valid configuration, unless only some devices have the parameter."""
    for column, parameter in enumerate(space.parameters):
        condition = space.spec.conditions.get(parameter.name, "True")
        if any(name.startswith("device.") for name in parse(condition).names):
            continue  # for other devices
        counts = np.bincount(space.rows[:, column], minlength=len(parameter.values))
        for value, count in zip(parameter.values, counts.tolist(), strict=True):
            if not count and not any(wrong[parameter.name] == value for wrong in space.spec.declared_wrong):
                detail = f"in no valid configuration on {space.device.name}"
                place = located(space.spec.path, f"parameters.{parameter.name}")
                yield Finding("unreachable_value", f"{parameter.name}={value}", detail, place)


def _invalid_default(space: ValidSpace) -> Iterator[Finding]:
    if reasons := space.why_invalid(space.spec.default):
        detail = f"not valid on {space.device.name}, and a search begins with it: {'; '.join(reasons)}"
        place = located(space.spec.path, "default")
        yield Finding("invalid_default", str(space.spec.default), detail, place)


def _tight_tolerance(space: ValidSpace) -> Iterator[Finding]:
    """An `rtol` below the last bit of a 16-bit output: results are rounded to that bit."""
    spec = space.spec
    outputs = [
        item for item in spec.arguments if item.role in ("out", "inout") and item.name not in spec.errors
    ]
    for dtype, output in product(HALF, outputs):
        if output.dtype != dtype and (output.dtype != "DTYPE" or dtype not in spec.dtypes):
            continue
        last_bit, _ = neighbours(dtype)
        with suppress(ExpressionError):
            values = known_values(space.device, space.problem.sizes, dtype, spec.default, spec.derived)
            texts = spec.tolerances.get(output.name, (spec.rtol, spec.atol))
            rtol, atol = (float(evaluate(parse(text), values)) for text in texts)
            if 0 < rtol < last_bit and atol < last_bit:
                mend = HALF_RTOL if output.dtype == dtype else rtol_by_type(texts[0])
                detail = (
                    f"{rtol:g} is less than the last bit of {dtype}, {last_bit:.2g}, to which results are "
                    f"rounded before they are compared; write rtol: {mend}"
                )
                yield Finding("tight_tolerance", "verify.rtol", detail, located(spec.path, "verify.rtol"))
                return
