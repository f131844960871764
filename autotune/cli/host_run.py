"""Runs a space's configurations on the CPU: a line for each."""

from __future__ import annotations

import argparse
from typing import Any

from autotune.analysis.host_run import HostRun, HostRuns, run_on_host
from autotune.checks.host_sanitizer import FURTHER_LIMITS
from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.outcomes import Unchecked
from autotune.core.text import count_text
from autotune.core.trials import Failure, Status
from autotune.tuning.task import read_target

_TIMEOUT_S = 600.0


def add_host_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run on the CPU."""
    group = parser.add_argument_group("with --run")
    group.add_argument(
        "--run",
        dest="run_here",
        action="store_true",
        help="run the default and the landmarks on this machine's CPU, at verify_sizes and at sizes near the "
        "tiles of each, and compare their results with the reference; nothing is timed or stored",
    )
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=opt.seconds,
        default=_TIMEOUT_S,
        help="time limit for all of these runs (default %(default)g)",
    )


def run_space(parsed: argparse.Namespace) -> None:
    """Run and print a line for each configuration; exits with 1 unless all end as expected."""
    target = opt.target(parsed)
    chosen = None if parsed.config is None else opt.config(parsed.config, read_target(target)[1])
    with opt.progress(parsed, first_line_s=0.3) as progress:
        result = run_on_host(target, parsed.timeout, chosen, progress.stage)
    emit(runs_json(result) if parsed.json else runs_text(result))
    if not all(run.is_as_expected for run in result.runs):
        raise SystemExit(1)


def runs_text(result: HostRuns) -> str:
    """A line for each configuration, and what was and was not done."""
    longest = max(len(run.name) for run in result.runs)
    lines, found = list[str](), dict[str, str]()  # the first configuration that ended in each way
    for run in result.runs:
        text = _outcome_text(run)
        same = isinstance(run.outcome, Failure) and found.setdefault(text, run.name) != run.name
        lines.append(f"{run.name:{longest}}  {f'the same as {found[text]}' if same else text}")
    lines += ["", f"checked {result.checks} on the CPU ({result.tool})"]
    if result.uncompared:
        lines.append(f"not compared: {', '.join(result.uncompared)}, which the reference does not return")
    lines.append("nothing was timed or stored")
    tried = sum(run.status is not Status.INVALID and Status.OK in run.expected for run in result.runs)
    if tried < result.valid:
        others = "for others, add landmarks to the space or give --config"
        if result.for_all:
            others += f"; for all: {result.for_all}"
        lines.append(f"{tried:,} of {result.valid:,} configurations; {others}")
    return "\n".join(lines)


def _outcome_text(run: HostRun) -> str:
    if isinstance(run.outcome, Unchecked):
        return f"not run: {run.outcome.reason}"
    if isinstance(run.outcome, Failure):
        if run.status is Status.INVALID:
            return run.outcome.detail
        return f"{'as expected, ' if run.is_as_expected else ''}{run.outcome}"
    parts = [f"ok at {count_text(run.sizes, 'size')}"]
    if run.tiles:
        parts[0] += f" of the space, and at {run.tiles} more, near its tiles"
    if run.unrun_tiles:
        parts.append(f"{run.unrun_tiles} near its tiles not run: no time left, or refused by the reference")
    if run.doubts:
        parts.append(
            f"wrong at sizes beyond the space's, where the default is not right either: {run.doubts[0]}"
        )
    if run.larger:
        parts.append(f"{run.larger} not run: more than {FURTHER_LIMITS}")
    if run.invalid:
        parts.append(f"not valid at {run.invalid}")
    return "; ".join(parts)


def runs_json(result: HostRuns) -> dict[str, Any]:
    """The runs as JSON values."""
    return {
        "kernel": result.kernel,
        "tool": result.tool,
        "uncompared": result.uncompared,
        "valid": result.valid,
        "configurations": [
            {
                "name": run.name,
                "config": dict(run.config),
                "status": run.status.value if run.status else "not_run",
                "detail": _detail(run),
                "as_expected": run.is_as_expected,
                "right_sizes": run.sizes,
                "right_tile_sizes": run.tiles,
                "unrun_tile_sizes": run.unrun_tiles,
                "doubts": run.doubts,
                "larger_sizes": run.larger,
                "invalid_sizes": run.invalid,
            }
            for run in result.runs
        ],
    }


def _detail(run: HostRun) -> str:
    if isinstance(run.outcome, Unchecked):
        return run.outcome.reason
    return run.outcome.detail if isinstance(run.outcome, Failure) else ""
