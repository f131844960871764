"""What every picture shares: the frame of an SVG, its text, and colours for light and dark pages alike.

An SVG is text that a browser draws; no library is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

LETTER, MARGIN = 6.7, 8  # pixels; a letter of 11 pixels in a font of one width
_STYLE = "text { font: 11px ui-monospace, monospace; fill: #6e7781 }"  # grey enough for either page


def document(width: float, height: float, style: str, body: Sequence[str]) -> str:
    """An SVG of so many pixels; `style` is CSS beside that of text, `body` the elements in drawing order."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    css = f"<style>\n{_STYLE}\n{style}\n</style>"
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', css, *body, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "", turned: bool = False) -> str:
    """Words at a place; `css` names a class of the style, `turned` words read from bottom to top."""
    attributes = f' text-anchor="{anchor}"' if anchor != "start" else ""
    attributes += f' class="{css}"' if css else ""
    attributes += f' transform="rotate(-90 {x:.1f} {y:.0f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.0f}"{attributes}>{escape(words)}</text>'
