"""The kinds of plots of `autotune report --figure`: from gathered searches to a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.analysis.compare import KernelComparison
from autotune.core import json_values as values
from autotune.core.records import Sizes
from autotune.core.text import hint, nearest, ratio_text, size_text
from autotune.errors import InputError
from autotune.hardware.names import slug
from autotune.interop.files import read_text
from autotune.report import figures
from autotune.report.figures import Bar, Side
from autotune.report.gather import gather
from autotune.report.search import Search
from autotune.tuning.single_runs import TUNED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """The input of a plot; sources, cache and space as `gather` takes them."""

    sources: Sequence[str]
    cache: Path | None
    space: Path | None
    title: str | None  # None for one that says what is shown
    x: str | None  # parameter for the columns of a heat map; None for the first that varies
    y: str | None  # parameter for its rows; None for the next
    device: str | None  # only results of this device; None: of all devices
    sizes: Sizes  # only results at these


def matrix_figure(comparison: KernelComparison) -> Figure:
    """Draw how fast each device's best runs on the others."""
    devices = list(comparison.matrix)
    cells = [
        [None if share is None else 100 * share for share in row.values()]
        for row in comparison.matrix.values()
    ]
    title = f"{comparison.kernel}: % of the best speed"
    return figures.matrix(title, Side("tuned on", devices), Side("run on", devices), cells, "{:.0f}")


def _search(plot: Plot) -> Search:
    """The search of the device and sizes that were asked for; raises InputError for none and for several."""
    searches = gather(plot.sources, plot.cache, plot.space).searches
    device = plot.device
    chosen = [search for search in searches if device is None or slug(device) in _slugs(search)]
    if device is not None and not chosen:
        known = {search.device_name for search in searches}
        raise InputError(f"--device {device}: no results for this device{hint(device, known)}")
    others = "; ".join(dict.fromkeys(size_text(search.sizes) for search in chosen))
    chosen = [search for search in chosen if plot.sizes.items() <= search.sizes.items()]
    if not chosen:
        raise InputError(f"--size {size_text(plot.sizes)}: no results for it; expected one of {others}")
    if len(chosen) > 1:
        several = len({search.kernel for search in chosen}) > 1
        named = ((search.kernel if several else "", search.device_name, search.problem) for search in chosen)
        listed = "; ".join(", ".join(filter(None, texts)) for texts in named)
        mend = "name one kernel" if several else "name one with --device and --size"
        raise InputError(f"this plot shows one search, found {len(chosen)}: {listed}; {mend}, or one file")
    if chosen[0].best is None:
        raise InputError(f"{plot.sources[0]}: no trial has a time, so there is nothing to plot")
    return chosen[0]


def _slugs(search: Search) -> tuple[str, ...]:
    """The accepted names of a device: its name, and its folder in the cache."""
    return slug(search.device_name), search.device.slug if search.device else ""


def _title(plot: Plot, search: Search) -> str:
    return plot.title or ", ".join(filter(None, (search.kernel, search.problem, search.device_name)))


def _progress(plot: Plot) -> Figure:
    search = _search(plot)
    if search.is_cached:
        raise InputError(f"{search.kernel}: the cache does not keep the order of trials; name a journal")
    return figures.progress(_title(plot, search), [trial.time_ms for trial in search.tried])


def _ladder(plot: Plot) -> Figure:
    printed = _printed_ladder(plot)
    if printed is not None:
        return _ladder_chart(plot.title or Path(plot.sources[0]).stem, printed)
    search = _search(plot)
    ends = search.intervals_ms
    steps = [
        (step.landmark.name, step.time_ms, ends[step.trial])
        for step in search.steps
        if step.time_ms is not None
    ]
    if not steps:
        raise InputError(
            f"{plot.sources[0]}: no landmark of the space was timed; `autotune run --landmarks` times them"
        )
    return _ladder_chart(_title(plot, search), [*steps, (TUNED, search.best_ms or 0.0, search.interval_ms)])


def _ladder_chart(title: str, steps: Sequence[tuple[str, float, tuple[float, float] | None]]) -> Figure:
    """Draw the time of each step with its interval, and how much faster it is than the first."""
    first_ms = steps[0][1]
    bars = [
        Bar(
            name,
            time_ms,
            f"{time_ms:.4g} ms{f' ({ends[0]:.4g} to {ends[1]:.4g})' if ends else ''}, "
            f"{ratio_text(first_ms / time_ms)}",
            strong=name == TUNED,
            interval=ends,
        )
        for name, time_ms, ends in steps
        if time_ms > 0
    ]
    return figures.bar_chart(title, bars)


def _printed_ladder(plot: Plot) -> list[tuple[str, float, None]] | None:
    """The steps of a file that `autotune run --landmarks --json` printed; None if it is something else."""
    path = Path(plot.sources[0])
    if len(plot.sources) != 1 or path.suffix != ".json" or not path.is_file():
        return None
    try:
        rows = values.load(read_text(path))
        if not isinstance(rows, list):
            return None
        steps = [values.mapping(row, f"{path}[{number}]") for number, row in enumerate(rows)]
        timed = [
            (
                values.text(step.get("step"), f"{path}: step"),
                values.amount(step["time_ms"], f"{path}: time_ms"),
                None,
            )
            for step in steps
            if step.get("time_ms") is not None
        ]
    except values.NoJson as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    except values.Damaged as error:
        raise InputError(str(error)) from None
    if not timed:
        raise InputError(f"{path}: no step has a time, so there is nothing to plot")
    return timed


def _roofline(plot: Plot) -> Figure:
    search = _search(plot)
    moved, done = search.work.get("bytes"), search.work.get("flops")
    if moved is None or done is None:
        raise InputError(f"{search.kernel}: a roofline needs the bytes and flops of `work` in the space file")
    points = {
        place: (flops / moved_bytes, flops / time_ms * 1e3)
        for place, (moved_bytes, flops, time_ms) in enumerate(zip(moved, done, search.times_ms, strict=True))
        if moved_bytes and flops and time_ms
    }
    if not points:
        raise InputError(f"{plot.sources[0]}: no trial has a time and work, so there is nothing to plot")
    bandwidth = search.bandwidth.per_s if search.bandwidth else None
    peaks = {rate.name: rate.gflops * 1e9 for rate in search.ceilings}
    best = None if search.best is None else points.get(search.best)
    return figures.roofline(_title(plot, search), list(points.values()), best, bandwidth, peaks)


def _heat_map(plot: Plot) -> Figure:
    search = _search(plot)
    varying = [
        item
        for item in search.parameters
        if len({trial.config.get(item.name) for trial in search.trials}) > 1
    ]
    names = [item.name for item in varying]
    left = [name for name in names if name not in (plot.x, plot.y)]
    if plot.x and plot.x == plot.y:
        raise InputError(f"--x and --y are both {plot.x}; name two parameters, or leave one out")
    chosen = [name or left.pop(0) for name in (plot.x, plot.y) if name or left]
    unknown = next((name for name in chosen if name not in names), None)
    if len(chosen) < 2 or unknown:
        mend = f"; {unknown} is none of them{nearest(unknown, names)}" if unknown else ""
        raise InputError(
            f"a heat map needs two parameters that vary, --x and --y of {', '.join(names) or 'none'}{mend}"
        )
    across, down = (next(item for item in varying if item.name == name) for name in chosen)
    best: dict[tuple[object, object], float] = {}
    for trial in search.tried:  # all by one clock
        if (time_ms := trial.time_ms) is not None:
            key = (trial.config.get(down.name), trial.config.get(across.name))
            best[key] = min(time_ms, best.get(key, time_ms))
    cells = [[best.get((row, column)) for column in across.values] for row in down.values]
    return figures.matrix(
        f"{_title(plot, search)}: best ms{'' if search.is_cached else ' in the search'}",
        Side(down.name, [str(value) for value in down.values]),
        Side(across.name, [str(value) for value in across.values]),
        cells,
        low_is_good=True,
    )


KINDS: Mapping[str, Callable[[Plot], Figure]] = {  # raise InputError if the sources lack what they show
    "progress": _progress,
    "ladder": _ladder,
    "roofline": _roofline,
    "heat-map": _heat_map,
}
