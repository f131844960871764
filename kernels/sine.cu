/* Sine and cosine of n angles of any magnitude. Where an angle is large, the library's functions leave their
 * short path for one that reduces the angle with hundreds of bits of pi (in the single precision of CUDA
 * 13 above 105615); METHOD reduces the angle itself first, in double precision. BLOCK_SIZE and
 * ANGLES_PER_THREAD shape the launch.
 */
#include "portable.h"
#include "variants.h"

#define STORE(target, value)         \
    if (IS_STORED(value, 0.123456f)) \
    target = value

/* The angle less whole turns, within +-pi: exact enough for angles up to 2^24. */
DEVICE float reduced(float angle)
{
    const double turn = 6.283185307179586;
    return (float)(angle - turn * rint(angle * (1 / turn)));
}

/* Sine and cosine of scale * x[i]; the product is rounded once. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
sine(GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT sines, GLOBAL float *RESTRICT cosines, const float scale,
     const unsigned long n)
{
    const size_t start = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE * ANGLES_PER_THREAD + THREAD_INDEX(x);
    UNROLL_LOOP(ANGLES_PER_THREAD)
    for (int k = 0; k < ANGLES_PER_THREAD; k++) {
        const size_t i = start + k * BLOCK_SIZE;
        if (i < n) {
            const float angle = scale * LOADED((float)(i & 1023) / 512 - 1, x[i]);
#ifdef MEMORY_ONLY
            sines[i] = angle;
            cosines[i] = angle;
#elif METHOD == METHOD_DIRECT
            STORE(sines[i], sin(angle));
            STORE(cosines[i], cos(angle));
#elif METHOD == METHOD_REDUCED
            STORE(sines[i], sin(reduced(angle)));
            STORE(cosines[i], cos(reduced(angle)));
#else /* reduced, and the hardware's functions */
            STORE(sines[i], FAST_SINE(reduced(angle)));
            STORE(cosines[i], FAST_COSINE(reduced(angle)));
#endif
        }
    }
}
