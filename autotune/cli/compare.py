"""Compare the results of several devices: times, parameters that differ, and how results carry over."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from autotune.analysis.compare import (
    MARGIN,
    AgainstCpu,
    DeviceResult,
    KernelComparison,
    Portable,
    against_cpus,
)
from autotune.cli import options as opt
from autotune.cli.output import emit, say
from autotune.cli.tables import UNKNOWN, cell, ratio_cell, table
from autotune.core.records import Config
from autotune.core.text import per_second, problem_text, table_sizes

EXAMPLE = "autotune compare reduce --plot reduce.svg"
_ALONE = "Nothing to compare with: tune on another device, or merge caches with `autotune merge`."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", type=opt.kernel, help="name of the kernel, its space file or a journal")
    opt.add_problem(parser)
    opt.add_cache(parser, "where to look for results")
    parser.add_argument(
        "--imported",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="also compare results of other tools: T4 files, Kernel Tuner caches, journals of `import`",
    )
    opt.add_plot(
        parser,
        "also draw as a heat map how fast each device's best runs on the others",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Compare cached and imported results, and print tables."""
    from autotune.analysis.compare import (
        compare,
        left_out,
        problem_of,
        require_one_kernel,
        results_of,
        select,
    )
    from autotune.analysis.external_results import as_results, of_same_kernel, read_external
    from autotune.errors import NoConfig
    from autotune.report.figures import save
    from autotune.report.plots import matrix_figure
    from autotune.serving.device_records import device_records

    sizes = opt.sizes(parsed)
    try:
        found = results_of(device_records(parsed.kernel, parsed.cache))
    except NoConfig:
        if not parsed.imported:
            raise
        found = []
    external = read_external(parsed.kernel, parsed.imported)
    found, namesakes = of_same_kernel(found, external)
    if namesakes:
        listed = ", ".join(namesakes)
        say(f"not compared, because of another kernel of that name: {listed}")
    # An imported file without sizes or type counts as one for the cache's problem.
    likely = problem_of(found, sizes, parsed.dtype) or problem_of(found, {}, parsed.dtype)
    dtype, cached_sizes, _ = likely or (parsed.dtype, (), "")
    found += as_results(external, sizes or dict(cached_sizes), dtype)
    require_one_kernel(found)
    selected = select(found, sizes, parsed.dtype)
    comparison = compare(parsed.kernel, selected)
    beside = list(against_cpus(found))
    if parsed.plot is not None:
        save(matrix_figure(comparison), parsed.plot)
    if parsed.json:
        emit(comparison_json(comparison, beside))
    else:
        print_comparison(comparison, beside)
        print_others(found, comparison)
    compared = [*selected, *(pair.cpu for pair in beside), *(pair.gpu for pair in beside)]
    if others := left_out(found, compared):
        listed = ", ".join(f"{folder} ({problems})" for folder, problems in others.items())
        say(f"not compared, because of another problem: {listed}")


class _Section(NamedTuple):
    """A title, a table that may have no rows, and sentences below it; `optional` as in `table`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    optional: Sequence[str] = ()


def print_comparison(comparison: KernelComparison, beside: Sequence[AgainstCpu] = ()) -> None:
    """Print the comparison as tables for a terminal."""
    for number, section in enumerate(_sections(comparison, beside)):
        drawn = table(section.columns, section.rows, section.optional, section.title)
        emit(*([""] if number else []), drawn, *section.notes)


def print_others(results: Sequence[DeviceResult], comparison: KernelComparison) -> None:
    """Print a table of all results if the comparison lacks some CPUs or sizes."""
    if all(one in comparison.tuned for one in results):
        return
    rows = [
        (
            one.folder,
            table_sizes(one.entry.sizes),
            one.entry.dtype,
            f"{one.entry.time_ms:.4g}",
            _rate(one.bytes_per_s, "B/s"),
        )
        for one in results
    ]
    columns = ("device", "sizes", "dtype", "ms", "rate")
    emit("", table(columns, rows, title="All results, on CPUs and GPUs and at every size"))


def comparison_json(comparison: KernelComparison, beside: Sequence[AgainstCpu]) -> dict[str, Any]:
    """The comparison as JSON values; unknown ones are null."""
    first = comparison.tuned[0].entry
    return {
        "kernel": comparison.kernel,
        "sizes": dict(first.sizes),
        "dtype": first.dtype,
        "devices": [_device_json(result) for result in comparison.tuned],
        "against_cpu": [_against_json(pair) for pair in beside],
        "flips": {name: dict(row) for name, row in comparison.flips.items()},
        "agreed": dict(comparison.agreed),
        "matrix": {source: dict(row) for source, row in comparison.matrix.items()},
        "portable": _portable_json(comparison.portable),
        "most_portable": comparison.most_portable and _portable_json(comparison.most_portable),
        "portfolio": [
            {"config": dict(config), "devices": list(devices)} for config, devices in comparison.portfolio
        ],
    }


def _sections(comparison: KernelComparison, beside: Sequence[AgainstCpu]) -> Iterator[_Section]:
    first = comparison.tuned[0].entry
    problem = problem_text(first.sizes, first.dtype, first.data)
    alone = [_ALONE] if len(comparison.tuned) == 1 and not beside else []
    yield _times(f"{comparison.kernel}, {problem}: the best on each device", comparison, alone)
    if beside:
        yield _against(beside)
    if len(comparison.tuned) == 1:
        return
    yield _flips(comparison)
    yield _matrix(comparison)
    yield _portability(comparison)
    yield _Section(
        f"Configurations within {MARGIN:.0%} of the best everywhere",
        ("configuration", "for"),
        [(str(config), ", ".join(devices)) for config, devices in comparison.portfolio],
    )


def _times(title: str, comparison: KernelComparison, notes: Sequence[str]) -> _Section:
    columns = ("device", "ms", "rate", "of bandwidth", "operations", "over default", "found by")
    rows = [_times_row(result) for result in comparison.tuned]
    if all(result.bytes_per_s is None and result.flops_per_s is None for result in comparison.tuned):
        notes = ["Rates are unknown: these results do not say how much work was done.", *notes]
    return _Section(title, columns, rows, notes, columns)


def _times_row(result: DeviceResult) -> tuple[str, ...]:
    origin = result.entry.provenance
    return (
        result.folder,
        f"{result.entry.time_ms:.4g}",
        _rate(result.bytes_per_s, "B/s"),
        cell(result.bandwidth_share, "{:.0%}"),
        _rate(result.flops_per_s, "FLOP/s"),
        ratio_cell(result.speedup),
        f"{origin.engine}, {origin.trials:,} of {origin.valid_configurations:,}",
    )


def _against(pairs: Sequence[AgainstCpu]) -> _Section:
    """The speed of each GPU relative to the fastest CPU."""
    rows = [
        (
            pair.gpu.folder,
            _time_text(pair.gpu),
            pair.cpu.folder,
            _time_text(pair.cpu),
            ratio_cell(pair.ratio),
        )
        for pair in pairs
    ]
    notes = []
    if any(not pair.is_same_problem and pair.ratio for pair in pairs):
        notes = ["Of different sizes, rates are compared, not times."]
    if any(pair.ratio is None for pair in pairs):
        notes.append("Without `work` in the space file, different sizes cannot be compared.")
    return _Section("GPU against CPU", ("GPU", "best", "CPU", "best", "GPU over CPU"), rows, notes)


def _time_text(result: DeviceResult) -> str:
    problem = problem_text(result.entry.sizes, result.entry.dtype, result.entry.data)
    return f"{result.entry.time_ms:.4g} ms at {problem}"


def _flips(comparison: KernelComparison) -> _Section:
    devices = [result.folder for result in comparison.tuned]
    rows = [
        (name, *(str(row.get(device, UNKNOWN)) for device in devices))
        for name, row in comparison.flips.items()
    ]
    notes = [f"The same everywhere: {Config(comparison.agreed)}"] if comparison.agreed else []
    return _Section("Parameters whose best value differs", ("parameter", *devices), rows, notes)


def _matrix(comparison: KernelComparison) -> _Section:
    rows = [
        (source, *(cell(share, "{:.1%}") for share in row.values()))
        for source, row in comparison.matrix.items()
    ]
    notes = []
    if comparison.missing:
        notes = [
            f"{comparison.missing} cells are not measured ({UNKNOWN}): `autotune search --engine "
            "adopt` tries the best configurations of other devices and fills them."
        ]
    columns = ("tuned on, run on:", *comparison.matrix)
    return _Section("Share of the best speed", columns, rows, notes)


def _portability(comparison: KernelComparison) -> _Section:
    least, best = comparison.portable, comparison.most_portable
    rows = [_portable_row("best worst case", least, comparison)]
    notes = [f"Best worst case: {least.config}, at most {least.worst:.3g} times as slow as the best."]
    if best is None:
        notes.append("No configuration was measured on every device, so no portability is known.")
    elif best.config != least.config:
        rows.append(_portable_row("most portable", best, comparison))
        notes.append(f"Most portable: {best.config}")
    columns = ("one for all", "portability", *(result.folder for result in comparison.tuned))
    return _Section("One configuration for all, times as slow as the best", columns, rows, notes)


def _portable_row(name: str, portable: Portable, comparison: KernelComparison) -> tuple[str, ...]:
    factors = (portable.slowdowns[result.folder] for result in comparison.tuned)
    return (name, cell(portable.portability, "{:.1%}"), *(cell(factor, "{:.3g}") for factor in factors))


def _rate(rate: float | None, unit: str) -> str:
    return UNKNOWN if rate is None else per_second(rate, unit)


def _against_json(pair: AgainstCpu) -> dict[str, Any]:
    return {
        "gpu": pair.gpu.folder,
        "cpu": pair.cpu.folder,
        "gpu_sizes": dict(pair.gpu.entry.sizes),
        "cpu_sizes": dict(pair.cpu.entry.sizes),
        "gpu_time_ms": pair.gpu.entry.time_ms,
        "cpu_time_ms": pair.cpu.entry.time_ms,
        "ratio": pair.ratio,
    }


def _device_json(result: DeviceResult) -> dict[str, Any]:
    return {
        "device": result.folder,
        "name": result.device.name,
        "config": dict(result.entry.config),
        "time_ms": result.entry.time_ms,
        "bytes_per_s": result.bytes_per_s,
        "bandwidth_share": result.bandwidth_share,
        "flops_per_s": result.flops_per_s,
        "speedup": result.speedup,
        "engine": result.entry.provenance.engine,
        "trials": result.entry.provenance.trials,
    }


def _portable_json(portable: Portable) -> dict[str, Any]:
    return {
        "config": dict(portable.config),
        "slowdowns": dict(portable.slowdowns),
        "worst": portable.worst,
        "portability": portable.portability,
    }
