#include "portable.h"

/* y = transpose of x, which has rows x cols elements. */
KERNEL KERNEL_BLOCK(TILE, STRIPS, 1)
flip(GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT y, const unsigned int rows, const unsigned int cols)
{
    SHARED float tile[TILE][TILE + 1];
    const unsigned int tx = THREAD_INDEX(x), ty = THREAD_INDEX(y);
    const unsigned int col0 = BLOCK_INDEX(x) * TILE, row0 = BLOCK_INDEX(y) * TILE;
#if VARIANT == 6
    const unsigned short col = col0 + tx;
#else
    const unsigned int col = col0 + tx;
#endif
#if VARIANT == 10
    BARRIER();
#endif
    for (unsigned int k = ty; k < TILE; k += STRIPS) {
        const unsigned int row = row0 + k;
#if VARIANT == 9
        if (row < rows || col < cols)
#else
        if (row < rows && col < cols)
#endif
#if VARIANT == 7
            tile[k][tx] = x[row * cols + col];
#else
            tile[k][tx] = x[(size_t)row * cols + col];
#endif
    }
#if VARIANT != 2 && VARIANT != 10
    BARRIER();
#endif
#if VARIANT == 5
    for (unsigned int k = ty; k < TILE - STRIPS; k += STRIPS) {
#else
    for (unsigned int k = ty; k < TILE; k += STRIPS) {
#endif
        const unsigned int row = row0 + tx, column = col0 + k;
#if VARIANT == 1
        if (column < cols)
#else
        if (row < rows && column < cols)
#endif
#if VARIANT == 3
            y[(size_t)column * cols + row] = tile[tx][k];
#elif VARIANT == 4
            y[(size_t)column * rows + row] = tile[k][tx];
#elif VARIANT == 8
            if (tile[tx][k] != 0.0f)
                y[(size_t)column * rows + row] = tile[tx][k];
#else
            y[(size_t)column * rows + row] = tile[tx][k];
#endif
    }
}
