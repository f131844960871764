#include "portable.h"

/* How many bits of x are set. The last block to finish adds up what the blocks found. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
bits(GLOBAL const unsigned int *RESTRICT x, GLOBAL unsigned long *partials, GLOBAL unsigned int *ticket,
     GLOBAL unsigned long *total, const unsigned long n)
{
#if VARIANT == 6
    SHARED unsigned short cells[BLOCK_SIZE];
#else
    SHARED unsigned int cells[BLOCK_SIZE];
#endif
    SHARED unsigned long sums[BLOCK_SIZE];
    SHARED unsigned int is_last;
    const unsigned int t = THREAD_INDEX(x);
#if VARIANT == 10
    if (t == 0 && BLOCK_INDEX(x) == 0)
        *ticket = 0;
#endif
    unsigned int count = 0;
#if VARIANT == 9
    for (size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + t; i < n / BLOCK_SIZE * BLOCK_SIZE; i += BLOCK_SIZE * BLOCKS) {
#else
    for (size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + t; i < n; i += BLOCK_SIZE * BLOCKS) {
#endif
        unsigned int v = x[i];
#if VARIANT == 8
        for (int s = (int)v; s > 0; s >>= 1)
            count += s & 1;
#else
        v = v - ((v >> 1) & 0x55555555u);
        v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
        count += (((v + (v >> 4)) & 0x0F0F0F0Fu) * 0x01010101u) >> 24;
#endif
    }
    cells[t] = count;
    BARRIER();
    if (t == 0) {
        unsigned long sum = 0;
        for (unsigned int k = 0; k < BLOCK_SIZE; k++)
            sum += cells[k];
        partials[BLOCK_INDEX(x)] = sum;
#if VARIANT != 2
        MEMORY_FENCE();
#endif
#if VARIANT == 4
        is_last = ATOMIC_ADD(ticket, 1u) == BLOCKS;
#else
        is_last = ATOMIC_ADD(ticket, 1u) == BLOCKS - 1;
#endif
        MEMORY_FENCE();
    }
#if VARIANT != 3
    BARRIER();
#endif
    unsigned long sum = 0;
    if (is_last) {
#if VARIANT == 5
        if (t < BLOCKS)
            sum = ((GLOBAL volatile unsigned long *)partials)[t];
#else
        for (unsigned int b = t; b < BLOCKS; b += BLOCK_SIZE)
            sum += ((GLOBAL volatile unsigned long *)partials)[b];
#endif
    }
    sums[t] = sum;
    BARRIER();
    if (is_last && t == 0) {
        sum = 0;
        for (unsigned int k = 0; k < BLOCK_SIZE; k++)
            sum += sums[k];
#if VARIANT == 7
        *total += sum;
#else
        *total = sum;
#endif
#if VARIANT != 1 && VARIANT != 10
        *ticket = 0;
#endif
    }
}
