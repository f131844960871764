"""Read from a kernel how many elements of which size a block covers along each axis."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from autotune.scaffold.brackets import closing
from autotune.scaffold.macros import WORD

_BLOCK_INDEX = {
    axis: rf"(?:blockIdx\.{axis}\b|BLOCK_INDEX\({axis}\)|get_group_id\({number}\))"
    for number, axis in enumerate("xyz")
}
_GLOBAL_INDEX = {axis: rf"get_global_id\({number}\)" for number, axis in enumerate("xyz")}
_DERIVATIONS = 3  # of a variable from the block's index, one from another


def tile_of(axis: str, body: str, block: Sequence[str], known: Collection[str]) -> str:
    """The product that a block's index is multiplied by, such as `BLOCK_Y * WORK_PER_THREAD`; else empty.

    Args:
        axis: x, y or z.
        body: Text of the kernel.
        block: Threads along each axis.
        known: The names that a launch plan may read.
    """
    number = "xyz".index(axis)
    threads = block[number] if number < len(block) else "1"
    found = set()
    for match in re.finditer(_BLOCK_INDEX[axis], body):
        before = re.search(r"(?:[\w.]+\s*\*\s*)*$", body[: match.start()])
        factors = [before[0].rstrip("* \n")] if before and before[0] else []
        after, end = _factors(body, match.end())
        factors += after
        end = _enclosing(body, end)
        factors += _factors(body, end)[0] if end else []
        text = re.sub(rf"blockDim\.{axis}\b|get_local_size\({number}\)", threads, " * ".join(factors))
        text = " ".join(text.replace("/", " // ").split())
        if text.startswith("(") and closing(text, 0) == len(text) - 1:
            text = text[1:-1]
        if factors and set(WORD.findall(text)) <= {*known, *WORD.findall(threads)}:
            found.add(text)
    return found.pop() if len(found) == 1 else ""


def size_along(axis: str, body: str, sizes: Collection[str]) -> str:
    """The size that what derives from the index along an axis is compared with; empty if not exactly one."""
    index = rf"(?:{_BLOCK_INDEX[axis]}|{_GLOBAL_INDEX[axis]})"
    variables = set(re.findall(rf"\b(\w+)\s*=(?!=)[^;=]*{index}", body))
    reached = set(variables)
    for _ in range(_DERIVATIONS):
        bounds = {bound for name in variables for bound in bounds_of(name, body) if bound in sizes}
        if bounds or not variables:
            return bounds.pop() if len(bounds) == 1 else ""
        variables = {
            name
            for earlier in variables
            for name in re.findall(rf"\b(\w+)\s*=(?!=)[^;=]*\b{earlier}\b", body)
        } - reached
        reached |= variables
    return ""


def bounds_of(variable: str, body: str) -> list[str]:
    """What a variable, or its sum with another, is compared with: `i < n`, `i + k < n`, `i >= n`."""
    return re.findall(rf"(?<![\w.]){variable}\b\s*(?:\+\s*\w+\s*)?(?:<|>=)\s*(\w+)\b(?!\s*[-+*/%\[(.])", body)


def bounded_shape(indices: Sequence[str], body: str, sizes: Collection[str]) -> str:
    """The one size that all sums of variables that index an array are below; empty if there is none."""
    if any(set("*/%<&[(") & set(index) for index in indices):
        return ""
    words = {word for index in indices for word in WORD.findall(index)}
    bounds = {bound for word in words for bound in bounds_of(word, body) if bound in sizes}
    return bounds.pop() if len(bounds) == 1 else ""


def _factors(body: str, start: int) -> tuple[list[str], int]:
    """The factors that follow a place of the text, and where they end."""
    found = []
    while match := re.compile(r"\s*\*\s*").match(body, start):
        factor = re.compile(r"[\w.]+(?:\(\d\))?").match(body, match.end())
        if body[match.end() : match.end() + 1] == "(":
            end = closing(body, match.end()) + 1
        elif factor:
            end = factor.end()
        else:
            break
        found.append(body[match.end() : end])
        start = end
    return found, start


def _enclosing(body: str, start: int) -> int:
    """Just after the bracket that closes around a place of the same statement; 0 if there is none."""
    depth = 0
    for position in range(start, len(body)):
        if body[position] in ";{}":
            return 0
        depth += (body[position] == "(") - (body[position] == ")")
        if depth < 0:
            return position + 1
    return 0
