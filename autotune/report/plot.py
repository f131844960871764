"""Horizontal bar charts with a linear or a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.report.svg import LETTER, MARGIN, document, text

MAX_LINEAR_SPREAD = 20.0  # largest over smallest value; beyond it short bars would be invisible

_ROW, _PLOT = 20, 320  # pixels
_STYLE = """\
.title { font-weight: bold }
.bar { fill: #4c84c4 }
.strong { fill: #d9702e }
line { stroke: #6e7781; stroke-width: 0.4 }"""


@dataclass(frozen=True)
class Bar:
    """One bar, with the label before it, the text after it, and whether it is highlighted."""

    label: str
    value: float
    text: str
    strong: bool = False


def bar_chart(title: str, unit: str, bars: Sequence[Bar]) -> str:
    """Draw bars from top to bottom as an SVG document.

    The axis is logarithmic, and labelled so, if the largest value is more than 20 times the smallest.

    Args:
        title: The title above the chart.
        unit: The unit of the values, for the axis.
        bars: The bars; all values are positive.
    """
    low, high = min(bar.value for bar in bars), max(bar.value for bar in bars)
    logarithmic = high > MAX_LINEAR_SPREAD * low
    start = 10.0 ** math.floor(math.log10(low * 0.9)) if logarithmic else 0.0
    left = MARGIN + LETTER * (1 + max(len(bar.label) for bar in bars))
    bottom = 1.5 * _ROW + _ROW * len(bars)

    def x(value: float) -> float:
        share = math.log(value / start) / math.log(high / start) if logarithmic else value / high
        return left + _PLOT * share

    body = [text(MARGIN, _ROW - 5, title, css="title")]
    for tick in _decades(start, high) if logarithmic else _round_steps(high):
        body.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{1.3 * _ROW:.0f}" y2="{bottom:.0f}"/>')
        body.append(text(x(tick), bottom + 14, f"{tick:g}", "middle"))
    scale = f"{unit}, logarithmic" if logarithmic else unit
    body.append(text(left, bottom + 30, scale))
    for row, bar in enumerate(bars):
        top = 1.5 * _ROW + _ROW * row
        css = "strong" if bar.strong else "bar"
        body.append(text(left - LETTER, top + 13, bar.label, "end"))
        place = f'x="{left:.1f}" y="{top + 3:.0f}" width="{x(bar.value) - left:.1f}" height="14"'
        body.append(f'<rect class="{css}" {place}/>')
        body.append(text(x(bar.value) + 5, top + 13, bar.text))
    widest = max(x(bar.value) + LETTER * (1 + len(bar.text)) for bar in bars)
    return document(max(widest, LETTER * (2 + len(title))) + MARGIN, bottom + 38, _STYLE, body)


def _decades(start: float, high: float) -> list[float]:
    first, last = round(math.log10(start)), math.floor(math.log10(high))
    return [10.0**exponent for exponent in range(first, last + 1)]


def _round_steps(high: float) -> list[float]:
    """Four to ten multiples of 1, 2 or 5 times a power of ten, up to `high`."""
    power = 10.0 ** math.floor(math.log10(high))
    step = next(step for step in (power / 5, power / 2, power, 2 * power) if high / step <= 8)
    return [step * count for count in range(int(high / step) + 1)]
