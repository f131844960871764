"""Verify and time one configuration: the tuned best, a landmark, the default, or any other.

With --landmarks, time all landmarks, which are the named steps of a space's ladder, and the tuned best. If
their notes quote figures of a source, such as `7.02 ms (GTX 1060)`, a second table shows them next to this
device's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.device_use import counters_text, use_of
from autotune.cli.ladder import counted_runs_of, run_ladder
from autotune.cli.output import emit, say
from autotune.cli.texts import measured_text, space_problem
from autotune.core.text import size_text
from autotune.core.trials import Budget, Trial
from autotune.errors import SetupError
from autotune.evaluation.profiler import PROFILERS, find_profiler, report_file
from autotune.space import Space

if TYPE_CHECKING:
    from autotune.diagnosis.counted_runs import CountedRun

EXAMPLE = "autotune run spaces/reduce.yaml --config BLOCK_SIZE=128,UNROLL=1"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser)
    opt.add_choice(parser, "run")
    parser.add_argument("--landmarks", action="store_true", help="run all landmarks and the tuned best")
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=opt.at_least(1),
        default=1,
        help="run it N times, each in a process of its own (default %(default)s)",
    )
    parser.add_argument(
        "--profile",
        choices=PROFILERS,
        help="afterwards, run it once more under Nsight Compute (ncu) or Nsight Systems (nsys), and print "
        "its figures for the launches",
    )
    parser.add_argument(
        "--counters",
        action="store_true",
        help="run each configuration once more and count: active threads, sectors, bank conflicts, and where "
        "Nsight Compute may count, waits at barriers, issue slots and occupancy",
    )
    opt.add_run(parser, resumes=True)
    opt.add_cache(parser, "where to look for the tuned best")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the configuration, or the landmarks, and print the outcome; fails if a run of the one does."""
    if parsed.landmarks:
        run_ladder(parsed)
    else:
        _run_one(parsed)


def _run_one(parsed: argparse.Namespace) -> None:
    from autotune.tuning.single_runs import profile_once, run_once

    opt.require_unset(parsed, "one configuration always runs again", "fresh", "keep")
    options = opt.run_options(parsed, budget=Budget())
    with opt.opened_task(parsed) as (task, progress):
        config, origin = opt.chosen_config(parsed, task)
        if parsed.profile:
            find_profiler(parsed.profile, task.address)  # before anything runs
        trials = [run_once(task, options, progress, config) for _ in range(parsed.repeat)]
        counted = counted_runs_of(parsed, task, options, progress, {"": trials[0]}).get("")
    if parsed.json:
        emit(run_json(task.space, trials, counted))
    else:
        emit(run_text(task.space, trials, origin), *([counters_text(counted)] if counted else []))
    failed = next(filter(None, (trial.failure for trial in trials)), None)
    if failed is not None:
        raise SetupError(str(failed))
    if parsed.profile:
        report = report_file(parsed.profile, f"{task.spec.kernel}.{task.device.slug}")
        with opt.progress(parsed) as progress:
            said = profile_once(task, options, progress, config, parsed.profile, report)
        (say if parsed.json else emit)(said)
        say(f"kept in {report}")


def run_text(space: Space, trials: Sequence[Trial], origin: str) -> str:
    """The configuration, its times with intervals and rates, and its use of the device."""
    first, use = trials[0], use_of(space, trials[0])
    measured = [trial.measurement for trial in trials if trial.measurement is not None]
    lines = [
        f"{space.spec.kernel} on {space.device.name}, {space_problem(space)}, {origin}:",
        f"  {first.config}",
    ]
    if measured:
        checked = (*map(size_text, space.spec.verify_sizes), "and at the problem's size")
        lines.append(f"verified   at {', '.join(checked)}")
    lines += [f"time       {measured_text(space, first.config, one)}" for one in measured]
    if len(measured) > 1:
        each_ms = [one.median_ms for one in measured]
        spread = (max(each_ms) - min(each_ms)) / median(each_ms)
        lines.append(f"runs       {len(each_ms)}, the slowest and the fastest {spread:.1%} apart")
    if first.registers is not None:
        lines.append(
            f"resources  {first.registers} registers, {first.spill_bytes or 0:,} bytes spilled, "
            f"{first.shared_bytes or 0:,} bytes of shared memory"
        )
    held = use.occupancy
    if held is not None:
        lines.append(
            f"occupancy  {held.share:.0%}: {held.blocks} blocks, {held.warps} warps on a multiprocessor, "
            f"limited by {held.limit}"
        )
    if use.bandwidth_share is not None:
        lines.append(f"bandwidth  {use.bandwidth_share:.0%} of the device's peak")
    return "\n".join(lines)


def run_json(
    space: Space, trials: Sequence[Trial], counted: CountedRun | None = None
) -> list[dict[str, Any]]:
    """The same for scripts, as JSON values: one object for each run."""
    held = use_of(space, trials[0]).occupancy
    return [
        {
            "config": dict(trial.config),
            "status": trial.status.value,
            "detail": trial.detail,
            "time_ms": trial.time_ms,
            "interval_ms": trial.measurement.interval_ms if trial.measurement else None,
            "registers": trial.registers,
            "spill_bytes": trial.spill_bytes,
            "shared_bytes": trial.shared_bytes,
            "occupancy": None if held is None else held.share,
            "occupancy_limit": None if held is None else held.limit,
            **({"counters": dict(counted)} if counted else {}),
        }
        for trial in trials
    ]
