"""The figures that the sources of landmarks give, as their notes in a space file quote them."""

from __future__ import annotations

import re
from typing import NamedTuple

# Figures of sources: `4 to 5 us (Fermi)`, or `0.122 ms, 4.39 TB/s for 134 M integers (H200)`.
_UNITS = {
    **{"ms": (1.0, "ms"), "us": (1e-3, "ms"), "GB/s": (1.0, "GB/s"), "TB/s": (1e3, "GB/s")},
    **{"GFLOP/s": (1.0, "GFLOP/s"), "TFLOP/s": (1e3, "GFLOP/s")},
}
_MAX_LETTERS = 2_000  # of a note that are read
_NUMBER = r"\d+(?:\.\d+)?"
_FIGURE = re.compile(rf"({_NUMBER})(?: to ({_NUMBER}))? ({'|'.join(_UNITS)})(?!\w)(?=[^()]*\(([^()]*)\))")


class SourceFigure(NamedTuple):
    """A time or a rate that a source gives for its device."""

    value: float
    unit: str  # ms, GB/s or GFLOP/s
    device: str


def source_figures(note: str) -> list[SourceFigure]:
    """The figures of a landmark's note, such as `29.45 ms (GTX 1060)`; the middle of a range: `4 to 5 us`."""
    figures = []
    for low, high, unit, device in _FIGURE.findall(note[:_MAX_LETTERS]):
        factor, common = _UNITS[unit]
        middle = (float(low) + float(high or low)) / 2
        figures.append(SourceFigure(float(f"{factor * middle:.6g}"), common, " ".join(device.split())))
    return figures
