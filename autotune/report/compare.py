"""What `autotune compare` prints: the same tables for a terminal and in Markdown, and all of it as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from autotune.compare import MARGIN, Comparison, Portable, Tuned
from autotune.report.tables import console, sizes_text, table

_UNKNOWN = "-"


class _Section(NamedTuple):
    """A title, a table that may have no rows, and sentences below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def print_comparison(comparison: Comparison) -> None:
    """For a terminal."""
    out = console()
    for number, section in enumerate(_sections(comparison)):
        if number:
            out.print()
        out.print(section.title, style="bold")
        if section.rows:
            out.print(table(section.columns, section.rows))
        for note in section.notes:
            out.print(note)


def comparison_markdown(comparison: Comparison) -> str:
    """For a page."""
    lines: list[str] = []
    for section in _sections(comparison):
        lines += [f"## {section.title}", ""]
        if section.rows:
            cells = [section.columns, ["---"] * len(section.columns), *section.rows]
            lines += [*(f"| {' | '.join(row)} |" for row in cells), ""]
        lines += [line for note in section.notes for line in (note, "")]
    return "\n".join(lines).rstrip()


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """For scripts; what is not known is null."""
    first = comparison.tuned[0].entry
    return {
        "kernel": comparison.kernel,
        "sizes": dict(first.sizes),
        "dtype": first.dtype,
        "devices": [_device_json(one, comparison.cpu_time_ms) for one in comparison.tuned],
        "flips": {name: dict(row) for name, row in comparison.flips.items()},
        "agreed": dict(comparison.agreed),
        "matrix": {source: dict(row) for source, row in comparison.matrix.items()},
        "portable": _portable_json(comparison.portable),
        "most_portable": comparison.most_portable and _portable_json(comparison.most_portable),
        "portfolio": [
            {"config": dict(config), "devices": list(devices)} for config, devices in comparison.portfolio
        ],
    }


def _sections(comparison: Comparison) -> Iterator[_Section]:
    first = comparison.tuned[0].entry
    problem = ", ".join(filter(None, (comparison.kernel, sizes_text(first.sizes), first.dtype)))
    yield _times(f"{problem}: the best on each device", comparison)
    if len(comparison.tuned) == 1:
        yield _Section(
            "Nothing to compare with",
            (),
            (),
            ["Only this device has results: tune on another one, or unite caches with `autotune merge`."],
        )
        return
    yield _flips(comparison)
    yield _matrix(comparison)
    yield _portability(comparison)
    yield _Section(
        f"Fewest configurations within {MARGIN:.0%} of the best everywhere",
        ("configuration", "for"),
        [(str(config), ", ".join(devices)) for config, devices in comparison.portfolio],
    )


def _times(title: str, comparison: Comparison) -> _Section:
    columns = ("device", "ms", "GB/s", "of bandwidth", "GFLOP/s", "over default", "over CPU", "found by")
    rows = [_times_row(one, comparison.cpu_time_ms) for one in comparison.tuned]
    known = [place for place in range(len(columns)) if any(row[place] != _UNKNOWN for row in rows)]
    notes = []
    if all(one.bytes_per_s is None and one.flops_per_s is None for one in comparison.tuned):
        notes = ["Rates are not known: these results do not say how much work was done."]
    return _Section(
        title, [columns[place] for place in known], [[row[place] for place in known] for row in rows], notes
    )


def _times_row(one: Tuned, cpu_time_ms: float | None) -> tuple[str, ...]:
    origin = one.entry.provenance
    return (
        one.folder,
        f"{one.entry.time_ms:.4g}",
        _rate(one.bytes_per_s),
        _number(one.bandwidth_share, "{:.0%}"),
        _rate(one.flops_per_s),
        _number(one.speedup, "{:.3g} x"),
        _number(_over_cpu(one, cpu_time_ms), "{:.3g} x"),
        f"{origin.engine}, {origin.trials:,} of {origin.valid_configurations:,}",
    )


def _flips(comparison: Comparison) -> _Section:
    devices = [one.folder for one in comparison.tuned]
    rows = [
        (name, *(str(row.get(device, _UNKNOWN)) for device in devices))
        for name, row in comparison.flips.items()
    ]
    agreed = ", ".join(f"{name}={value}" for name, value in comparison.agreed.items())
    notes = [f"The same everywhere: {agreed}."] if agreed else []
    return _Section("Parameters that flip", ("parameter", *devices), rows, notes)


def _matrix(comparison: Comparison) -> _Section:
    rows = [
        (source, *(_number(share, "{:.1%}") for share in row.values()))
        for source, row in comparison.matrix.items()
    ]
    notes = []
    if comparison.missing:
        notes = [
            f"{comparison.missing} cells are not measured ({_UNKNOWN}): `autotune search` and `autotune "
            "adopt` try the bests of other devices and fill them."
        ]
    columns = ("tuned on, run on:", *comparison.matrix)
    return _Section("Share of the best speed", columns, rows, notes)


def _portability(comparison: Comparison) -> _Section:
    least, best = comparison.portable, comparison.most_portable
    rows = [_portable_row("least worst", least, comparison)]
    notes = [f"Least worst: {least.config}, at most {least.worst:.3g} times as slow."]
    if best is None:
        notes.append("No configuration was measured on every device, so none has a portability.")
    elif best.config != least.config:
        rows.append(_portable_row("most portable", best, comparison))
        notes.append(f"Most portable: {best.config}")
    columns = ("one for all", "portability", *(one.folder for one in comparison.tuned))
    return _Section("One configuration for all, times as slow as the best", columns, rows, notes)


def _portable_row(name: str, portable: Portable, comparison: Comparison) -> tuple[str, ...]:
    factors = (portable.slowdowns[one.folder] for one in comparison.tuned)
    return (name, _number(portable.portability, "{:.1%}"), *(_number(factor, "{:.3g}") for factor in factors))


def _number(value: float | None, text: str) -> str:
    return _UNKNOWN if value is None else text.format(value)


def _rate(per_s: float | None) -> str:
    """In units of 1e9, to three digits or more."""
    return _number(per_s and per_s * 1e-9, "{:.3g}" if (per_s or 0.0) < 1e11 else "{:,.0f}")


def _over_cpu(one: Tuned, cpu_time_ms: float | None) -> float | None:
    if cpu_time_ms is None or one.device.kind == "cpu" or one.entry.time_ms <= 0:
        return None
    return cpu_time_ms / one.entry.time_ms


def _device_json(one: Tuned, cpu_time_ms: float | None) -> dict[str, Any]:
    return {
        "device": one.folder,
        "name": one.device.name,
        "config": dict(one.entry.config),
        "time_ms": one.entry.time_ms,
        "bytes_per_s": one.bytes_per_s,
        "bandwidth_share": one.bandwidth_share,
        "flops_per_s": one.flops_per_s,
        "speedup": one.speedup,
        "speedup_over_cpu": _over_cpu(one, cpu_time_ms),
        "engine": one.entry.provenance.engine,
        "trials": one.entry.provenance.trials,
    }


def _portable_json(portable: Portable) -> dict[str, Any]:
    slowdowns: Mapping[str, float | None] = portable.slowdowns
    return {
        "config": dict(portable.config),
        "slowdowns": dict(slowdowns),
        "worst": portable.worst,
        "portability": portable.portability,
    }
