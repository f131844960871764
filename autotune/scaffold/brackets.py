"""Find the ends of brackets, and split at the commas outside of them."""

from __future__ import annotations


def closing(text: str, opening: int) -> int:
    """The position of the bracket that closes the one at `opening`; the end of the text without one."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position
    return len(text)


def split_arguments(text: str) -> tuple[str, ...]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(" ".join(part.split()) for part in parts if part.strip())
