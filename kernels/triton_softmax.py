"""Softmax of the rows of a matrix in Triton."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["m"])  # rows change nothing in the code
def softmax(x, y, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, ONE_STEP: tl.constexpr):
    """ROWS rows for each program, BLOCK columns at once; all of a row stays in registers if ONE_STEP."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    starts = rows.to(tl.int64)[:, None] * n
    is_row = rows[:, None] < m
    if ONE_STEP:
        inside = is_row & (columns[None, :] < n)
        values = tl.load(x + starts + columns[None, :], mask=inside, other=float("-inf")).to(tl.float32)
        powers = tl.exp(values - tl.max(values, axis=1)[:, None])
        result = powers / tl.sum(powers, axis=1)[:, None]
        tl.store(y + starts + columns[None, :], result.to(y.dtype.element_ty), mask=inside)
    else:
        highest = tl.full([ROWS], float("-inf"), dtype=tl.float32)
        total = tl.zeros([ROWS], dtype=tl.float32)
        for start in range(0, n, BLOCK):
            place = start + columns[None, :]
            inside = is_row & (place < n)
            values = tl.load(
                x + starts + place, mask=inside, other=float("-inf"), eviction_policy="evict_last"
            )
            values = values.to(tl.float32)
            higher = tl.maximum(highest, tl.max(values, axis=1))
            total = total * tl.exp(highest - higher) + tl.sum(tl.exp(values - higher[:, None]), axis=1)
            highest = higher
        for start in range(0, n, BLOCK):
            place = start + columns[None, :]
            inside = is_row & (place < n)
            values = tl.load(x + starts + place, mask=inside, other=0.0, eviction_policy="evict_first")
            result = tl.exp(values.to(tl.float32) - highest[:, None]) / total[:, None]
            tl.store(y + starts + place, result.to(y.dtype.element_ty), mask=inside)
