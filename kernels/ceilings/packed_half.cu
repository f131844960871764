/* Multiplies and adds pairs of half-precision numbers as fast as it goes, as arithmetic.cu does single ones. */
typedef unsigned int pair_t;

/* Both of a pair are `number`. */
static __device__ __forceinline__ pair_t pair_of(DTYPE number)
{
    return *(const unsigned short *)&number * 0x10001u;
}

extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    multiply_add_pairs(const DTYPE *__restrict__ start, DTYPE *__restrict__ result, const DTYPE factor,
                       const DTYPE term, const unsigned int steps)
{
    const pair_t factors = pair_of(factor), terms = pair_of(term);
    pair_t chain[CHAINS];
#pragma unroll
    for (int k = 0; k < CHAINS; k++)
        chain[k] = pair_of(start[k]);
#pragma unroll 16
    for (unsigned int step = 0; step < steps / (2 * CHAINS); step++) {
#pragma unroll
        for (int k = 0; k < CHAINS; k++)
            asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(chain[k]) : "r"(factors), "r"(terms));
    }
    bool unchanged = true;
#pragma unroll
    for (int k = 0; k < CHAINS; k++)
        unchanged &= chain[k] == pair_of(start[k]);
    result[(size_t)blockIdx.x * BLOCK_SIZE + threadIdx.x] = unchanged ? start[0] : (DTYPE)-1;
}
