"""Read from a kernel how many elements of which size a block covers along each axis.

The evidence is what multiplies the indices of blocks and threads, and what these are compared with.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from autotune.sources.facts import Facts, addends_of, factors_around, names_in, substituted

_DERIVATIONS = 3  # of a variable from the block's index, one from another


def reads_index(facts: Facts, axis: str, *kinds: str) -> bool:
    """True if a kernel reads one of some indices along an axis."""
    wanted = {f"{kind}.{axis}" for kind in kinds}
    return not wanted.isdisjoint(facts.read_indices)


def threads_along(axis: str, facts: Facts) -> str:
    """The number of threads that a kernel reckons with along an axis: a macro or a number; empty if none.

    It is what a block's index is multiplied by before the thread's is added, and of several factors the
    distance from one element of a thread to its next; or the stride of a loop that begins at the thread's
    index; else the extent of a shared array with an element for each thread; 1 where only the index along
    other axes is read. A kernel that asks for the extent of its block takes any.
    """
    thread = f"threadIdx.{axis}"
    if reads_index(facts, axis, "blockDim"):
        room = _room_for_threads(thread, facts)
        return room.pop() if len(room) == 1 else ""
    if thread not in facts.read_indices:
        return "1" if any(reads_index(facts, letter, "threadIdx") for letter in "xyz") else ""
    shown = {*_multiplied(axis, facts), *_strides(thread, facts)} or _room_for_threads(thread, facts)
    shown = {_step_through(tile, facts) or tile for tile in shown}
    return shown.pop() if len(shown) == 1 else ""


def _multiplied(axis: str, facts: Facts) -> Iterator[str]:
    """What a block's index is multiplied by in a sum in which the thread's is not.

    Of several factors it is the one that a loop adds to the sum: `block * THREADS * EACH + thread + i *
    THREADS`.
    """
    thread = f"threadIdx.{axis}"
    for node in facts.expressions:
        whole = facts.written_out(node)
        own = _factors(whole, thread)
        if len(own) != 1:
            continue
        for letter in (axis, *"xyz".replace(axis, "")):
            if others := _factors(whole, f"blockIdx.{letter}"):
                left = Counter(others[0]) - Counter(own[0])
                if len(others) == 1 and left.total() + len(own[0]) == len(others[0]):
                    yield from left if left.total() == 1 else left.keys() & {*_distances(whole, facts)}
                break


def _distances(node: ast.expr, facts: Facts) -> Iterator[str]:
    """What each turn of a loop adds to a sum, where it is a single name or number."""
    for name, steps in facts.changed.items():
        for factors in _factors(node, name):
            added = [text for text in (*factors, *map(ast.unparse, steps)) if text != "1"]
            if len(added) == 1:
                yield added[0]


def _step_through(tile: str, facts: Facts) -> str:
    """What a loop through a tile steps by, as threads do that cover it together; else empty."""
    for test in facts.compared:
        if test.is_loop and ast.unparse(test.right) == tile and isinstance(test.left, ast.Name):
            steps = facts.changed.get(test.left.id, ())
            if len(steps) == 1 and isinstance(steps[0], ast.Name):
                return steps[0].id
    return ""


def _strides(thread: str, facts: Facts) -> Iterator[str]:
    """The steps of variables that begin at the thread's index."""
    for name, steps in facts.changed.items():
        begins = [ast.unparse(facts.written_out(value)) for value in facts.values.get(name, ())]
        if begins == [thread] and len(steps) == 1 and isinstance(steps[0], ast.Name | ast.Constant):
            yield ast.unparse(steps[0])


def _room_for_threads(thread: str, facts: Facts) -> set[str]:
    """The extents of shared arrays that have an element for each thread.

    It is `TX` for `tile[TX + 2]` and `tile[x + 1] = `. Where threads write at a distance that varies, or only
    some of them write, there may be any number.
    """
    rooms: set[str] = set()
    for name, declared in facts.declared.items():
        if not declared.is_shared or declared.is_dynamic:
            continue
        stores = [one for one in facts.of(name) if one.is_written and not one.is_read and not one.atomic]
        for number, extent in enumerate(declared.extents):
            indices = [store.indices[number] for store in stores if len(store.indices) > number]
            written = [facts.written_out(index) for index in indices]
            along = [index for index in written if _factors(index, thread)]
            room = _without_distance(extent)
            at_distance = [ast.unparse(_without_distance(index)) == thread for index in along]
            if isinstance(room, ast.Name | ast.Constant) and along and all(at_distance):
                rooms.add(ast.unparse(room))
    below = (test for test in facts.compared if ast.unparse(facts.written_out(test.left)) == thread)
    return rooms - {ast.unparse(one.right) for one in below}


def _without_distance(node: ast.expr) -> ast.expr:
    """An index or extent without the number that is added to it."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant()):
            return left
    return node


def rows_of_blocks(axis: str, facts: Facts, sizes: Sequence[str]) -> str:
    """The size that has a block of its own for each element along an axis; empty if there is none.

    The block's index then stands alone, or is multiplied by the length of a row.
    """
    block = f"blockIdx.{axis}"
    if block not in facts.read_indices:
        return ""
    indices = (facts.written_out(index) for access in facts.accesses for index in access.indices)
    factors = {
        text for node in (*facts.expressions, *indices) for factor in _factors(node, block) for text in factor
    }
    if not factors <= {*sizes}:
        return ""
    left = [name for name in sizes if name not in factors]
    compared = size_along(axis, facts, sizes)
    return compared or (left[0] if factors and len(left) == 1 else "")


def tile_of(axis: str, facts: Facts, block: Sequence[str], known: Collection[str], size: str) -> str:
    """The product that a block's index is multiplied by, such as `BLOCK_Y * WORK_PER_THREAD`; else empty.

    What is compared with the size counts first, else every sum in which the index stands. A launch plan may
    read names that are `known`.
    """
    bounded = [facts.written_out(test.left) for test in facts.compared if ast.unparse(test.right) == size]
    for nodes in (bounded, facts.expressions):
        tiles = [text for node in nodes for text in _tiles(node, axis, block, known)]
        alone = block["xyz".index(axis)] if "xyz".index(axis) < len(block) else "1"
        others = {text for text in tiles if text != alone} or {*tiles}
        if tiles:
            return others.pop() if len(others) == 1 else ""
    return ""


def _tiles(node: ast.expr, axis: str, block: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """What a block's index is multiplied by in an expression, as a launch plan has it."""
    extents = [*block, "1", "1", "1"][:3]
    names = {*known, *(name for extent in extents for name in names_in(ast.parse(extent)))}
    for factors in factors_around(node, f"blockIdx.{axis}"):
        parts: list[str] = []
        for factor in factors:
            text = ast.unparse(_floored(factor))
            for letter, extent in zip("xyz", extents, strict=True):
                text = text.replace(f"blockDim.{letter}", extent)
            if text == "1":
                continue
            parts.append(f"({text})" if isinstance(factor, ast.BinOp) and len(factors) > 1 else text)
        text = " * ".join(sorted(parts, key=lambda one: one not in extents))  # threads first
        tree = ast.parse(text)
        has_call = any(isinstance(part, ast.Call | ast.Attribute) for part in ast.walk(tree))
        if text and names_in(tree) <= names and not has_call:
            yield text


def _floored(node: ast.expr) -> ast.expr:
    """A C expression with Python's division of whole numbers."""

    def floored(part: ast.expr) -> ast.expr:
        is_quotient = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div)
        return ast.BinOp(part.left, ast.FloorDiv(), part.right) if is_quotient else part  # type: ignore[attr-defined]

    return substituted(node, floored)


def _factors(node: ast.expr, index: str) -> list[list[str]]:
    """For each place of an index or a variable in a sum of products, the texts of its factors."""
    return [
        [text for factor in factors for text in _parts(factor)] for factors in factors_around(node, index)
    ]


def _parts(factor: ast.expr) -> list[str]:
    """The texts of the factors of a product; of anything else its own."""
    match factor:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _parts(left) + _parts(right)
    return [ast.unparse(factor)]


def size_along(axis: str, facts: Facts, sizes: Collection[str]) -> str:
    """The size that what derives from the index along an axis is compared with; empty if not exactly one."""
    block = f"blockIdx.{axis}"
    direct = {
        ast.unparse(test.right)
        for test in facts.compared
        if block in indices_in(test.left) and len(_axes_in(test.left)) == 1
    } & {*sizes}
    variables = {
        name for name, values in facts.values.items() if any(block in indices_in(value) for value in values)
    }
    reached = set(variables)
    for _ in range(_DERIVATIONS):
        bounds = (bounds_of(variables, facts) & {*sizes}) | direct
        if bounds or not variables:
            return bounds.pop() if len(bounds) == 1 else ""
        variables = {
            name
            for name, values in facts.values.items()
            if any(not variables.isdisjoint(facts.read_by(value)[0]) for value in values)
        } - reached
        reached |= variables
    return ""


def row_length(axis: str, facts: Facts, sizes: Collection[str]) -> str:
    """The size that ends a row of threads along an axis; empty if not exactly one.

    It multiplies another index where the one along the axis is added alone: `c[row * columns + column]`.
    """
    block, lengths = f"blockIdx.{axis}", set()
    for access in facts.accesses:
        whole = facts.written_out(access.index)
        if any({*factors} & {*sizes} for factors in _factors(whole, block)):
            continue
        others = [addend for addend in addends_of(whole) if block not in indices_in(addend)]
        if block in indices_in(whole):
            lengths |= {text for other in others for text in _row_factors(other)} & {*sizes}
    return lengths.pop() if len(lengths) == 1 else ""


def _row_factors(addend: ast.expr) -> list[str]:
    """The factors of a product; none of anything else."""
    is_product = isinstance(addend, ast.BinOp) and isinstance(addend.op, ast.Mult)
    return _parts(addend) if is_product else []


def indices_in(node: ast.expr) -> set[str]:
    """The indices of blocks and threads in an expression, and what else has a name after a point."""
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _axes_in(node: ast.expr) -> set[str]:
    return {text[-1] for text in indices_in(node) if text.startswith(("blockIdx.", "threadIdx."))}


def bounds_of(variables: Collection[str], facts: Facts) -> set[str]:
    """What variables, or their sums with others, are compared with: `i < n`, `i + k < n`, `i >= n`.

    Where that is nothing, what is a number more than that: `i < n - 1`.
    """
    compared = (test for test in facts.compared if test.operator == "<")
    bounds = [test.right for test in compared if _has_sum_of(test.left, variables)]
    names = {bound.id for bound in bounds if isinstance(bound, ast.Name)}
    return names or {
        bound.left.id
        for bound in bounds
        if isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Sub)
        if isinstance(bound.left, ast.Name) and isinstance(bound.right, ast.Constant)
    }


def _has_sum_of(node: ast.expr, variables: Collection[str]) -> bool:
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    parts = [node.left, node.right] if is_sum else [node]  # type: ignore[attr-defined]
    return any(ast.unparse(part) in variables for part in parts)
