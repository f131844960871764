#include "portable.h"

/* The Euclidean norm of each row; a block per row. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
rownorm(GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT norms, const unsigned int rows, const unsigned int cols)
{
    SHARED float cells[BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x);
#if VARIANT == 7
    const unsigned short row = BLOCK_INDEX(x);
#else
    const unsigned int row = BLOCK_INDEX(x);
#endif
#if VARIANT == 3
    GLOBAL const float *from = x + (size_t)row * rows;
#else
    GLOBAL const float *from = x + (size_t)row * cols;
#endif
#if VARIANT == 8
    if (norms[row] > 0.0f)
        return;
#endif
    float sum = 0.0f;
#if VARIANT == 2
    for (unsigned int c = t; c + (UNROLL - 1) * BLOCK_SIZE < cols / BLOCK_SIZE * BLOCK_SIZE; c += BLOCK_SIZE * UNROLL)
        for (unsigned int u = 0; u < UNROLL; u++) {
            const float v = from[c + u * BLOCK_SIZE];
            sum += v * v;
        }
#else
    for (unsigned int c = t; c < cols; c += BLOCK_SIZE * UNROLL)
        UNROLL_LOOP(UNROLL)
        for (unsigned int u = 0; u < UNROLL; u++) {
            const float v = c + u * BLOCK_SIZE < cols ? from[c + u * BLOCK_SIZE] : 0.0f;
#if VARIANT == 6
            if (v > 0.01f || v < -0.01f)
#endif
            sum += v * v;
        }
#endif
#if VARIANT == 9
    if (t < cols)
#endif
    cells[t] = sum;
#if VARIANT != 1
    BARRIER();
#endif
#if VARIANT == 10
    for (unsigned int d = (cols < BLOCK_SIZE ? cols : BLOCK_SIZE) / 2; d > 0; d /= 2) {
#else
    for (unsigned int d = BLOCK_SIZE / 2; d > 0; d /= 2) {
#endif
        if (t < d)
            cells[t] += cells[t + d];
#if VARIANT == 4
        if (d > 32)
            BARRIER();
#else
        BARRIER();
#endif
    }
    if (t == 0) {
#if VARIANT == 5
        norms[row] = cells[0] * RSQRT(cells[0]);
#else
        norms[row] = SQRT(cells[0]);
#endif
    }
}
