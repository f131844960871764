"""Attention in Triton, forward: softmax(Q K^T scale) V, without the matrix of scores in memory."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    n,
    scale,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EVEN_N: tl.constexpr,
):
    """BLOCK_M queries of one head for each program, which goes through the keys BLOCK_N at a time."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    head = tl.program_id(1).to(tl.int64) * n * HEAD_DIM
    lanes = tl.arange(0, HEAD_DIM)
    keys = tl.arange(0, BLOCK_N)
    queries = tl.load(q + head + rows[:, None] * HEAD_DIM + lanes[None, :], mask=rows[:, None] < n, other=0.0)
    k_tile = k + head + lanes[:, None] + keys[None, :] * HEAD_DIM
    v_tile = v + head + keys[:, None] * HEAD_DIM + lanes[None, :]
    factor = scale * 1.4426950408889634  # powers of 2 are cheaper than those of e
    highest = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    sums = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, n, BLOCK_N):
        if EVEN_N:
            scores = tl.dot(queries, tl.load(k_tile))
        else:
            inside = start + keys < n
            scores = tl.dot(queries, tl.load(k_tile, mask=inside[None, :], other=0.0))
            scores = tl.where(inside[None, :], scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1) * factor)
        powers = tl.exp2(scores * factor - higher[:, None])
        shrink = tl.exp2(highest - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        sums = sums * shrink[:, None]
        values = tl.load(v_tile) if EVEN_N else tl.load(v_tile, mask=(start + keys)[:, None] < n, other=0.0)
        sums = tl.dot(powers.to(v.dtype.element_ty), values, sums)
        highest = higher
        k_tile += BLOCK_N * HEAD_DIM
        v_tile += BLOCK_N * HEAD_DIM
    result = (sums / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + head + rows[:, None] * HEAD_DIM + lanes[None, :], result, mask=rows[:, None] < n)
