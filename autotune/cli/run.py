"""Verify and time one configuration: the tuned best, a landmark, the default, or any other.

With --landmarks, time the tuned best and all landmarks, the named steps of a space's ladder. If their notes
quote published figures, such as `7.02 ms (GTX 1060)`, a second table shows them next to this device's.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.device_use import COLUMNS, counters_table, counters_text, use_of
from autotune.cli.output import emit, say
from autotune.cli.tables import UNKNOWN, Table, cell, table
from autotune.cli.texts import measured_text, rate_text, space_problem
from autotune.core.text import ratio_text, size_text
from autotune.core.trials import Budget, Status, Trial
from autotune.devices import INTERPRETER
from autotune.diagnosis.profiler import PROFILERS, find_profiler, report_file
from autotune.errors import SetupError
from autotune.evaluation.instance import work
from autotune.report.source_figures import SourceFigure, source_figures
from autotune.space import Landmark, ValidSpace

if TYPE_CHECKING:
    from autotune.diagnosis.counted_runs import CountedRun
    from autotune.tuning.observer import Observer
    from autotune.tuning.options import Options
    from autotune.tuning.task import TuningTask

_Figures = Mapping[str, Sequence[SourceFigure]]  # columns of each step
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
        help="run it N times, each in its own process (default %(default)s)",
    )
    parser.add_argument(
        "--profile",
        choices=PROFILERS,
        help="afterwards, run it once more under Nsight Compute (ncu) or Nsight Systems (nsys), and print "
        "the profiler's figures for the launches",
    )
    parser.add_argument(
        "--counters",
        action="store_true",
        help="run each configuration once more and count active threads, sectors and bank conflicts; if "
        "Nsight Compute may read counters, also waits at barriers, issue slots and occupancy",
    )
    opt.add_run(parser, resumes=True)
    opt.add_cache(parser, "where to look for the tuned best")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the configuration, or the landmarks, and print the outcome; fails if a run of the one does."""
    if parsed.landmarks:
        _run_ladder(parsed)
    else:
        _run_one(parsed)


def _run_one(parsed: argparse.Namespace) -> None:
    from autotune.diagnosis.profiler import profile_once
    from autotune.tuning.single_runs import run_once

    opt.require_unset(parsed, "without --landmarks, the configuration always runs again", "fresh", "keep")
    options = opt.run_options(parsed, budget=Budget())
    with opt.open_task(parsed) as (task, progress):
        config, origin = opt.chosen_config(parsed, task)
        if parsed.profile:
            find_profiler(parsed.profile, task.address)  # before anything runs
        trials = [run_once(task, options, progress, config) for _ in range(parsed.repeat)]
        counted = _counted_runs(parsed, task, options, progress, {"": trials[0]}).get("")
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
        say(f"the profile is in {report}")


def _run_ladder(parsed: argparse.Namespace) -> None:
    """Verify and time the landmarks, and print a table."""
    from autotune.tuning.served_best import tuned_best
    from autotune.tuning.single_runs import ladder

    others = ("config", "landmark", "default", "repeat", "profile")
    opt.require_unset(parsed, "--landmarks runs all landmarks", *others)
    options = opt.run_options(parsed, budget=Budget())
    with opt.open_task(parsed) as (task, progress):
        best = tuned_best(task, parsed.cache)  # first: a damaged cache should cost no time
        steps = ladder(task, options, progress, best)
        counted = _counted_runs(parsed, task, options, progress, steps)
    figures = {landmark.name: source_figures(landmark.note) for landmark in task.spec.landmarks}
    if parsed.json:
        emit(ladder_json(task.space, steps, figures, counted))
    else:
        quoted = ("", sources_table(task.space, steps, figures)) if any(figures.values()) else ()
        emit(ladder_table(task.space, steps), *quoted)
        if counted:
            emit("", counters_table(counted))


def _counted_runs(
    parsed: argparse.Namespace,
    task: TuningTask,
    options: Options,
    observer: Observer,
    trials: Mapping[str, Trial],
) -> dict[str, CountedRun]:
    """The counters of trials by name; empty if nobody asked for them."""
    if not parsed.counters:
        return {}
    from autotune.diagnosis.counted_runs import counted_runs

    return counted_runs(task, options, observer, trials)


def run_text(space: ValidSpace, trials: Sequence[Trial], origin: str) -> str:
    """The configuration, its times with intervals and rates, and its use of the device."""
    first, use = trials[0], use_of(space, trials[0])
    measured = [trial.measurement for trial in trials if trial.measurement is not None]
    lines = [
        f"{space.spec.kernel} on {space.device.name}, {space_problem(space)}, {origin}:",
        f"  {first.config}",
    ]
    if measured:
        checked = (*map(size_text, space.spec.verify_sizes), "and at the problem's size")
        lines.append(f"verified   at {'; '.join(checked)}")
    if space.device.backend == INTERPRETER:
        measured = []  # such a time says nothing
    lines += [f"time       {measured_text(space, first.config, measurement)}" for measurement in measured]
    if len(measured) > 1:
        each_ms = [measurement.median_ms for measurement in measured]
        spread = (max(each_ms) - min(each_ms)) / median(each_ms)
        lines.append(f"runs       {len(each_ms)}, the slowest and the fastest {spread:.1%} apart")
    if first.registers is not None:
        lines.append(
            f"resources  {first.registers} registers, {first.spill_bytes or 0:,} bytes spilled, "
            f"{first.shared_bytes or 0:,} bytes of shared memory"
        )
    occupancy = use.occupancy
    if occupancy is not None:
        lines.append(
            f"occupancy  {occupancy.share:.0%}: {occupancy.blocks} blocks, {occupancy.warps} warps on a "
            f"multiprocessor, limited by {occupancy.limit}"
        )
    if use.bandwidth_share is not None:
        lines.append(f"bandwidth  {use.bandwidth_share:.0%} of the device's peak")
    return "\n".join(lines)


def run_json(
    space: ValidSpace, trials: Sequence[Trial], counted: CountedRun | None = None
) -> list[dict[str, Any]]:
    """The same for scripts, as JSON values: one object for each run."""
    occupancy = use_of(space, trials[0]).occupancy
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
            "occupancy": None if occupancy is None else occupancy.share,
            "occupancy_limit": None if occupancy is None else occupancy.limit,
            **({"counters": dict(counted)} if counted else {}),
        }
        for trial in trials
    ]


def ladder_table(space: ValidSpace, steps: Mapping[str, Trial]) -> Table:
    """Make a table with a row per step: time, rate, speed-up over the first step that ran."""
    landmarks = {landmark.name: landmark for landmark in space.spec.landmarks}
    first_ms = next((trial.time_ms for trial in steps.values() if trial.time_ms is not None), 0.0)
    rows = [
        _row(space, landmarks.get(name) or Landmark(name, trial.config, str(trial.config)), trial, first_ms)
        for name, trial in steps.items()
    ]
    columns = ("step", "ms", "rate", "speed-up", *COLUMNS, "note")
    return table(columns, rows, optional=("rate", *COLUMNS))


def _row(space: ValidSpace, step: Landmark, trial: Trial, first_ms: float) -> Sequence[str]:
    """The cells of a step; `first_ms` is the time of the first one that ran."""
    name, note = step.name, step.note
    if trial.time_ms is None:
        is_declared = trial.status is step.expect
        why = f"{note}; wrong, as declared: {trial.detail}" if is_declared else _why_not(trial)
        return (name, *[UNKNOWN] * (3 + len(COLUMNS)), why)
    if step.expect is not Status.OK:
        note = f"declared as {step.expect.value}, which verification did not find; {note}"
    rate, speedup = rate_text(space, trial.config, trial.time_ms), ratio_text(first_ms / trial.time_ms)
    return (name, cell(trial.time_ms), rate, speedup, *use_of(space, trial).cells, note)


def ladder_json(
    space: ValidSpace, steps: Mapping[str, Trial], figures: _Figures, counted: Mapping[str, CountedRun]
) -> list[dict[str, Any]]:
    """The same for scripts, as JSON values, with the figures of the sources."""
    expected = {landmark.name: landmark.expect.value for landmark in space.spec.landmarks}
    return [
        {
            "step": name,
            "time_ms": trial.time_ms,
            "status": trial.status.value,
            "expected": expected.get(name, Status.OK.value),
            "detail": trial.detail,
            "sources": [figure._asdict() for figure in figures.get(name, ())],
            **({"counters": dict(counted[name])} if name in counted else {}),
        }
        for name, trial in steps.items()
    ]


def sources_table(space: ValidSpace, steps: Mapping[str, Trial], figures: _Figures) -> Table:
    """Make a table of the sources' figures next to this device's, each in one unit.

    Every figure has its factor: how much faster the step is than the last one above with a figure in the same
    column.
    """
    quoted = {name: trial for name, trial in steps.items() if figures.get(name)}
    sources = dict.fromkeys((figure.device, figure.unit) for name in quoted for figure in figures[name])
    units = dict.fromkeys(unit for _, unit in sources)
    figures_of = [
        *(
            (device, unit, [_quoted(figures[name], device, unit) for name in quoted])
            for device, unit in sources
        ),
        *(("here", unit, [_own_figure(space, trial, unit) for trial in quoted.values()]) for unit in units),
    ]
    titles, columns = ["step"], [list(quoted)]
    for device, unit, values in figures_of:
        titles += [f"{device}, {unit}", "factor"]
        columns += [[cell(value, "{:,.4g}") for value in values], _factors(values, unit)]
    return table(titles, list(zip(*columns, strict=True)))


def _quoted(figures: Sequence[SourceFigure], device: str, unit: str) -> float | None:
    return next((figure.value for figure in figures if (figure.device, figure.unit) == (device, unit)), None)


def _own_figure(space: ValidSpace, trial: Trial, unit: str) -> float | None:
    """A trial's time or rate in the unit of a source; None if it failed, or the space states no such work."""
    if trial.time_ms is None or unit == "ms":
        return trial.time_ms
    amount = work(space, trial.config, space.problem.sizes).get({"GB/s": "bytes"}.get(unit, "flops"))
    return None if amount is None else amount / trial.time_ms * 1e-6


def _factors(values: Sequence[float | None], unit: str) -> list[str]:
    """How much faster each figure is than the last one before it."""
    before: float | None = None
    cells = []
    for value in values:
        if value is None or before is None:
            cells.append(UNKNOWN)
        else:
            cells.append(f"{before / value if unit == 'ms' else value / before:.2f}")
        before = before if value is None else value
    return cells


def _why_not(trial: Trial) -> str:
    if trial.status is Status.INVALID:
        return f"not valid here: {trial.detail}"
    return str(trial.failure)
