"""Draw figures for papers and pages with matplotlib: bars, points, lines and matrices, as SVG, PNG or PDF.

Colours are readable on light and on dark pages: text is grey, and the background is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from autotune.core.text import per_second
from autotune.processes.files import write_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")
MAX_LINEAR_SPREAD = 20.0  # beyond it short bars could not be seen
_TEXT, _BAR, _STRONG, _FAILED = "#6e7781", "#4c84c4", "#d9702e", "#b3470b"
_MAP = "cividis_r"  # even in lightness, and safe for colour-blind readers
_HALF_WIDTH = 34  # letters of a legend in the first of two columns
_METADATA: Mapping[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


@dataclass(frozen=True)
class Bar:
    """One bar: its length and its interval, the texts before and behind it, and whether it is highlighted."""

    label: str
    value: float
    text: str
    strong: bool = False
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """Points that a line joins."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]


@dataclass(frozen=True)
class Side:
    """One side of a matrix: what its rows or columns are, and a name for each."""

    label: str
    names: Sequence[str]


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix; the same figure gives the same bytes.

    Raises:
        WriteError: The file cannot be written.
    """
    import matplotlib

    buffer = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "autotune", "svg.fonttype": "none"}):
        figure.savefig(
            buffer,
            format=path.suffix[1:],
            transparent=True,
            bbox_inches="tight",
            dpi=160,
            metadata=_METADATA[path.suffix],
        )
    write_output(path, buffer.getvalue())


def bar_chart(title: str, bars: Sequence[Bar]) -> Figure:
    """Draw horizontal bars from top to bottom: at least one, with positive values in ms.

    The axis is logarithmic if the largest value is more than 20 times the smallest.
    """
    figure, axes = _axes(title, 7.2, 0.8 + 0.27 * len(bars))
    values = [bar.value for bar in bars]
    is_log = max(values) > MAX_LINEAR_SPREAD * min(values)
    places = range(len(bars))
    ends = [bar.interval or (bar.value, bar.value) for bar in bars]
    errors = [[bar.value - low for bar, (low, _) in zip(bars, ends, strict=True)]]
    errors.append([high - bar.value for bar, (_, high) in zip(bars, ends, strict=True)])
    drawn = axes.barh(
        places,
        values,
        color=[_STRONG if bar.strong else _BAR for bar in bars],
        height=0.7,
        xerr=errors if any(bar.interval for bar in bars) else None,
        ecolor=_TEXT,
        capsize=3,
    )
    axes.bar_label(drawn, [_plain(bar.text) for bar in bars], padding=4, color=_TEXT, fontsize=8)
    axes.set_yticks(places, [_plain(bar.label) for bar in bars])
    axes.invert_yaxis()
    if is_log:
        _log(axes, "x")
        axes.set_xlim(left=10.0 ** math.floor(math.log10(min(values) * 0.9)))
    axes.set_xlabel("ms, logarithmic" if is_log else "ms")
    axes.margins(x=0.02, y=0.02)
    return figure


def matrix(
    title: str,
    rows: Side,
    columns: Side,
    cells: Sequence[Sequence[float | None]],
    text: str = "{:.3g}",
    *,
    low_is_good: bool = False,
) -> Figure:
    """Draw a matrix of coloured cells with their numbers, as `text` writes them; None is left empty.

    With `low_is_good`, small values have the strong colour.
    """
    import matplotlib
    from matplotlib.colors import Normalize

    figure, axes = _axes(title, 1.8 + 0.62 * len(columns.names), 1.2 + 0.38 * len(rows.names))
    known = [value for row in cells for value in row if value is not None]
    scale = Normalize(min(known, default=0.0), max(known, default=1.0))
    colours = matplotlib.colormaps[_MAP.removesuffix("_r") if low_is_good else _MAP]
    values = [[math.nan if value is None else value for value in row] for row in cells]
    axes.imshow(values, cmap=colours, norm=scale, aspect="auto")
    for down, row in enumerate(cells):
        for across, value in enumerate(row):
            if value is not None:
                dark = sum(colours(scale(value))[:3]) < 1.5
                said = text.format(value)
                axes.text(
                    across, down, said, ha="center", va="center", fontsize=8, color="#fff" if dark else "#111"
                )
    axes.set_xticks(range(len(columns.names)), [*map(_plain, columns.names)], rotation=45, ha="right")
    axes.set_yticks(range(len(rows.names)), [*map(_plain, rows.names)])
    axes.set_xlabel(_plain(columns.label))
    axes.set_ylabel(_plain(rows.label))
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def progress(title: str, times_ms: Sequence[float | None]) -> Figure:
    """Draw every trial in order, the best so far, and failures, which have no time, as crosses below."""
    figure, axes = _axes(title, 7.2, 3.6)
    timed = [(place, time_ms) for place, time_ms in enumerate(times_ms, 1) if time_ms is not None]
    failed = [place for place, time_ms in enumerate(times_ms, 1) if time_ms is None]
    best: list[float] = []
    for _, time_ms in timed:
        best.append(min(time_ms, best[-1]) if best else time_ms)
    many = len(times_ms) > 1000
    places, values = zip(*timed, strict=True)
    axes.scatter(places, values, s=3 if many else 10, color=_BAR, linewidths=0, rasterized=many)
    axes.step(places, best, where="post", color=_STRONG, label="best so far")
    if failed:
        bottom = min(best) * 0.8
        axes.scatter(failed, [bottom] * len(failed), s=12, marker="x", color=_FAILED, label="failed")
    _log(axes, "y")
    axes.set_xlabel("evaluation")
    axes.locator_params(axis="x", integer=True)
    axes.set_ylabel("ms in the search, logarithmic")
    _grid(axes, "y")
    _legend(axes)
    return figure


def roofline(
    title: str,
    points: Sequence[tuple[float, float]],
    best: tuple[float, float] | None,
    bytes_per_s: float | None,
    peaks: Mapping[str, float],
) -> Figure:
    """Draw points under the ceilings of the device: operations per byte, and FLOP/s, of each and the best.

    These are the memory's bandwidth, if it is known, and peak arithmetic rates in FLOP/s by name.
    """
    figure, axes = _axes(title, 5.4, 3.8)
    intensity, flops_per_s = zip(*points, strict=True)
    ends = [min(intensity) / 8, max(intensity) * 8]
    axes.scatter(
        intensity,
        flops_per_s,
        s=10,
        color=_BAR,
        linewidths=0,
        rasterized=len(intensity) > 1000,
        label="trials",
    )
    if best is not None:
        axes.scatter(*best, s=40, facecolors="none", edgecolors=_STRONG, label="best")
    highest = max(peaks.values(), default=None)
    if bytes_per_s is not None:
        if highest is not None:
            ridge = highest / bytes_per_s
            ends = [min(ends[0], ridge / 8), max(ends[1], 3 * ridge)]
        roof = [ends[0], ends[1] if highest is None else min(ends[1], highest / bytes_per_s)]
        memory = f"memory, {per_second(bytes_per_s, 'B/s')}"
        axes.plot(roof, [bytes_per_s * end for end in roof], color=_TEXT, label=memory)
    for style, (name, peak) in zip(("-", "--"), peaks.items(), strict=False):
        start = ends[0] if bytes_per_s is None else min(ends[1], peak / bytes_per_s)
        label = f"{name}, {per_second(peak, 'FLOP/s')}"
        axes.plot([start, ends[1]], [peak, peak], style, color=_TEXT, label=label)
    _log(axes, "x")
    _log(axes, "y", "FLOP/s")
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("arithmetic rate")
    _grid(axes, "both")
    _legend(axes)
    return figure


def over_size(title: str, times: Sequence[Line], *, size: str) -> Figure:
    """Draw times in ms over size, which `size` names, on logarithmic axes."""
    figure, axes = _axes(title, 5.4, 3.6)
    for line in times:
        axes.plot(line.xs, line.ys, marker="o", markersize=4, label=_plain(line.label))
    _log(axes, "x")
    _log(axes, "y")
    axes.set_xlabel(size)
    axes.set_ylabel("ms")
    _grid(axes, "both")
    _legend(axes)
    return figure


def _axes(title: str, width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure in the package's style and its axes; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.tick_params(colors=_TEXT, labelsize=8, length=0)
    axes.xaxis.label.set(color=_TEXT, fontsize=8)
    axes.yaxis.label.set(color=_TEXT, fontsize=8)
    axes.set_axisbelow(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(_TEXT)
    axes.set_title(_plain(title), color=_TEXT, fontsize=10, fontweight="bold", loc="left")
    return figure, axes


def _grid(axes: Axes, axis: Literal["x", "y", "both"]) -> None:
    axes.grid(axis=axis, color=_TEXT, alpha=0.3, linewidth=0.5)


def _log(axes: Axes, side: Literal["x", "y"], unit: str = "") -> None:
    """Make an axis logarithmic once its data is drawn: plain numbers or rates, fewer where it is long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{side}scale": "log"})
    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: per_second(value, unit) if unit else f"{value:,g}")
    )
    axis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes) -> None:
    """Explain what is drawn, below the axes, where no line crosses a word."""
    labels = axes.get_legend_handles_labels()[1]
    axes.legend(
        frameon=False,
        labelcolor=_TEXT,
        fontsize=8,
        loc="upper left",
        bbox_to_anchor=(0.0, -0.14),
        ncols=2 if max(map(len, labels), default=0) <= _HALF_WIDTH else 1,
    )


def _plain(text: str) -> str:
    """A text that is drawn as it stands; matplotlib takes dollars for mathematics."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return (shown if len(shown) <= 80 else f"{shown[:80]}…").replace("$", r"\$")
