"""The matrix "tuned on / run on" as a picture."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.report.svg import LETTER, MARGIN, document, text

_CELL = 64  # pixels
_STYLE = ".share { fill: #1f2328 }"  # dark on every page, for cells are light


def heat_map(matrix: Mapping[str, Mapping[str, float | None]]) -> str:
    """Rows are the devices that a configuration was tuned on, columns those that it runs on.

    A cell has the percentage of the best speed, from white for none to green for all; one that nobody
    measured is grey and has no number.
    """
    devices = list(matrix)
    labels = 2 * MARGIN + LETTER * max(map(len, devices))
    edge = labels + _CELL * len(devices) + MARGIN
    body = ["<title>percent of the best speed: tuned on (rows), run on (columns)</title>"]
    for number, device in enumerate(devices):
        middle = labels + _CELL * number + _CELL // 2
        body.append(text(labels - MARGIN, middle + 4, device, "end"))
        body.append(text(middle + 4, labels - MARGIN, device, turned=True))
    for down, row in enumerate(matrix.values()):
        for across, share in enumerate(row.values()):
            body += _cell(labels + _CELL * across, labels + _CELL * down, share)
    return document(edge, edge, _STYLE, body)


def _cell(x: float, y: float, share: float | None) -> list[str]:
    lightness = 0 if share is None else 100 - 50 * share
    colour = "#ddd" if share is None else f"hsl(140 55% {lightness:.0f}%)"
    size = _CELL - 2
    drawn = [f'<rect x="{x:.1f}" y="{y:.1f}" width="{size}" height="{size}" fill="{colour}"/>']
    if share is not None:
        drawn.append(text(x + _CELL // 2 - 1, y + _CELL // 2 + 4, f"{100 * share:.0f}", "middle", "share"))
    return drawn
