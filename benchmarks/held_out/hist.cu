#include "portable.h"

/* How often each byte occurs. Each block counts in shared memory and adds its counts to the result. */
KERNEL KERNEL_BLOCK(256, 1, 1) clear_counts(GLOBAL unsigned int *RESTRICT counts)
{
#if VARIANT != 8
    counts[THREAD_INDEX(x)] = 0;
#endif
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
hist(GLOBAL const unsigned char *RESTRICT x, GLOBAL unsigned int *RESTRICT counts, const unsigned long n)
{
    SHARED unsigned int bins[256];
    const unsigned int t = THREAD_INDEX(x);
#if VARIANT == 7
    bins[t] = 0;
#elif VARIANT != 1
    for (unsigned int b = t; b < 256; b += BLOCK_SIZE)
        bins[b] = 0;
#endif
#if VARIANT != 2
    BARRIER();
#endif
    for (unsigned int k = 0; k < WORK; k++) {
#if VARIANT == 10
        const unsigned int i = BLOCK_INDEX(x) * (BLOCK_SIZE * WORK) + k * BLOCK_SIZE + t;
#else
        const size_t i = (size_t)BLOCK_INDEX(x) * (BLOCK_SIZE * WORK) + k * BLOCK_SIZE + t;
#endif
#if VARIANT == 9
        if (i < (n / 4) * 4)
#else
        if (i < n)
#endif
#if VARIANT == 4
            bins[x[i]]++;
#elif VARIANT == 6
            ATOMIC_ADD(&bins[x[i] / 4], 1u << (8 * (x[i] % 4)));
#else
            ATOMIC_ADD(&bins[x[i]], 1u);
#endif
    }
#if VARIANT != 3
    BARRIER();
#endif
    for (unsigned int b = t; b < 256; b += BLOCK_SIZE)
#if VARIANT == 5
        counts[b] += bins[b];
#elif VARIANT == 6
        ATOMIC_ADD(&counts[b], bins[b / 4] >> (8 * (b % 4)) & 255u);
#else
        ATOMIC_ADD(&counts[b], bins[b]);
#endif
}
