"""Compare the tuned kernel with its default, a naive version, libraries, and the host's processor.

Times of the host need no copies; those of a GPU are shown with and without copies from and to the host.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import prod
from typing import TYPE_CHECKING

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.sizes import parse_sweep
from autotune.cli.tables import Table, cell, ratio_cell, table
from autotune.core.text import table_sizes, volume_text
from autotune.core.trials import Budget
from autotune.report.figures import Line, over_size, save

if TYPE_CHECKING:
    from autotune.analysis.versus import Contender, Versus

_SHARES = ("of the host's flops", "of the host's bytes")

EXAMPLE = "autotune versus reduce --sweep n=2**12:2**28:x16"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser)
    opt.add_sweep(
        parser, "time each of these sizes, such as n=2**12:2**28:x16, and show where the GPU begins to pay"
    )
    parser.add_argument("--naive", metavar="LANDMARK", help="the naive version (default: the first landmark)")
    parser.add_argument(
        "--cpu",
        metavar="DEVICE",
        default="opencl:0",
        help="the host's processor as a device, or none (default %(default)s)",
    )
    opt.add_run(parser)
    opt.add_cache(parser, "where to look for tuned results")
    opt.add_plot(parser, "also draw the times over size")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.analysis.versus import versus

    target = opt.target(parsed)
    problems = [{**target.sizes, **sizes} for sizes in parse_sweep(parsed.sweep, target.sizes)]
    cpu = None if parsed.cpu == "none" else parsed.cpu
    options = opt.run_options(parsed, budget=Budget())
    with opt.progress(parsed) as progress:
        comparisons = [
            versus(replace(target, sizes=sizes), options, progress, cpu, parsed.naive) for sizes in problems
        ]
    if parsed.json:
        emit([{**asdict(comparison), "pays": comparison.pays} for comparison in comparisons])
    else:
        for comparison in comparisons:
            failed = [f"{item.name}: {item.detail}" for item in comparison.contenders if item.time_ms is None]
            emit(f"{parsed.space} {table_sizes(comparison.sizes)}", versus_table(comparison), *failed)
        emit(_where_it_pays(comparisons))
        if cpu is not None and not any(comparison.host_peaks for comparison in comparisons):
            emit(f"the host's peak is not known: measure it with `autotune devices --measure --device {cpu}`")
    if parsed.plot is not None:
        title = f"{parsed.space}: times with what else does the work"
        size = volume_text(comparison.sizes for comparison in comparisons)
        save(over_size(title, _times_over_size(comparisons), size=size), parsed.plot)


def versus_table(comparison: Versus) -> Table:
    """Make a table with a row per contender: its time, also with copies, and relative to the tuned kernel."""
    call_ms = _call_ms(comparison)
    rows = [
        (
            contender.name,
            cell(contender.time_ms),
            _ratio_cell(contender.time_ms, comparison.tuned_ms),
            cell(_with_copies_ms(contender, comparison.pinned_ms)),
            cell(_with_copies_ms(contender, comparison.pageable_ms)),
            _ratio_cell(_with_copies_ms(contender, comparison.pageable_ms), call_ms),
            *(cell(comparison.share_of_peak(contender, amount), "{:.1%}") for amount in ("flops", "bytes")),
            contender.detail,
        )
        for contender in comparison.contenders
        if contender.time_ms is not None
    ]
    columns = (
        "what",
        "ms",
        "of tuned",
        "with pinned copies",
        "with pageable copies",
        "of tuned, copied",
        *_SHARES,
        "settings",
    )
    return table(columns, rows, optional=_SHARES)


def _with_copies_ms(contender: Contender, copies_ms: float | None) -> float | None:
    """The time of a call: with copies, except on the host."""
    if contender.time_ms is None or not contender.on_device:
        return contender.time_ms
    return _added_ms(contender.time_ms, copies_ms)


def _call_ms(comparison: Versus) -> float | None:
    """The time of a whole call of the tuned kernel, with pageable copies."""
    return None if comparison.tuned_ms is None else _added_ms(comparison.tuned_ms, comparison.pageable_ms)


def _added_ms(time_ms: float, copies_ms: float | None) -> float | None:
    return None if copies_ms is None else time_ms + copies_ms


def _ratio_cell(time_ms: float | None, tuned_ms: float | None) -> str:
    return ratio_cell(None if time_ms is None or not tuned_ms else time_ms / tuned_ms)


def _where_it_pays(comparisons: Sequence[Versus]) -> str:
    """The size from which on a call with copies beats the host."""
    compared = [comparison for comparison in comparisons if comparison.pays is not None]
    if not compared:
        return "whole calls are not compared: times of copies to a GPU, or of the host, are missing"
    paying = (row for place, row in enumerate(compared) if all(later.pays for later in compared[place:]))
    pays_from = next(paying, None)
    if pays_from is None:
        return "with pageable copies the host is still faster at the largest size"
    return f"with pageable copies the device is faster than the host from {table_sizes(pays_from.sizes)} on"


def _times_over_size(comparisons: Sequence[Versus]) -> list[Line]:
    """The times of each contender over size, and those of whole calls of the tuned kernel."""
    points: dict[str, list[tuple[float, float]]] = {}
    for comparison in comparisons:
        times_ms = {contender.name: contender.time_ms for contender in comparison.contenders}
        times_ms["tuned, with copies"] = _call_ms(comparison)
        for name, time_ms in times_ms.items():
            if time_ms is not None:
                points.setdefault(name, []).append((float(prod(comparison.sizes.values())), time_ms))
    return [Line(name, *zip(*of_name, strict=True)) for name, of_name in points.items()]
