#include "portable.h"

/* The first index of the largest element: each block finds one, then one block finds the best of these. */
#if VARIANT == 5
#define INDEX float
#else
#define INDEX unsigned int
#endif
#if VARIANT == 1
#define LOWEST 0
#else
#define LOWEST (-2147483647 - 1)
#endif
#define NOWHERE 0xFFFFFFFFu

#if VARIANT == 2
#define IS_BETTER(value, index, best, at) ((value) > (best))
#elif VARIANT == 8
#define IS_BETTER(value, index, best, at) ((value) - (best) > 0 || ((value) == (best) && (index) < (at)))
#elif VARIANT == 10
#define IS_BETTER(value, index, best, at) \
    ((unsigned int)(value) > (unsigned int)(best) || ((value) == (best) && (index) < (at)))
#else
#define IS_BETTER(value, index, best, at) ((value) > (best) || ((value) == (best) && (index) < (at)))
#endif

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
argmax_blocks(GLOBAL const int *RESTRICT x, GLOBAL int *RESTRICT values, GLOBAL unsigned int *RESTRICT indices,
              const unsigned int n)
{
    SHARED int bests[BLOCK_SIZE];
    SHARED INDEX ats[BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x);
    const unsigned int stride = GRID_EXTENT(x) * BLOCK_SIZE;
#if VARIANT == 9
    int best = values[BLOCK_INDEX(x)];
    unsigned int at = indices[BLOCK_INDEX(x)];
#else
    int best = LOWEST;
    unsigned int at = NOWHERE;
#endif
#if VARIANT == 7
    for (unsigned int i = BLOCK_INDEX(x) * BLOCK_SIZE + t; i + 1 < n; i += stride)
#else
    for (unsigned int i = BLOCK_INDEX(x) * BLOCK_SIZE + t; i < n; i += stride)
#endif
        if (IS_BETTER(x[i], i, best, at)) {
            best = x[i];
            at = i;
        }
    bests[t] = best;
    ats[t] = at;
    BARRIER();
    for (unsigned int d = BLOCK_SIZE / 2; d > 0; d /= 2) {
        if (t < d && IS_BETTER(bests[t + d], ats[t + d], bests[t], ats[t])) {
            bests[t] = bests[t + d];
            ats[t] = ats[t + d];
        }
#if VARIANT != 3
        BARRIER();
#endif
    }
#if VARIANT == 6
    if (t == 0 && BLOCK_INDEX(x) * BLOCK_SIZE < n) {
#else
    if (t == 0) {
#endif
        values[BLOCK_INDEX(x)] = bests[0];
        indices[BLOCK_INDEX(x)] = (unsigned int)ats[0];
    }
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
argmax_final(GLOBAL const int *RESTRICT values, GLOBAL const unsigned int *RESTRICT indices,
             GLOBAL unsigned int *RESTRICT result)
{
    SHARED int bests[BLOCK_SIZE];
    SHARED unsigned int ats[BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x);
    int best = LOWEST;
    unsigned int at = NOWHERE;
#if VARIANT == 4
    if (t < BLOCKS) {
        best = values[t];
        at = indices[t];
    }
#else
    for (unsigned int b = t; b < BLOCKS; b += BLOCK_SIZE)
        if (IS_BETTER(values[b], indices[b], best, at)) {
            best = values[b];
            at = indices[b];
        }
#endif
    bests[t] = best;
    ats[t] = at;
    BARRIER();
    for (unsigned int d = BLOCK_SIZE / 2; d > 0; d /= 2) {
        if (t < d && IS_BETTER(bests[t + d], ats[t + d], bests[t], ats[t])) {
            bests[t] = bests[t + d];
            ats[t] = ats[t + d];
        }
        BARRIER();
    }
    if (t == 0)
        result[0] = ats[0];
}
