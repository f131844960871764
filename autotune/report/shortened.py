"""Texts and numbers as a page holds them: cut to a length, and rounded to the digits that say something."""

from __future__ import annotations

MAX_NAME, MAX_DETAIL = 200, 2_000  # letters of a text


def cut(text: str, most: int = MAX_NAME) -> str:
    """A text, or its beginning and how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def short(value: float | None) -> float | int | None:
    """Six significant digits: more are noise, and make the page larger."""
    if value is None:
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
