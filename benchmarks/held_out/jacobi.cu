#include "portable.h"

/* A Jacobi step: each inner cell becomes the mean of its four neighbours; the border stays. */
KERNEL KERNEL_BLOCK(BX, BY, 1)
#if VARIANT == 1
jacobi(GLOBAL float *old, GLOBAL float *next, const unsigned int h, const unsigned int w)
#else
jacobi(GLOBAL float *RESTRICT old, GLOBAL float *RESTRICT next, const unsigned int h, const unsigned int w)
#endif
{
    SHARED float tile[BY][BX];
    const unsigned int tx = THREAD_INDEX(x), ty = THREAD_INDEX(y);
    const unsigned int c = BLOCK_INDEX(x) * BX + tx, r = BLOCK_INDEX(y) * BY + ty;
#if VARIANT == 5
    const size_t i = (size_t)r * h + c;
    const unsigned int pitch = h;
#elif VARIANT == 10
    const int i = (int)(r * w + c);
    const unsigned int pitch = w;
#else
    const size_t i = (size_t)r * w + c;
    const unsigned int pitch = w;
#endif
#if VARIANT == 8
    if (r < h - 1 && c < w - 1)
        tile[ty][tx] = old[i];
#else
    if (r < h && c < w)
        tile[ty][tx] = old[i];
#endif
#if VARIANT != 4
    BARRIER();
#endif
#if VARIANT == 3
    const bool is_inner = r > 0 && r < h - 1 && c > 0 && c < w;
#elif VARIANT == 6
    const bool is_inner = r > 0 && r < h - 1 && c > 0 && c < w / BX * BX && c < w - 1;
#else
    const bool is_inner = r > 0 && r < h - 1 && c > 0 && c < w - 1;
#endif
    if (is_inner) {
#if VARIANT == 7
        const float north = ty > 0 ? tile[ty - 1][tx] : next[i - pitch];
#else
        const float north = ty > 0 ? tile[ty - 1][tx] : old[i - pitch];
#endif
        const float south = ty < BY - 1 ? tile[ty + 1][tx] : old[i + pitch];
        const float west = tx > 0 ? tile[ty][tx - 1] : old[i - 1];
#if VARIANT == 9
        const float east = tile[ty][tx < BX - 1 ? tx + 1 : tx];
#else
        const float east = tx < BX - 1 ? tile[ty][tx + 1] : old[i + 1];
#endif
#if VARIANT == 1
        old[i] = 0.25f * (north + south + west + east);
        next[i] = old[i];
#else
        next[i] = 0.25f * (north + south + west + east);
#endif
    } else if (r < h && c < w) {
#if VARIANT != 2
        next[i] = tile[ty][tx];
#endif
    }
}
