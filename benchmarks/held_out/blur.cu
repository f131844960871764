#include "portable.h"

/* 3 x 3 filter of an image of h x w pixels; pixels outside count as 0. */
#define SPAN (BX + 2)

KERNEL KERNEL_BLOCK(BX, BY, 1)
blur(GLOBAL const float *RESTRICT image, GLOBAL const float *RESTRICT weights, GLOBAL float *RESTRICT result,
     const unsigned int h, const unsigned int w)
{
    SHARED float tile[(BY + 2) * SPAN];
    const int tx = THREAD_INDEX(x), ty = THREAD_INDEX(y);
    const int c = BLOCK_INDEX(x) * BX + tx, r = BLOCK_INDEX(y) * BY + ty;
#if VARIANT == 10
    if (r >= (int)h || c >= (int)w)
        return;
#endif
    for (int i = ty * BX + tx; i < (BY + 2) * SPAN; i += BX * BY) {
        const int lr = i / SPAN, lc = i % SPAN;
        const int gr = (int)BLOCK_INDEX(y) * BY + lr - 1, gc = (int)BLOCK_INDEX(x) * BX + lc - 1;
#if VARIANT == 1
        if (lc == 0)
            continue;
#elif VARIANT == 7
        if ((lr == 0 || lr == BY + 1) && (lc == 0 || lc == BX + 1))
            continue;
#endif
#if VARIANT == 3
        tile[i] = gr >= 0 && gr < (int)h ? image[(long)gr * w + gc] : 0.0f;
#elif VARIANT == 5
        tile[i] = gr >= 0 && gr < (int)w && gc >= 0 && gc < (int)h ? image[(size_t)gr * w + gc] : 0.0f;
#elif VARIANT == 8
        tile[i] = gr >= 0 && gr < (int)h && gc >= 0 && gc < (int)w ? image[gr * (int)w + gc] : 0.0f;
#else
        tile[i] = gr >= 0 && gr < (int)h && gc >= 0 && gc < (int)w ? image[(size_t)gr * w + gc] : 0.0f;
#endif
    }
#if VARIANT != 2
    BARRIER();
#endif
    float sum = 0.0f;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
#if VARIANT == 6
            sum += weights[dx * 3 + dy] * tile[(ty + dy) * SPAN + tx + dx];
#else
            sum += weights[dy * 3 + dx] * tile[(ty + dy) * SPAN + tx + dx];
#endif
#if VARIANT == 4
    if (r < (int)h && c <= (int)w)
#elif VARIANT == 9
    if (BLOCK_INDEX(y) < h / BY && c < (int)w)
#else
    if (r < (int)h && c < (int)w)
#endif
        result[(size_t)r * w + c] = sum;
}
