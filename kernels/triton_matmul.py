"""Matrix product in Triton: C = A B, row-major; sums in float32."""

import triton
import triton.language as tl


@triton.jit
def tile_of(number, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """The first row and column of a tile; GROUP_M rows of tiles are gone through together, for the cache."""
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group = number // (GROUP_M * tiles_n)
    first = group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = number % (GROUP_M * tiles_n)
    return (first + within % height) * BLOCK_M, (within // height) * BLOCK_N


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
    """One tile of C for each program, loaded through pointers."""
    row, column = tile_of(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP_M)
    rows = row + tl.arange(0, BLOCK_M)
    columns = column + tl.arange(0, BLOCK_N)
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


@triton.jit(do_not_specialize=["m"])
def matmul_persistent(
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
    SPECIALIZED: tl.constexpr,
):
    """Several tiles of C for each program; the tensor memory accelerator loads and stores them.

    It reads zeros beyond the edge, and stores nothing there. SPECIALIZED gives loads and products warps of
    their own.
    """
    a_tiles = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b, [k, n], [n, 1], [BLOCK_K, BLOCK_N])
    c_tiles = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    programs = tl.num_programs(0)
    for number in tl.range(
        tl.program_id(0), tiles, programs, flatten=not SPECIALIZED, warp_specialize=SPECIALIZED
    ):
        row, column = tile_of(number, m, n, BLOCK_M, BLOCK_N, GROUP_M)
        sums = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            sums = tl.dot(a_tiles.load([row, start]), b_tiles.load([start, column]), sums)
        c_tiles.store([row, column], sums.to(c.dtype.element_ty))
