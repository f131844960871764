"""The result of a sweep as text and as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from autotune.cli.search_summary import result_json, unchecked_lines, uncompared
from autotune.cli.tables import UNKNOWN, Table, cell, ratio_cell, table
from autotune.cli.texts import rate_text
from autotune.core.records import NOISY, Config, Tier, VariantTable
from autotune.core.text import count_text, ratio_text, table_sizes
from autotune.frameworks.config_file import KEY, served
from autotune.plans.sweep import Sweep
from autotune.serving.interpolation import SizeRow, rows_of
from autotune.serving.portability import Slowdown, foretold
from autotune.tuning.result import SearchResult


def sweep_text(sweep: Sweep) -> tuple[str | Table, ...]:
    """The summary of a sweep: the best at every size, and the variants that serve all other sizes."""
    first_result, tried = sweep.results[0], sum(len(result.trials) for result in sweep.results)
    resumed = sum(result.resumed for result in sweep.results)
    known = f" ({resumed:,} known from the journals)" if resumed else ""
    head = (
        f"{first_result.task.spec.kernel} on {first_result.task.device.name} ({first_result.task.address}): "
        f"{count_text(len(sweep.results), 'problem')}, {count_text(tried, 'trial')}{known} "
        f"in {sweep.seconds:.0f} s"
    )
    variants = (_variants_text(variants, _timed_rows(sweep, variants)) for variants in sweep.tables)
    results = _served_table(sweep) if sweep.form else _results_table(sweep)
    missed = unchecked_lines(sweep.results)
    last = (*uncompared(first_result), *_noise_warning(sweep), *missed, f"kept in {first_result.cache_file}")
    return (head, results, *variants, *last)


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    return {
        "results": [result_json(result) for result in sweep.results],
        "tables": [
            {
                "dtype": variants.dtype,
                "data": variants.data,
                "sizes": [dict(sizes) for sizes in variants.sizes],
                "variants": [dict(config) for config in variants.configs],
                "left_out": list(variants.left_out),
                **dict(zip(("expected_slowdown", "slowdown_at_most"), _slowdowns(variants), strict=True)),
            }
            for variants in sweep.tables
        ],
        "installed": [
            {str(config): row.relative_times.get(config) for config in result.task.served_elsewhere}
            for result, row in zip(sweep.results, sweep.rows, strict=True)
            if sweep.form
        ],
        "seconds": sweep.seconds,
    }


def _results_table(sweep: Sweep) -> Table:
    """A row for each problem: its best, and the loss of the closest variant."""
    tables = {variants.dtype: variants for variants in sweep.tables}
    rows = [
        (
            table_sizes(result.task.space.problem.sizes),
            result.task.space.problem.dtype,
            *_best_cells(result),
            ratio_text(result.speedup),
            *_variant_cells(tables.get(result.task.space.problem.dtype), times.relative_times),
        )
        for result, times in zip(sweep.results, sweep.rows, strict=True)
    ]
    return table(("size", "type", "best ms", "rate", "over default", "variant", "its time"), rows)


def _best_cells(result: SearchResult) -> tuple[str, str]:
    time_ms = result.final.median_ms
    rate = rate_text(result.task.space, result.winner.config, time_ms)
    return cell(time_ms), rate or UNKNOWN


def _served_table(sweep: Sweep) -> Table:
    """A row for each key of a framework's table: what it serves, its best, and the installed entry's time."""
    keys: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for result in sweep.results:
        keys.setdefault(_fixed_sizes(result), []).append(result.task.space.problem.sizes[KEY])
    rows = []
    for result, times in zip(sweep.results, sweep.rows, strict=True):
        sizes = result.task.space.problem.sizes
        first, last = served(keys[_fixed_sizes(result)])[sizes[KEY]]
        end = "" if last == first else " and more" if last is None else f" to {last:,}"
        installed, which = next(iter(result.task.served_elsewhere), None), UNKNOWN
        if installed is not None:
            which = "stays" if installed in (result.winner.config, *result.ties) else "is replaced"
        rows.append(
            (
                table_sizes(sizes),
                f"{first:,}{end}",
                *_best_cells(result),
                ratio_cell(times.relative_times.get(installed) if installed else None),
                which,
            )
        )
    return table(("size", f"serves {KEY}", "best ms", "rate", "installed one's time", "installed"), rows)


def _fixed_sizes(result: SearchResult) -> tuple[tuple[str, int], ...]:
    """The sizes of a problem that are no key."""
    return tuple(item for item in result.task.space.problem.sizes.items() if item[0] != KEY)


def _variant_cells(of: VariantTable | None, relative_times: Mapping[Config, float]) -> tuple[str, str]:
    if of is None:
        return UNKNOWN, UNKNOWN
    best = _fastest_variant(of, relative_times)
    return str(of.configs.index(best) + 1), ratio_cell(relative_times.get(best))


def _fastest_variant(variants: VariantTable, relative_times: Mapping[Config, float]) -> Config:
    return min(variants.configs, key=lambda config: relative_times.get(config, float("inf")))


def _timed_rows(sweep: Sweep, variants: VariantTable) -> list[SizeRow]:
    """The times of the variants by size, including sizes half-way, where at least one has a time."""
    pairs = zip(sweep.results, sweep.rows, strict=True)
    swept = [row for result, row in pairs if result.task.space.problem.dtype == variants.dtype]
    timed = (
        row for row in [*swept, *rows_of(variants, ())] if row.relative_times.keys() & {*variants.configs}
    )
    return sorted(timed, key=lambda row: tuple(row.sizes.values()))


def _noise_warning(sweep: Sweep) -> list[str]:
    """A warning if the machine was unsteady in some of the last rounds."""
    noises = [noise for result in sweep.results if (noise := result.final.noise or 0.0) > NOISY]
    if not noises:
        return []
    where = f"in {len(noises)} of {count_text(len(sweep.results), 'last round')}"
    return [
        f"warning the machine was unsteady {where}: up to {max(noises):.0%} noise between two timings of the "
        "same binary; run the sweep again on a quiet machine"
    ]


def _variants_text(variants: VariantTable, rows: Sequence[SizeRow]) -> str:
    expected, most = _slowdowns(variants)
    if expected is None or most is None:
        bound = "too few sizes to estimate their slowdown"
    else:
        bound = (
            f"the served variant takes {expected:.2f} times as long as a search's best, and in nine of ten "
            f"cases at most {most:.2f} times ({count_text(len(variants.left_out), 'size')} left out in turn)"
        )
    count = count_text(len(variants.configs), "variant")
    lines = [f"{variants.dtype}: {count} for all sizes between; {bound}"]
    for number, (config, sizes) in enumerate(_fastest_at(variants, rows).items(), 1):
        where = "; ".join(sizes) or "none of the timed sizes"
        lines += [f"{number:>4}  fastest at {where}", f"      {config}"]
    return "\n".join(lines)


def _fastest_at(variants: VariantTable, rows: Sequence[SizeRow]) -> dict[Config, list[str]]:
    """The sizes at which a variant is the fastest: `n=1,024 to n=8,192` and `n=65,536`."""
    varied = [name for name in rows[0].sizes if len({row.sizes[name] for row in rows}) > 1]
    sizes_at_best: dict[Config, list[str]] = {config: [] for config in variants.configs}
    for best, run in groupby(rows, lambda row: _fastest_variant(variants, row.relative_times)):
        sizes = [table_sizes(row.sizes) for row in run]
        is_range = len(varied) == 1 and len(sizes) > 1
        sizes_at_best[best] += [f"{sizes[0]} to {sizes[-1]}"] if is_range else sizes
    return sizes_at_best


def _slowdowns(variants: VariantTable) -> tuple[float | None, float | None]:
    left_out = [Slowdown(factor, True, Tier.INTERPOLATED) for factor in variants.left_out]
    return foretold(left_out, Tier.INTERPOLATED)
