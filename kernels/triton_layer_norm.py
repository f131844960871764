"""Layer norm of the rows of a matrix in Triton, forward."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["m"])  # rows change nothing in the code
def layer_norm(
    x,
    weight,
    bias,
    y,
    means,
    scales,
    m,
    n,
    epsilon,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_STEP: tl.constexpr,
):
    """ROWS rows for each program, BLOCK columns at once; all of a row stays in registers if ONE_STEP."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    starts = rows.to(tl.int64)[:, None] * n
    is_row = rows[:, None] < m
    if ONE_STEP:
        inside = is_row & (columns[None, :] < n)
        values = tl.load(x + starts + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        mean = tl.sum(values, axis=1) / n
        off = tl.where(inside, values - mean[:, None], 0.0)
        scale = tl.rsqrt(tl.sum(off * off, axis=1) / n + epsilon)
        factor = tl.load(weight + columns, mask=columns < n, other=0.0).to(tl.float32)
        shift = tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)
        result = off * scale[:, None] * factor[None, :] + shift[None, :]
        tl.store(y + starts + columns[None, :], result.to(y.dtype.element_ty), mask=inside)
    else:
        sums = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        for start in range(0, n, BLOCK):
            place = start + columns[None, :]
            inside = is_row & (place < n)
            sums += tl.load(x + starts + place, mask=inside, other=0.0, eviction_policy="evict_last").to(
                tl.float32
            )
        mean = tl.sum(sums, axis=1) / n
        squares = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        for start in range(0, n, BLOCK):
            place = start + columns[None, :]
            inside = is_row & (place < n)
            values = tl.load(x + starts + place, mask=inside, other=0.0, eviction_policy="evict_last")
            off = tl.where(inside, values.to(tl.float32) - mean[:, None], 0.0)
            squares += off * off
        scale = tl.rsqrt(tl.sum(squares, axis=1) / n + epsilon)
        for start in range(0, n, BLOCK):
            place = start + columns
            inside = is_row & (place[None, :] < n)
            factor = tl.load(weight + place, mask=place < n, other=0.0).to(tl.float32)
            shift = tl.load(bias + place, mask=place < n, other=0.0).to(tl.float32)
            values = tl.load(
                x + starts + place[None, :], mask=inside, other=0.0, eviction_policy="evict_first"
            )
            off = values.to(tl.float32) - mean[:, None]
            result = off * scale[:, None] * factor[None, :] + shift[None, :]
            tl.store(y + starts + place[None, :], result.to(y.dtype.element_ty), mask=inside)
    tl.store(means + rows, mean, mask=rows < m)
    tl.store(scales + rows, scale, mask=rows < m)
