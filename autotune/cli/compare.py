"""Compare the results of several devices: times, parameters that differ, and how results carry over."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from autotune.analysis.compare import (
    MARGIN,
    AgainstCpu,
    DeviceResult,
    KernelComparison,
    Portable,
    against_cpus,
    compare,
    comparison_json,
    left_out,
    problem_of,
    require_one_kernel,
    results_of,
    select,
)
from autotune.cli import options as opt
from autotune.cli.output import emit, say
from autotune.cli.sizes import parse_sizes
from autotune.cli.tables import UNKNOWN, Table, cell, ratio_cell, table
from autotune.core.records import Config
from autotune.core.text import per_second, problem_text, table_sizes
from autotune.errors import NoConfig
from autotune.report.figures import save
from autotune.serving.device_records import device_records

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
    opt.add_plot(parser, "also draw as a heat map how fast each device's best runs on the others")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.analysis.external_results import UNKNOWN_KIND, as_results, of_same_kernel, read_external
    from autotune.report.plots import matrix_figure

    sizes = parse_sizes(parsed.size)
    try:
        results = results_of(device_records(parsed.kernel, parsed.cache))
    except NoConfig:
        if not parsed.imported:
            raise
        results = []
    external = read_external(parsed.kernel, parsed.imported)
    results, namesakes = of_same_kernel(results, external)
    if namesakes:
        listed = ", ".join(namesakes)
        say(f"not compared, as they have another kernel of this name: {listed}")
    # An imported file without sizes or type counts as one for the cache's problem.
    likely = problem_of(results, sizes, parsed.dtype) or problem_of(results, {}, parsed.dtype)
    dtype, cached_sizes, _ = likely or (parsed.dtype, (), "")
    results += as_results(external, results, sizes or dict(cached_sizes), dtype)
    unknown = dict.fromkeys(result.folder for result in results if result.device.kind == UNKNOWN_KIND)
    if unknown and any(result.device.kind == "cpu" for result in results):
        say(f"not known to be a CPU or a GPU, so compared as neither: {', '.join(unknown)}")
    require_one_kernel(results)
    selected = select(results, sizes, parsed.dtype)
    comparison = compare(parsed.kernel, selected)
    beside = list(against_cpus(results))
    if parsed.plot is not None:
        save(matrix_figure(comparison), parsed.plot)
    if parsed.json:
        emit(comparison_json(comparison) | {"against_cpu": [_against_json(pair) for pair in beside]})
    else:
        emit(*comparison_text(comparison, beside), *_all_results(results, comparison))
    compared = [*selected, *(pair.cpu for pair in beside), *(pair.gpu for pair in beside)]
    if others := left_out(results, compared):
        listed = ", ".join(f"{folder} ({problems})" for folder, problems in others.items())
        say(f"not compared, as their problems differ: {listed}")


def comparison_text(comparison: KernelComparison, beside: Sequence[AgainstCpu] = ()) -> Iterator[Table | str]:
    """The comparison as tables, each with sentences below it and an empty line before the next."""
    entry = comparison.tuned[0].entry
    yield from _times_table(comparison, problem_text(entry.sizes, entry.dtype, entry.data))
    if len(comparison.tuned) == 1 and not beside:
        yield _ALONE
    if beside:
        yield from _gpus_against_cpus(beside)
    if len(comparison.tuned) > 1:
        yield from _differing_parameters(comparison)
        yield from _speed_matrix(comparison)
        yield from _portability(comparison)
        rows = [(str(config), ", ".join(devices)) for config, devices in comparison.portfolio]
        yield ""
        title = f"Configurations within {MARGIN:.0%} of the best everywhere"
        yield table(("configuration", "for"), rows, title=title)


def _all_results(results: Sequence[DeviceResult], comparison: KernelComparison) -> Iterator[Table | str]:
    """A table of all results if the comparison lacks some CPUs or sizes."""
    if all(result in comparison.tuned for result in results):
        return
    rows = [
        (
            result.folder,
            table_sizes(result.entry.sizes),
            result.entry.dtype,
            f"{result.entry.time_ms:.4g}",
            _rate_cell(result.bytes_per_s, "B/s"),
        )
        for result in results
    ]
    columns = ("device", "sizes", "dtype", "ms", "rate")
    yield ""
    yield table(columns, rows, title="All results, on CPUs and GPUs and at every size")


def _times_table(comparison: KernelComparison, problem: str) -> Iterator[Table | str]:
    columns = ("device", "ms", "rate", "of bandwidth", "operations", "over default", "found by")
    rows = [_times_row(result) for result in comparison.tuned]
    yield table(columns, rows, columns, f"{comparison.kernel}, {problem}: the best on each device")
    if all(result.bytes_per_s is None and result.flops_per_s is None for result in comparison.tuned):
        yield "Rates are unknown: these results do not say how much work was done."


def _times_row(result: DeviceResult) -> tuple[str, ...]:
    origin = result.entry.provenance
    return (
        result.folder,
        f"{result.entry.time_ms:.4g}",
        _rate_cell(result.bytes_per_s, "B/s"),
        cell(result.bandwidth_share, "{:.0%}"),
        _rate_cell(result.flops_per_s, "FLOP/s"),
        ratio_cell(result.speedup),
        f"{origin.engine}, {origin.trials:,} of {origin.valid_configurations:,}",
    )


def _gpus_against_cpus(pairs: Sequence[AgainstCpu]) -> Iterator[Table | str]:
    """The speed of each GPU relative to the fastest CPU."""
    rows = [
        (pair.gpu.folder, _time_text(pair.gpu), pair.cpu.folder, _time_text(pair.cpu), ratio_cell(pair.ratio))
        for pair in pairs
    ]
    yield ""
    yield table(("GPU", "best", "CPU", "best", "GPU over CPU"), rows, title="GPU against CPU")
    if any(not pair.is_same_problem and pair.ratio for pair in pairs):
        yield "Where sizes differ, rates are compared, not times."
    if any(pair.ratio is None for pair in pairs):
        yield "To compare different sizes takes `work` in the space file, which imported results lack."


def _time_text(result: DeviceResult) -> str:
    problem = problem_text(result.entry.sizes, result.entry.dtype, result.entry.data)
    return f"{result.entry.time_ms:.4g} ms at {problem}"


def _differing_parameters(comparison: KernelComparison) -> Iterator[Table | str]:
    devices = [result.folder for result in comparison.tuned]
    rows = [
        (name, *(str(row.get(device, UNKNOWN)) for device in devices))
        for name, row in comparison.flips.items()
    ]
    yield ""
    yield table(("parameter", *devices), rows, title="Parameters whose best value differs")
    if comparison.agreed:
        yield f"The same everywhere: {Config(comparison.agreed)}"


def _speed_matrix(comparison: KernelComparison) -> Iterator[Table | str]:
    rows = [
        (source, *(cell(share, "{:.1%}") for share in row.values()))
        for source, row in comparison.matrix.items()
    ]
    yield ""
    yield table(("tuned on, run on:", *comparison.matrix), rows, title="Share of the best speed")
    if comparison.missing:
        yield (
            f"{comparison.missing} cells were not measured ({UNKNOWN}): to fill them, run `autotune search "
            "--engine adopt`, which tries the best configurations of other devices."
        )


def _portability(comparison: KernelComparison) -> Iterator[Table | str]:
    least, best = comparison.portable, comparison.most_portable
    rows = [_portable_row("best worst case", least, comparison)]
    notes = [f"Best worst case: {least.config}, at most {least.worst:.3g} times as slow as the best."]
    if best is None:
        notes.append("No configuration was measured on every device, so no portability is known.")
    elif best.config != least.config:
        rows.append(_portable_row("most portable", best, comparison))
        notes.append(f"Most portable: {best.config}")
    columns = ("one for all", "portability", *(result.folder for result in comparison.tuned))
    yield ""
    yield table(columns, rows, title="One configuration for all, times as slow as the best")
    yield from notes


def _portable_row(name: str, portable: Portable, comparison: KernelComparison) -> tuple[str, ...]:
    factors = (portable.slowdowns[result.folder] for result in comparison.tuned)
    return (name, cell(portable.portability, "{:.1%}"), *(cell(factor, "{:.3g}") for factor in factors))


def _rate_cell(rate: float | None, unit: str) -> str:
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
