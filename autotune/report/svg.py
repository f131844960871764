"""What all plots share: the frame of an SVG document and its text, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

LETTER, MARGIN = 6.7, 8  # in pixels; the width of a letter of 11 pixels in a monospaced font
_STYLE = "text { font: 11px ui-monospace, monospace; fill: #6e7781 }"  # grey, for light and dark pages


def document(width: float, height: float, style: str, body: Sequence[str]) -> str:
    """Make an SVG document.

    Args:
        width: In pixels.
        height: In pixels.
        style: CSS besides that of text.
        body: The elements in drawing order.
    """
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    css = f"<style>\n{_STYLE}\n{style}\n</style>"
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', css, *body, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "", turned: bool = False) -> str:
    """Make a text element.

    Args:
        x: In pixels from the left.
        y: In pixels from the top.
        words: What it says.
        anchor: Which end of the text is at `x`: start, middle or end.
        css: A class of the style.
        turned: Whether the text reads from bottom to top.
    """
    attributes = f' text-anchor="{anchor}"' if anchor != "start" else ""
    attributes += f' class="{css}"' if css else ""
    attributes += f' transform="rotate(-90 {x:.1f} {y:.0f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.0f}"{attributes}>{escape(words)}</text>'
