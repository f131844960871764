"""Matrix product in Triton of float8 with float16 results: C = A B, where B is given column by column."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["m"])  # rows change nothing in the code
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    """One tile of C for each program; columns of B are contiguous, as tensor cores take float8."""
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    number = tl.program_id(0)
    row, column = tl.swizzle2d(number // tiles_n, number % tiles_n, tiles_m, tiles_n, GROUP_M)
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)

    # Rows and columns beyond the edge wrap around: what they give is not stored.
    a_tile = a + (rows % m)[:, None] * k + depth[None, :]
    b_tile = b + depth[:, None] + (columns % n)[None, :] * k
    sums = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN_K:
            left = tl.load(a_tile)
            right = tl.load(b_tile)
        else:
            left = tl.load(a_tile, mask=depth[None, :] < k - start, other=0.0)
            right = tl.load(b_tile, mask=depth[:, None] < k - start, other=0.0)
        # Tensor cores of Hopper keep some 14 bits of such sums, so those of a step are added in float32.
        sums = tl.dot(left, right, sums, max_num_imprecise_acc=BLOCK_K)
        a_tile += BLOCK_K
        b_tile += BLOCK_K

    c_tile = c + rows[:, None] * n + columns[None, :]
    tl.store(c_tile, sums.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))
