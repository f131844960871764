"""Find the ends of brackets in C, and split at the commas outside of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

PAIRS = "()[]{}"


def closing(text: str, opening: int, pairs: str = PAIRS) -> int:
    """The position of the bracket that closes the one at `opening`; the end of the text without one.

    Only brackets of `pairs` count, and any that closes ends the last one that is open.
    """
    return _closings(text, pairs).get(opening, len(text))


@lru_cache(maxsize=32)
def _closings(text: str, pairs: str) -> Mapping[int, int]:
    """The position of the closing bracket of each that is closed, found once for all brackets of a text."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for bracket in re.compile(f"[{re.escape(pairs)}]").finditer(text):
        if bracket[0] in pairs[::2]:
            opened.append(bracket.start())
        elif opened:
            found[opened.pop()] = bracket.start()
    return found


def split_arguments(text: str, pairs: str = PAIRS) -> tuple[str, ...]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in pairs[::2]) - (letter in pairs[1::2])
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(" ".join(part.split()) for part in parts if part.strip())
