"""Matrix product in Triton: C = A B, row-major; sums in float32."""

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
    """One tile of C for each program; GROUP_M rows of tiles are gone through together, for the cache."""
    program = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group = program // (GROUP_M * tiles_n)
    first = group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    rows = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (within // height) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)

    # Rows and columns beyond the edge wrap around: what they give is not stored.
    a_tile = a + (rows % m)[:, None] * k + depth[None, :]
    b_tile = b + depth[:, None] * n + (columns % n)[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN_K:
            left = tl.load(a_tile)
            right = tl.load(b_tile)
        else:
            left = tl.load(a_tile, mask=depth[None, :] < k - start, other=0.0)
            right = tl.load(b_tile, mask=depth[:, None] < k - start, other=0.0)
        sums = tl.dot(left, right, sums)
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n

    c_tile = c + rows[:, None] * n + columns[None, :]
    tl.store(c_tile, sums.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))
