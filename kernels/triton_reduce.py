"""Sum of a vector in Triton: a fixed grid adds up its share, then one program adds the partial sums."""

import triton
import triton.language as tl


@triton.jit
def partial_sums(x, partials, n, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    """One partial sum for each program, which goes through the vector with the stride of the grid."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    offsets = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(program * BLOCK * UNROLL, n, programs * BLOCK * UNROLL):
        for part in tl.static_range(UNROLL):
            place = start + part * BLOCK + offsets
            sums += tl.load(x + place, mask=place < n, other=0.0)
    tl.store(partials + program, tl.sum(sums, axis=0))


@triton.jit
def sum_partials(partials, total, count, COUNT: tl.constexpr):
    """The sum of `count` numbers in one program; COUNT is the next power of two."""
    place = tl.arange(0, COUNT)
    tl.store(total, tl.sum(tl.load(partials + place, mask=place < count, other=0.0), axis=0))
