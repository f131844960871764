"""The result of a sweep as text and as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table

from autotune.cli.search_summary import late_checks, result_json, uncompared
from autotune.cli.tables import UNKNOWN, cell, ratio_cell, table
from autotune.cli.texts import rate_text
from autotune.core.records import Config, Tier, VariantTable
from autotune.core.text import count_text, ratio_text, table_sizes
from autotune.serving.portability import Slowdown, expected_slowdown
from autotune.tuning.sweep import Sweep


def sweep_text(found: Sweep) -> Group:
    """What a sweep prints: the best at every size, and the variants that serve all other sizes."""
    first, tried = found.results[0], sum(len(result.trials) for result in found.results)
    head = (
        f"{first.task.spec.kernel} on {first.task.device.name} ({first.task.address}): "
        f"{count_text(len(found.results), 'problem')}, {count_text(tried, 'trial')} in {found.seconds:.0f} s"
    )
    last = (*uncompared(first), *late_checks(found.results), f"kept in {first.cache_file}")
    return Group(head, _results(found), *map(_variants, found.tables), *last)


def sweep_json(found: Sweep) -> dict[str, Any]:
    """The sweep as JSON values, for scripts."""
    return {
        "results": [result_json(result) for result in found.results],
        "tables": [
            {
                "dtype": one.dtype,
                "data": one.data,
                "sizes": [dict(sizes) for sizes in one.sizes],
                "variants": [dict(config) for config in one.configs],
                "left_out": list(one.left_out),
                "expected_slowdown": _expected(one),
            }
            for one in found.tables
        ],
        "seconds": found.seconds,
    }


def _results(found: Sweep) -> Table:
    """A row for each problem: its best, and what the closest variant loses there."""
    tables = {one.dtype: one for one in found.tables}
    rows = []
    for result, times in zip(found.results, found.rows, strict=True):
        problem = result.task.space.problem
        time_ms = result.final.median_ms
        rows.append(
            (
                table_sizes(problem.sizes),
                problem.dtype,
                cell(time_ms),
                rate_text(result.task.space, result.winner.config, time_ms) or UNKNOWN,
                ratio_text(result.speedup),
                *_variant(tables.get(problem.dtype), times.relative_times),
            )
        )
    return table(("size", "type", "best ms", "rate", "over default", "variant", "its time"), rows)


def _variant(of: VariantTable | None, relative_times: Mapping[Config, float]) -> tuple[str, str]:
    if of is None:
        return UNKNOWN, UNKNOWN
    best = min(of.configs, key=lambda config: relative_times.get(config, float("inf")))
    return str(of.configs.index(best) + 1), ratio_cell(relative_times.get(best))


def _variants(one: VariantTable) -> str:
    expected = _expected(one)
    if expected is None:
        bound = "their slowdown is not known: too few sizes"
    else:
        bound = (
            f"what is served takes at most {expected:.2f} times what a search of that size finds, in nine of "
            "ten cases"
        )
    head = (
        f"{one.dtype}: {count_text(len(one.configs), 'variant')} for all sizes between; {bound} "
        f"({count_text(len(one.left_out), 'size')} left out in turn)"
    )
    return "\n".join([head, *(f"{number:>4}  {config}" for number, config in enumerate(one.configs, 1))])


def _expected(one: VariantTable) -> float | None:
    return expected_slowdown(
        [Slowdown(factor, True, Tier.INTERPOLATED) for factor in one.left_out], Tier.INTERPOLATED
    )
