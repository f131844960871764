#include "portable.h"

/* Softmax of each row; a block per row. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
softmax(GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT y, const unsigned int rows, const unsigned int cols)
{
    SHARED float cells[BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x);
#if VARIANT == 8
    const unsigned int row = BLOCK_INDEX(x) & 0xFFFFu;
#else
    const unsigned int row = BLOCK_INDEX(x);
#endif
#if VARIANT == 5
    GLOBAL const float *from = x + (size_t)row * rows;
#else
    GLOBAL const float *from = x + (size_t)row * cols;
#endif
    GLOBAL float *to = y + (size_t)row * cols;
#if VARIANT == 2
    float top = 0.0f;
#else
    float top = -3.0e38f;
#endif
    for (unsigned int c = t; c < cols; c += BLOCK_SIZE)
        top = FMAX(top, from[c]);
#if VARIANT == 4
    if (t < cols)
#endif
    cells[t] = top;
    BARRIER();
    for (unsigned int d = BLOCK_SIZE / 2; d > 0; d /= 2) {
        if (t < d)
            cells[t] = FMAX(cells[t], cells[t + d]);
        BARRIER();
    }
#if VARIANT == 1
    top = 0.0f;
#else
    top = cells[0];
#endif
#if VARIANT != 3
    BARRIER();
#endif
    float sum = 0.0f;
    for (unsigned int c = t; c < cols; c += BLOCK_SIZE) {
#if VARIANT == 10
        if (from[c] != 0.0f)
#endif
        sum += EXP(from[c] - top);
    }
    cells[t] = sum;
    BARRIER();
#if VARIANT == 9
    for (unsigned int d = BLOCK_SIZE / 4; d > 0; d /= 2) {
#else
    for (unsigned int d = BLOCK_SIZE / 2; d > 0; d /= 2) {
#endif
        if (t < d)
            cells[t] += cells[t + d];
        BARRIER();
    }
    const float scale = 1.0f / cells[0];
#if VARIANT == 6
    for (unsigned int c = t; c + (UNROLL - 1) * BLOCK_SIZE < cols / UNROLL * UNROLL; c += BLOCK_SIZE * UNROLL)
        for (unsigned int u = 0; u < UNROLL; u++)
            to[c + u * BLOCK_SIZE] = EXP(from[c + u * BLOCK_SIZE] - top) * scale;
#else
    for (unsigned int c = t; c < cols; c += BLOCK_SIZE * UNROLL)
        UNROLL_LOOP(UNROLL)
        for (unsigned int u = 0; u < UNROLL; u++)
            if (c + u * BLOCK_SIZE < cols) {
                const float v = from[c + u * BLOCK_SIZE];
#if VARIANT == 7
                to[c + u * BLOCK_SIZE] = v - top < -9.2f ? 0.0f : EXP(v - top) * scale;
#elif VARIANT == 10
                to[c + u * BLOCK_SIZE] = v == 0.0f ? 0.0f : EXP(v - top) * scale;
#else
                to[c + u * BLOCK_SIZE] = EXP(v - top) * scale;
#endif
            }
#endif
}
