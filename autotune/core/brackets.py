"""Find the ends of brackets in C, and split at the commas outside of them."""

from __future__ import annotations

import re

PAIRS = "()[]{}"


def closing(text: str, opening: int, pairs: str = PAIRS) -> int:
    """The position of the bracket that closes the one at `opening`; the end of the text without one.

    Only brackets of `pairs` count.
    """
    depth = 0
    for bracket in re.compile(f"[{re.escape(pairs)}]").finditer(text, opening):
        depth += 1 if bracket[0] in pairs[::2] else -1
        if depth == 0:
            return bracket.start()
    return len(text)


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
