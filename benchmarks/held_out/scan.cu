#include "portable.h"

/* Inclusive prefix sums in three launches: each block its tile, the sums of the tiles, the addition of these. */
#define SPAN (BLOCK_SIZE * WORK)

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
scan_tiles(GLOBAL const int *RESTRICT x, GLOBAL int *RESTRICT y, GLOBAL int *RESTRICT totals, const unsigned long n)
{
    SHARED int cells[2][BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x);
#if VARIANT == 10
    const unsigned int first = BLOCK_INDEX(x) * SPAN + t * WORK;
#else
    const size_t first = (size_t)BLOCK_INDEX(x) * SPAN + t * WORK;
#endif
    int own[WORK];
    int sum = 0;
    for (unsigned int k = 0; k < WORK; k++) {
#if VARIANT == 5
        sum += x[first + k];
#else
        if (first + k < n)
            sum += x[first + k];
#endif
        own[k] = sum;
    }
    cells[0][t] = sum;
    BARRIER();
    unsigned int now = 0;
    for (unsigned int d = 1; d < BLOCK_SIZE; d *= 2) {
#if VARIANT == 1
        if (t >= d)
            cells[0][t] += cells[0][t - d];
#else
        cells[1 - now][t] = cells[now][t] + (t >= d ? cells[now][t - d] : 0);
        now = 1 - now;
#endif
        BARRIER();
    }
    const int before = cells[now][t] - sum;
    for (unsigned int k = 0; k < WORK; k++)
#if VARIANT == 4
        if (first + WORK <= n)
#else
        if (first + k < n)
#endif
            y[first + k] = before + own[k];
    if (t == BLOCK_SIZE - 1) {
#if VARIANT == 6
        totals[BLOCK_INDEX(x)] = (short)cells[now][t];
#elif VARIANT == 8
        totals[BLOCK_INDEX(x)] += cells[now][t];
#else
        totals[BLOCK_INDEX(x)] = cells[now][t];
#endif
    }
}

/* One block turns the sums of tiles into exclusive prefix sums. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1) scan_totals(GLOBAL int *RESTRICT totals, const unsigned int tiles)
{
    SHARED int sums[BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x);
#if VARIANT == 3
    const unsigned int each = (tiles < 262144 ? tiles : 262144) / BLOCK_SIZE + 1;
#else
    const unsigned int each = tiles / BLOCK_SIZE + 1;
#endif
    const unsigned int begin = t * each, end = begin + each < tiles ? begin + each : tiles;
    int sum = 0;
    for (unsigned int i = begin; i < end; i++)
        sum += totals[i];
    sums[t] = sum;
#if VARIANT != 7
    BARRIER();
#endif
#if VARIANT == 9
    float before = 0.0f;
#else
    int before = 0;
#endif
    for (unsigned int i = 0; i < t; i++)
        before += sums[i];
    for (unsigned int i = begin; i < end; i++) {
        const int own = totals[i];
#if VARIANT == 2
        before += own;
        totals[i] = before;
#else
        totals[i] = before;
        before += own;
#endif
    }
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
add_totals(GLOBAL int *RESTRICT y, GLOBAL const int *RESTRICT totals, const unsigned long n)
{
    for (unsigned int k = 0; k < WORK; k++) {
        const size_t i = (size_t)BLOCK_INDEX(x) * SPAN + k * BLOCK_SIZE + THREAD_INDEX(x);
        if (i < n)
            y[i] += totals[BLOCK_INDEX(x)];
    }
}
