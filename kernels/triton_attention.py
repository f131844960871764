"""Attention in Triton, forward: softmax(Q K^T scale) V, without the matrix of scores in memory."""

import triton
import triton.language as tl


@triton.jit
def weighed(scores, factor, highest, total, sums):
    """The powers of a block's scores; and the highest score, total and sums so far, scaled to it."""
    higher = tl.maximum(highest, tl.max(scores, axis=1) * factor)
    powers = tl.exp2(scores * factor - higher[:, None])
    shrink = tl.exp2(highest - higher)
    return powers, higher, total * shrink + tl.sum(powers, axis=1), sums * shrink[:, None]


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
        powers, highest, total, sums = weighed(scores, factor, highest, total, sums)
        values = tl.load(v_tile) if EVEN_N else tl.load(v_tile, mask=(start + keys)[:, None] < n, other=0.0)
        sums = tl.dot(powers.to(v.dtype.element_ty), values, sums)
        k_tile += BLOCK_N * HEAD_DIM
        v_tile += BLOCK_N * HEAD_DIM
    result = (sums / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + head + rows[:, None] * HEAD_DIM + lanes[None, :], result, mask=rows[:, None] < n)


@triton.jit
def attention_by_tensors(
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
    """The same, but the tensor memory accelerator loads and stores; it reads zeros beyond the last row."""
    row, head, heads = tl.program_id(0) * BLOCK_M, tl.program_id(1), tl.num_programs(1)
    q_tiles = tl.make_tensor_descriptor(
        q, [heads, n, HEAD_DIM], [n * HEAD_DIM, HEAD_DIM, 1], [1, BLOCK_M, HEAD_DIM]
    )
    k_tiles = tl.make_tensor_descriptor(
        k, [heads, n, HEAD_DIM], [n * HEAD_DIM, HEAD_DIM, 1], [1, BLOCK_N, HEAD_DIM]
    )
    v_tiles = tl.make_tensor_descriptor(
        v, [heads, n, HEAD_DIM], [n * HEAD_DIM, HEAD_DIM, 1], [1, BLOCK_N, HEAD_DIM]
    )
    out_tiles = tl.make_tensor_descriptor(
        out, [heads, n, HEAD_DIM], [n * HEAD_DIM, HEAD_DIM, 1], [1, BLOCK_M, HEAD_DIM]
    )
    queries = q_tiles.load([head, row, 0]).reshape(BLOCK_M, HEAD_DIM)
    factor = scale * 1.4426950408889634
    highest = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    sums = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for start in range(0, n, BLOCK_N):
        scores = tl.dot(queries, k_tiles.load([head, start, 0]).reshape(BLOCK_N, HEAD_DIM).T)
        if not EVEN_N:
            scores = tl.where((start + tl.arange(0, BLOCK_N) < n)[None, :], scores, float("-inf"))
        powers, highest, total, sums = weighed(scores, factor, highest, total, sums)
        values = v_tiles.load([head, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        sums = tl.dot(powers.to(v.dtype.element_ty), values, sums)
    result = (sums / total[:, None]).to(out.dtype.element_ty)
    out_tiles.store([head, row, 0], result.reshape(1, BLOCK_M, HEAD_DIM))
