"""The matrix "tuned on / run on" as a picture: an SVG that needs no library."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_CELL, _MARGIN, _LETTER = 64, 16, 8  # pixels


def heat_map(matrix: Mapping[str, Mapping[str, float | None]]) -> str:
    """Rows are the devices that a configuration was tuned on, columns those that it runs on.

    A cell has the percentage of the best speed, from white for none to green for all; one that nobody
    measured is grey and has no number.
    """
    devices = list(matrix)
    labels = _MARGIN + _LETTER * max(map(len, devices))
    edge = labels + _CELL * len(devices) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{edge}" height="{edge}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">',
        f"<title>{escape('percent of the best speed: tuned on (rows), run on (columns)')}</title>",
    ]
    for number, device in enumerate(devices):
        middle = labels + _CELL * number + _CELL // 2
        name = escape(device)
        parts.append(f'<text x="{labels - 6}" y="{middle + 4}" text-anchor="end">{name}</text>')
        turned = f"rotate(-90 {middle + 4} {labels - 6})"
        parts.append(
            f'<text x="{middle + 4}" y="{labels - 6}" text-anchor="start" transform="{turned}">{name}</text>'
        )
    for down, row in enumerate(matrix.values()):
        for across, share in enumerate(row.values()):
            parts += _cell(labels + _CELL * across, labels + _CELL * down, share)
    return "\n".join([*parts, "</svg>", ""])


def _cell(x: int, y: int, share: float | None) -> list[str]:
    lightness = 0 if share is None else 100 - 50 * share
    colour = "#ddd" if share is None else f"hsl(140 55% {lightness:.0f}%)"
    drawn = [f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{colour}"/>']
    if share is not None:
        drawn.append(f'<text x="{x + _CELL // 2 - 1}" y="{y + _CELL // 2 + 4}">{100 * share:.0f}</text>')
    return drawn
