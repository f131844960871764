"""Heat map of the speed that each device's best configuration reaches on the others."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.report.svg import LETTER, MARGIN, document, text

_CELL = 64  # pixels
_STYLE = ".share { fill: #1f2328 }"  # dark, because cells are light on any page


def heat_map(matrix: Mapping[str, Mapping[str, float | None]]) -> str:
    """Draw a matrix of shares of the best speed as an SVG document.

    Args:
        matrix: For each device that a configuration was tuned on (a row), its share of the best speed on each
            device (a column). None was not measured and is drawn grey, without a number.
    """
    devices = list(matrix)
    labels = 2 * MARGIN + LETTER * max(map(len, devices))
    edge = labels + _CELL * len(devices) + MARGIN
    body = ["<title>percent of the best speed: tuned on (rows), run on (columns)</title>"]
    for number, device in enumerate(devices):
        middle = labels + _CELL * number + _CELL // 2
        body.append(text(labels - MARGIN, middle + 4, device, "end"))
        body.append(text(middle + 4, labels - MARGIN, device, turned=True))
    for y, row in enumerate(matrix.values()):
        for x, share in enumerate(row.values()):
            body += _cell(labels + _CELL * x, labels + _CELL * y, share)
    return document(edge, edge, _STYLE, body)


def _cell(x: float, y: float, share: float | None) -> list[str]:
    lightness = 0 if share is None else 100 - 50 * share
    colour = "#ddd" if share is None else f"hsl(140 55% {lightness:.0f}%)"
    size = _CELL - 2
    drawn = [f'<rect x="{x:.1f}" y="{y:.1f}" width="{size}" height="{size}" fill="{colour}"/>']
    if share is not None:
        drawn.append(text(x + _CELL // 2 - 1, y + _CELL // 2 + 4, f"{100 * share:.0f}", "middle", "share"))
    return drawn
