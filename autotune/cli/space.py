"""Count and check a space: show what each constraint removes, and likely mistakes.

With --compile, compile a sample of it for GPUs that may be absent: registers, spills, occupancy, what cannot
run. With --run, run the kernel on this machine's CPU and compare it with its reference.
With --report, write an HTML page with charts: configurations left after each constraint, valid
configurations per value, parameters that are tied to each other, and a sample to filter.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autotune.cli import options as opt
from autotune.cli.cross_compile import add_compile, compile_space
from autotune.cli.host_run import add_host_run, run_space
from autotune.cli.output import emit
from autotune.cli.tables import UNKNOWN, Table, cell, table
from autotune.cli.texts import space_problem
from autotune.core.records import Config, Parameter
from autotune.core.text import table_sizes
from autotune.hardware.architectures import NOT_HERE
from autotune.space import (
    ConstraintReport,
    Findings,
    SpaceSpec,
    ValidSpace,
    constraint_report,
    limit_report,
    lint,
)
from autotune.tuning.task import count_space

_MAX_SIZES = 3  # named where launches take too long to follow
EXAMPLE = "autotune space spaces/reduce.yaml --config BLOCK_SIZE=96,UNROLL=4"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_space(parser)
    parser.add_argument(
        "-d",
        "--device",
        help="a device of this machine, a GPU's name or an architecture, such as sm_90; with --compile, "
        "several with commas between them (default: the first GPU, else the CPU; with --compile, four GPUs)",
    )
    opt.add_problem(parser)
    opt.add_data(parser)
    opt.add_config(
        parser, "say whether a configuration is valid; with --compile or --run, take only this one"
    )
    add_compile(parser)
    add_host_run(parser)
    parser.add_argument("--report", action="store_true", help="write a page with charts of the space")
    opt.add_output(parser, "where --report writes the page (default: space.html)")
    opt.add_verbosity(parser)
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    if parsed.compile:
        opt.require_unset(parsed, "--compile prints a table", "report", "output", "data")
        opt.require_unset(parsed, "--compile runs no kernel", "run_here", "timeout")
        compile_space(parsed)
        return
    opt.require_unset(parsed, "only --compile takes a sample", "budget", "seed")
    if parsed.run_here:
        opt.require_unset(parsed, "--run prints a line for each configuration", "report", "output")
        opt.require_unset(parsed, "--run takes the space's verify_sizes", "size")
        run_space(parsed)
    else:
        opt.require_unset(parsed, "only --run has a time limit", "timeout")
        _describe(parsed)


def _describe(parsed: argparse.Namespace) -> None:
    from autotune.evaluation.reference_check import check_reference

    space, source = count_space(opt.target(parsed))
    if parsed.config is not None:
        _explain(space, opt.config(parsed.config, space.spec), parsed.json)
        return
    constraints = constraint_report(space)
    linted = lint(space, source.text, constraints)
    findings = linted._replace(mistakes=(*linted.mistakes, *check_reference(space, source)))
    if parsed.report:
        from autotune.report.page import write_page
        from autotune.report.space_page import space_html

        html = space_html(space, constraints, findings.mistakes)
        emit(f"{write_page(parsed.output or Path('space.html'), html)}: {len(space):,} valid configurations")
        return
    emit((space_json if parsed.json else space_text)(space, constraints, findings))


def _explain(space: ValidSpace, config: Config, as_json: bool) -> None:
    """Say whether a configuration is valid, and exit with 1 if it is not."""
    reasons = space.why_invalid(config)
    if as_json:
        emit({"config": dict(config), "valid": not reasons, "reasons": reasons})
    else:
        emit(f"not valid: {'; '.join(reasons)}" if reasons else f"valid: {config}")
    if reasons:
        raise SystemExit(1)


def space_text(
    space: ValidSpace, constraints: Sequence[ConstraintReport], findings: Findings
) -> Iterator[str | Table]:
    """Counts, parameters, constraints and findings."""
    device = space.device
    yield f"{space.spec.kernel} on {device.name}, {space_problem(space)}"
    if device.driver == NOT_HERE:
        yield f"this machine has no such device: counted with the known limits of {device.architecture}"
    yield f"{len(space):,} valid of {space.cartesian:,} combinations\n"
    domains = [
        (item.name, str(len(item.values)), ", ".join(map(str, item.values)) + _condition(space.spec, item))
        for item in space.parameters
    ]
    yield table(("parameter", "values", ""), domains)
    effects = [
        (
            str(item.line or "device"),
            UNKNOWN if item.removes_alone is None else f"{item.removes_alone / space.cartesian:.1%}",
            cell(item.appear_without, "+{:,}"),
            item.text,
        )
        for item in (*constraints, *limit_report(space))
    ]
    if effects:
        yield ""
        yield table(("line", "removes alone", "valid without it", "constraint"), effects)
    path, is_here = space.spec.path, device.driver != NOT_HERE
    looks = ("--run",) if space.spec.dialect == "opencl" else ("--run", "--compile")
    steps = [f"search {path}"] if is_here else [f"space {path} {how}" for how in looks]
    rows = [(finding.kind, finding.subject, finding.placed) for finding in findings.mistakes]
    yield ""
    yield table(("finding", "", ""), rows) if rows else "no findings"
    if findings.left_out:
        sizes = [table_sizes(problem) for problem in findings.left_out]
        more = f" and {len(sizes) - _MAX_SIZES} more sizes" if len(sizes) > _MAX_SIZES else ""
        yield (
            f"not checked: accesses of threads at {', '.join(sizes[:_MAX_SIZES])}{more}, which take too long "
            "to follow; a search runs the kernel at these sizes"
        )
    if not rows:
        for number, step in enumerate(steps):
            yield f"{'then' if number else 'next'}    autotune {step}"


def _condition(spec: SpaceSpec, parameter: Parameter) -> str:
    """The condition under which a parameter matters; empty if it always does."""
    when = spec.conditions.get(parameter.name)
    return "" if when is None else f"  when {when}, else {parameter.values[0]}"


def space_json(
    space: ValidSpace, constraints: Sequence[ConstraintReport], findings: Findings
) -> dict[str, Any]:
    return {
        "kernel": space.spec.kernel,
        "valid": len(space),
        "combinations": space.cartesian,
        "parameters": {parameter.name: list(parameter.values) for parameter in space.parameters},
        "conditions": dict(space.spec.conditions),
        "constraints": [asdict(constraint) for constraint in constraints],
        "findings": [asdict(finding) for finding in findings.mistakes],
        "left_out": [dict(sizes) for sizes in findings.left_out],
    }
