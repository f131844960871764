"""Compiles a space for GPUs that are not here: tables of what it needs there, and of what cannot run."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from autotune.analysis.compile_survey import Checked, Settings, Survey, survey
from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.sizes import parse_sizes
from autotune.cli.tables import Table, table
from autotune.compilers.binary_cache import default_folder
from autotune.core.launch_plan import TRITON
from autotune.core.text import first_error
from autotune.core.trials import Status
from autotune.errors import SetupError
from autotune.hardware.names import gpu_architectures
from autotune.tuning.task import Target, read_target

_ARCHITECTURES = "sm_75,sm_80,sm_90,sm_100"
_BUDGET = 200
_PIPELINED = "; it acts on loops with tl.dot only: for others, write tl.range(..., num_stages=num_stages)"


def add_compile(parser: argparse.ArgumentParser) -> None:
    """Add the options of a compilation for GPUs that are not here."""
    group = parser.add_argument_group("with --compile")
    group.add_argument("--compile", action="store_true", help="compile for the GPUs that --device names")
    group.add_argument(
        "--budget",
        metavar="N|all",
        type=_budget,
        help=f"configurations to compile: the default and a random sample, or all (default {_BUDGET})",
    )
    group.add_argument("--seed", type=opt.seed, help="seed of the sample (default 0)")
    opt.add_compiling(parser)


def compile_space(parsed: argparse.Namespace) -> None:
    """Compile and print a table; raises SetupError if the default, or the requested one, cannot run."""
    target = Target(parsed.space, None, parse_sizes(parsed.size), parsed.dtype)
    architectures = gpu_architectures(parsed.device or _ARCHITECTURES)
    _, spec = read_target(target)
    chosen = None if parsed.config is None else opt.config(parsed.config, spec)
    settings = Settings(
        count=_BUDGET if parsed.budget is None else parsed.budget or None,
        seed=parsed.seed or 0,
        timeout_s=parsed.compile_timeout,
        compilers=parsed.compilers,
        binaries=default_folder() if parsed.binary_cache else None,
        configs=() if chosen is None else (chosen,),
    )
    with opt.progress(parsed, first_line_s=0.3) as progress:
        surveys = survey(target, architectures, settings, progress.stage)
    if parsed.json:
        emit([survey_json(surveyed) for surveyed in surveys])
    else:
        failures = failures_table(surveys)
        notes = [*_most_spilled(surveys), *_idle_parameters(surveys, spec.dialect)]
        emit(_table(surveys), *(("", failures) if failures else ()), *(("", *notes) if notes else ()))
    for surveyed in surveys:
        if surveyed.failure:
            subject = "the default configuration" if chosen is None else chosen
            raise SetupError(f"{subject} cannot run on {surveyed.architecture.name}: {surveyed.failure}")


def _budget(text: str) -> int:
    """Parse a number of configurations; 0 stands for all."""
    try:
        return 0 if text == "all" else opt.at_least(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or all") from None


_COLUMNS = (
    *("architecture", "as on", "valid", "tried", "compile", "can launch", "registers", "spilling"),
    *("spill bytes", "local bytes", "shared bytes", "occupancy", "limited by"),
)
_AMD_COLUMNS = ("scalar registers", "accumulation registers")


def _table(surveys: Sequence[Survey]) -> Table:
    """A row for each architecture; AMD's further registers have columns where there is one of AMD."""
    has_amd = any(survey.architecture.is_amd for survey in surveys)
    rows = [(*_survey_cells(survey), *(_amd_cells(survey) if has_amd else ())) for survey in surveys]
    return table((*_COLUMNS, *(_AMD_COLUMNS if has_amd else ())), rows)


def _amd_cells(survey: Survey) -> tuple[str, str]:
    scalar = _known_values(survey.checked, lambda item: item.scalar_registers)
    accumulation = _known_values(survey.checked, lambda item: item.accumulation_registers)
    return _range_text(scalar, "{:.0f}"), _range_text(accumulation, "{:.0f}")


def failures_table(surveys: Sequence[Survey]) -> Table | None:
    """Make a table of the reasons why configurations cannot run; None if all can."""
    rows = []
    for gpu in surveys:
        name = gpu.architecture.name
        if gpu.note:
            rows.append((name, "all", gpu.note, ""))
        failed = [item for item in gpu.checked if item.failure is not None]
        examples = {_failure_kind(item): item for item in reversed(failed)}  # one of each kind
        for kind, count in Counter(map(_failure_kind, failed)).most_common():
            rows.append((name, str(count), _reason(examples[kind]), str(examples[kind].config)))
    return (
        table(("architecture", "number", "reason (of the first)", "first configuration"), rows)
        if rows
        else None
    )


def _most_spilled(surveys: Sequence[Survey]) -> Iterator[str]:
    """A line for each architecture with spills: the configuration with the most."""
    for gpu in surveys:
        spills = {item.config: item.spill_bytes or 0 for item in gpu.checked}
        config = max(spills, key=spills.__getitem__, default=None)
        if config is not None and spills[config]:
            yield f"{gpu.architecture.name}: {config} spills most, {spills[config]:,} bytes a thread"


def _idle_parameters(surveys: Sequence[Survey], dialect: str) -> Iterator[str]:
    """A line for each parameter that changes nothing of what was compiled for an architecture."""
    idle: dict[tuple[str, int, int], list[str]] = {}
    for gpu in surveys:
        works = [item.work for item in gpu.checked if item.work]
        for name in gpu.idle_parameters:
            idle.setdefault((name, len({*works}), len(works)), []).append(gpu.architecture.name)
    for (name, binaries, configs), architectures in idle.items():
        on = ", ".join(architectures)
        why = _PIPELINED if dialect == TRITON and name == "num_stages" else ""
        yield f"{name} changes no binary on {on}: {binaries:,} binaries for {configs:,} configurations{why}"


def survey_json(survey: Survey) -> dict[str, Any]:
    """A survey with every configuration as JSON values."""
    checked, device = survey.checked, survey.architecture.device
    return {
        "architecture": survey.architecture.name,
        "as_on": {"name": device.name, "compute_units": device.compute_units},
        "valid": survey.valid,
        "tried": len(checked),
        "compile": sum(_compiles(item) for item in checked),
        "can_launch": sum(item.failure is None for item in checked),
        "compiled_before": sum(item.cached for item in checked),
        "note": survey.note,
        "idle_parameters": survey.idle_parameters,
        "configurations": [_checked_json(item) for item in checked],
    }


def _checked_json(item: Checked) -> dict[str, Any]:
    row = asdict(item) | {"config": dict(item.config), "status": "ok", "detail": ""}
    del row["failure"], row["work"]
    if item.failure is not None:
        row |= {"status": item.failure.status.value, "detail": item.failure.detail}
    return row


def _survey_cells(survey: Survey) -> tuple[str, ...]:
    checked, device = survey.checked, survey.architecture.device
    can_launch = [item for item in checked if item.failure is None]
    places = [item.occupancy for item in can_launch if item.occupancy is not None]
    limits = Counter(place.limit for place in places)
    spills = _known_values(checked, lambda item: item.spill_bytes)
    return (
        survey.architecture.name,
        f"{device.name} ({device.compute_units} units)",
        f"{survey.valid:,}",
        f"{len(checked):,}",
        f"{sum(_compiles(item) for item in checked):,}",
        f"{len(can_launch):,}",
        _range_text(_known_values(checked, lambda item: item.registers), "{:.0f}"),
        f"{sum(value > 0 for value in spills):,}",
        f"{max(spills, default=0):,}",
        f"{max(_known_values(checked, lambda item: item.local_bytes), default=0):,}",
        f"{max(_known_values(checked, lambda item: item.shared_bytes), default=0):,}",
        _range_text([place.share for place in places], "{:.0%}"),
        ", ".join(f"{limit} {count / len(places):.0%}" for limit, count in limits.most_common()) or "-",
    )


def _known_values(checked: Iterable[Checked], of: Callable[[Checked], int | None]) -> list[int]:
    return [value for item in checked if (value := of(item)) is not None]


def _range_text(values: Sequence[float], style: str) -> str:
    if not values:
        return "-"
    shown = (min(values), median(values), max(values)) if len(values) > 1 else values
    return " / ".join(style.format(value) for value in shown)


def _compiles(item: Checked) -> bool:
    return item.failure is None or item.failure.status is Status.LAUNCH_ERROR


def _failure_kind(item: Checked) -> str:
    """The kind of a failure: its text without numbers."""
    assert item.failure is not None
    if item.failure.status is Status.LAUNCH_ERROR:
        return item.failure.detail.partition(":")[0]
    return f"{item.failure.status.value}: {_reason(item)}"


def _reason(item: Checked) -> str:
    assert item.failure is not None
    return first_error(item.failure.detail)
