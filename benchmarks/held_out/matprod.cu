#include "portable.h"

/* c = a b: a has m x k elements, b has k x n. A block computes TILE rows and TILE * PER columns. */
KERNEL KERNEL_BLOCK(TILE, TILE, 1)
matprod(GLOBAL const float *RESTRICT a, GLOBAL const float *RESTRICT b, GLOBAL float *RESTRICT c,
        const unsigned int m, const unsigned int n, const unsigned int k)
{
    SHARED float ta[TILE][TILE];
    SHARED float tb[TILE][TILE * PER];
    const unsigned int tx = THREAD_INDEX(x), ty = THREAD_INDEX(y);
    const unsigned int row = BLOCK_INDEX(y) * TILE + ty, col = BLOCK_INDEX(x) * TILE * PER + tx;
    float sums[PER];
    for (unsigned int p = 0; p < PER; p++)
        sums[p] = 0.0f;
#if VARIANT == 2
    const unsigned int tiles = k / TILE;
#elif VARIANT == 7
    const unsigned short tiles = (k + TILE - 1) / TILE;
#else
    const unsigned int tiles = (k + TILE - 1) / TILE;
#endif
    for (unsigned int tile = 0; tile < tiles; tile++) {
        const unsigned int ka = tile * TILE + tx, kb = tile * TILE + ty;
#if VARIANT == 3
        if (row < m && ka < k)
            ta[ty][tx] = a[(size_t)row * k + ka];
#else
        ta[ty][tx] = row < m && ka < k ? a[(size_t)row * k + ka] : 0.0f;
#endif
        for (unsigned int p = 0; p < PER; p++) {
            const unsigned int cb = col + p * TILE;
#if VARIANT == 3
            if (cb < n && kb < k)
                tb[ty][tx + p * TILE] = b[(size_t)kb * n + cb];
#elif VARIANT == 4
            tb[ty][tx + p * TILE] = cb < n && kb < k ? b[(size_t)kb * k + cb] : 0.0f;
#else
            tb[ty][tx + p * TILE] = cb < n && kb < k ? b[(size_t)kb * n + cb] : 0.0f;
#endif
        }
#if VARIANT != 10
        BARRIER();
#endif
        for (unsigned int q = 0; q < TILE; q++) {
            const float left = ta[ty][q];
#if VARIANT == 6
            if (left < -0.001f || left > 0.001f)
#endif
            for (unsigned int p = 0; p < PER; p++)
                sums[p] += left * tb[q][tx + p * TILE];
        }
#if VARIANT != 1
        BARRIER();
#endif
    }
    for (unsigned int p = 0; p < PER; p++) {
        const unsigned int cb = col + p * TILE;
#if VARIANT == 5
        if (cb < n)
#else
        if (row < m && cb < n)
#endif
#if VARIANT == 8
        {
            const int at = (int)(row * n) + (int)cb;
            c[at] = sums[p];
        }
#elif VARIANT == 9
            c[(size_t)row * n + cb] += sums[p];
#else
            c[(size_t)row * n + cb] = sums[p];
#endif
    }
}
