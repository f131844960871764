#include "portable.h"

/* The sum of n whole numbers. Each block adds up a tile, then adds its sum to the total. */
KERNEL KERNEL_BLOCK(1, 1, 1) clear_total(GLOBAL int *RESTRICT total)
{
#if VARIANT != 1 && VARIANT != 10
    total[0] = 0;
#endif
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
vecsum(GLOBAL const int *RESTRICT x, GLOBAL int *RESTRICT total, const unsigned long n)
{
#if VARIANT == 4
    SHARED short cells[BLOCK_SIZE];
#else
    SHARED int cells[BLOCK_SIZE];
#endif
    const unsigned int t = THREAD_INDEX(x);
    const size_t first = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE * WORK + t;
    int value = 0;
#if VARIANT == 7
    if (BLOCK_INDEX(x) < n / (BLOCK_SIZE * WORK))
#endif
    for (unsigned int k = 0; k < WORK; k++) {
        const size_t i = first + k * BLOCK_SIZE;
#if VARIANT == 2
        value += x[i];
#elif VARIANT == 9
        const int byte = (int)(i * 4);
        if (i < n)
            value += *(GLOBAL const int *)((GLOBAL const char *)x + byte);
#else
        if (i < n)
            value += x[i];
#endif
    }
#if VARIANT == 8
    if (first < n)
#endif
    cells[t] = value;
    BARRIER();
#if VARIANT == 6
    for (unsigned int d = BLOCK_SIZE / 2; d > 1; d /= 2) {
#else
    for (unsigned int d = BLOCK_SIZE / 2; d > 0; d /= 2) {
#endif
        if (t < d)
            cells[t] += cells[t + d];
#if VARIANT != 3
        BARRIER();
#endif
    }
    if (t == 0) {
#if VARIANT == 5
        total[0] += cells[0];
#elif VARIANT == 10
        if (BLOCK_INDEX(x) == 0)
            total[0] = cells[0];
        else
            ATOMIC_ADD(total, cells[0]);
#else
        ATOMIC_ADD(total, cells[0]);
#endif
    }
}
