"""Read from a kernel how many elements of which size a block covers along each axis."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from autotune.core.brackets import closing
from autotune.core.index_words import BLOCK_EXTENT, BLOCK_INDEX, GLOBAL_INDEX, THREAD_INDEX
from autotune.scaffold.casts import without_casts
from autotune.scaffold.macros import WORD

INDEXED = {  # by any index along an axis
    axis: re.compile("|".join((BLOCK_INDEX[axis], THREAD_INDEX[axis], GLOBAL_INDEX[axis]))) for axis in "xyz"
}
_INDEX = "|".join((*BLOCK_INDEX.values(), *THREAD_INDEX.values()))
_ALIAS = re.compile(rf"(?<![\w.])(\w+)\s*=\s*(?:\(\w+\)\s*)?\(?\s*({_INDEX})\s*\)?\s*[;,]")
_SHARED_ARRAY = re.compile(
    r"\b(?:__local|local|__shared__|SHARED)\s+(?:\w+\s+)+?(\w+)\s*((?:\[[^\[\]]*\]\s*)+);"
)
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_MAX_PRODUCT = 400  # characters before an index that may be factors of it
_DERIVATIONS = 3  # of a variable from the block's index, one from another


def without_aliases(body: str) -> str:
    """A kernel's body without casts, and with indices of threads and blocks for variables that hold them."""
    body = without_casts(body)
    for name, index in _ALIAS.findall(body):
        changed = rf"(?<![\w.]){name}\s*(?:[-+*/%]?=(?!=)|\+\+|--)|(?:\+\+|--){name}\b"
        if len(re.findall(changed, body)) == 1:
            body = re.sub(rf"(?<![\w.]){name}\b(?!\s*=(?!=))", index, body)
    return body


def is_blocked(axis: str, body: str) -> bool:
    """Whether a kernel reads the block's index along an axis."""
    return re.search(f"{BLOCK_INDEX[axis]}|{GLOBAL_INDEX[axis]}", body) is not None


def threads_along(axis: str, body: str) -> str:
    """The number of threads that a kernel reckons with along an axis: a macro or a number; empty if none.

    It is what a block's index is multiplied by before the thread's is added, or the stride of a loop that
    begins at the thread's index, else the extent of a shared array with an element for each thread; 1
    where only the index along other axes is read. A kernel that asks for the extent of its block takes any,
    unless its blocks are as long as a tile.
    """
    plain = without_aliases(body)
    if (tile := _tile_of_threads(axis, plain)) or re.search(BLOCK_EXTENT[axis], plain):
        return tile
    if not re.search(f"{THREAD_INDEX[axis]}|{GLOBAL_INDEX[axis]}", plain):
        return "1" if re.search("|".join(THREAD_INDEX.values()), plain) else ""
    block, thread = f"(?:{'|'.join(BLOCK_INDEX.values())})", THREAD_INDEX[axis]
    found = {
        *re.findall(rf"{block}\s*\*\s*(\w+)\s*\+\s*{thread}(?!\s*\*)", plain),
        *re.findall(rf"(?<![*\w]){thread}\s*\+\s*{block}\s*\*\s*(\w+)\b(?!\s*\*)", plain),
        *re.findall(rf"for\s*\([^;]*?\b(?:\w+)\s*=\s*{thread}\s*;[^;]*;[^;)]*\+=\s*(\w+)\s*\)", plain),
    } or _room_for_threads(thread, plain)
    return found.pop() if len(found) == 1 else ""


def _tile_of_threads(axis: str, plain: str) -> str:
    """The macro that the block's index is multiplied by where each thread stores at its index in the grid.

    It is `TILE` for `i = get_global_id(0); out[i] = tile[k]` beside `get_group_id(0) * TILE - RADIUS`: both
    are right only with as many threads as the tile has elements.
    """
    block, thread = BLOCK_INDEX[axis], THREAD_INDEX[axis]
    offset = rf"{block}\s*\*\s*{BLOCK_EXTENT[axis]}"
    linear = rf"(?:{GLOBAL_INDEX[axis]}|{offset}\s*\+\s*{thread}|{thread}\s*\+\s*{offset})"
    names = re.findall(rf"\b(\w+)\s*=\s*{linear}\s*[;,]", plain)
    if not any(re.search(rf"\[\s*{name}\s*\]\s*=(?!=)", plain) for name in names):
        return ""
    others = re.findall(rf"{block}\s*\*\s*(\w+)\b(?!\s*[*/(.])", plain)
    return others[0] if len({*others}) == 1 else ""


def _room_for_threads(thread: str, plain: str) -> set[str]:
    """The extents of shared arrays that have an element for each thread.

    It is `TX` for `tile[TX + 2]` and `tile[x + 1] = `. Where threads write at a distance that varies, or only
    some of them write, there may be any number.
    """
    found, distance = set(), r"(?:\s*\+\s*\d+)?\s*"
    for name, extents in _SHARED_ARRAY.findall(plain):
        stores = re.findall(rf"\b{name}\s*((?:\[[^\[\]]*\]\s*)+)=(?!=)", plain)
        for number, extent in enumerate(_BRACKETS.findall(extents)):
            indices = [store[number] for store in map(_BRACKETS.findall, stores) if len(store) > number]
            along = [index for index in indices if re.search(thread, index)]
            room = re.fullmatch(rf"\s*(\w+){distance}", extent)
            if room and along and all(re.fullmatch(rf"\s*{thread}{distance}", index) for index in along):
                found |= {room[1]} - set(re.findall(rf"{thread}\s*<=?\s*(\w+)", plain))
    return found


def threads_per_element(axis: str, body: str, known: Collection[str], size: str) -> str:
    """How many threads share an element, as the lanes of a warp share a row; empty if each has its own.

    It is a number or a name in `known` that the thread's index in the grid is divided by, where the
    quotient is compared with the size.
    """
    plain = without_aliases(body)
    block, thread = rf"{BLOCK_INDEX[axis]}\s*\*\s*(?:{BLOCK_EXTENT[axis]}|\w+)", THREAD_INDEX[axis]
    linear = rf"(?:{GLOBAL_INDEX[axis]}|{block}\s*\+\s*{thread}|{thread}\s*\+\s*{block})"
    names = re.findall(rf"\b(\w+)\s*=\s*{linear}\s*[;,]", plain)
    index = "|".join((GLOBAL_INDEX[axis], rf"\(\s*{linear}\s*\)", *names))
    found = {
        "32" if divisor == "warpSize" else divisor
        for name, divisor in re.findall(rf"\b(\w+)\s*=\s*(?:{index})\s*/\s*(\w+)\s*[;,]", plain)
        if (divisor.isdigit() or divisor in {*known, "warpSize"}) and size in bounds_of(name, plain)
    }
    return found.pop() if len(found) == 1 else ""


def rows_of_blocks(axis: str, body: str, sizes: Sequence[str]) -> str:
    """The size that has a block of its own for each element along an axis; empty if there is none.

    The block's index then stands alone, or is multiplied by the length of a row.
    """
    plain = without_aliases(body)
    if re.search(GLOBAL_INDEX[axis], plain) or not re.search(BLOCK_INDEX[axis], plain):
        return ""
    factors = {factor for match in re.finditer(BLOCK_INDEX[axis], plain) for factor in _around(plain, match)}
    if not factors <= {*sizes}:
        return ""
    left = [name for name in sizes if name not in factors]
    compared = size_along(axis, body, sizes)
    return compared or (left[0] if factors and len(left) == 1 else "")


def tile_of(axis: str, body: str, block: Sequence[str], known: Collection[str], size: str) -> str:
    """The product that a block's index is multiplied by, such as `BLOCK_Y * WORK_PER_THREAD`; else empty.

    Args:
        axis: x, y or z.
        body: Text of the kernel.
        block: Threads along each axis.
        known: The names that a launch plan may read.
        size: What the index along the axis is compared with, if that is known.
    """
    body = without_aliases(body)
    extents = [*block, "1", "1", "1"][:3]
    threads = extents["xyz".index(axis)]
    found = set()
    places = [(match, _around(body, match)) for match in re.finditer(BLOCK_INDEX[axis], body)]
    for match in re.finditer(rf"=\s*{GLOBAL_INDEX[axis]}", body) if size else ():
        factors, end = _factors(body, match.end())
        if factors and re.match(r"\s*[;,]", body[end:]):
            places.append((match, [*([threads] if threads != "1" else []), *factors]))
    for _, factors in places:
        text = " * ".join(factors)
        for name, extent in zip("xyz", extents, strict=True):
            text = re.sub(BLOCK_EXTENT[name], extent, text)
        text = " ".join(text.replace("/", " // ").split())
        if text.startswith("(") and closing(text, 0) == len(text) - 1:
            text = text[1:-1]
        if factors and set(WORD.findall(text)) <= {*known, *WORD.findall(" ".join(extents))}:
            found.add(text)
    return found.pop() if len(found) == 1 else ""


def _around(body: str, match: re.Match[str]) -> list[str]:
    """The factors before and after an index, and those of the brackets around it."""
    near = body[max(0, match.start() - _MAX_PRODUCT) : match.start()]
    before = re.search(r"(?<![\w.])(?:[\w.]++\s*+\*\s*+)*+$", near)
    factors = [before[0].rstrip("* \n")] if before and before[0] else []
    after, end = _factors(body, match.end())
    end = _enclosing(body, end)
    return [*factors, *after, *(_factors(body, end)[0] if end else [])]


def size_along(axis: str, body: str, sizes: Collection[str]) -> str:
    """The size that what derives from the index along an axis is compared with; empty if not exactly one."""
    index = rf"{BLOCK_INDEX[axis]}|{GLOBAL_INDEX[axis]}"
    values = [
        (match[1], value_part(match[2])) for match in re.finditer(r"\b(\w+)\s*=(?!=)(?=([^;=]*))", body)
    ]
    variables = {name for name, value in values if re.search(index, value)}
    reached = set(variables)
    for _ in range(_DERIVATIONS):
        bounds = {bound for name in variables for bound in bounds_of(name, body) if bound in sizes}
        if bounds or not variables:
            return bounds.pop() if len(bounds) == 1 else ""
        variables = {name for name, value in values if variables & set(WORD.findall(value))} - reached
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


def value_part(text: str) -> str:
    """What is assigned: the text up to a bracket that it does not open, as at the end of a loop's head."""
    return text[: closing(f"({text}", 0, "()") - 1]


def _factors(body: str, start: int) -> tuple[list[str], int]:
    """The factors that follow a place of the text, and where they end."""
    found = []
    while match := re.compile(r"\s*\*\s*").match(body, start):
        factor = re.compile(r"[\w.]+(?:\([\dxyz]\))?").match(body, match.end())
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
    """Just after the bracket that closes around a place of the same statement; 0 if there is none.

    What is around an array's index is no factor of the index: it has to do with the element.
    """
    depth = 0
    for position in range(start, len(body)):
        if body[position] in ";{}":
            return 0
        depth += (body[position] in "([") - (body[position] in ")]")
        if depth < 0:
            return position + 1 if body[position] == ")" else 0
    return 0
