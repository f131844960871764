/* Sine and cosine of n angles by three ways through the library, and how much an angle's magnitude costs: where
 * angles are large, the library leaves its short path for one with a table of digits of pi in local memory. Small
 * and large angles come in two arrays that differ by whole turns, so that both have the same results.
 *
 *   METHOD   two functions, both at once, or the tangent of half the angle
 */
#include "portable.h"

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
angles(GLOBAL const DTYPE *RESTRICT x, GLOBAL DTYPE *RESTRICT sines, GLOBAL DTYPE *RESTRICT cosines,
       const unsigned long n)
{
    const size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
    if (i >= n)
        return;
    const DTYPE angle = x[i];
#if METHOD == METHOD_SEPARATE
    sines[i] = sin(angle);
    cosines[i] = cos(angle);
#elif METHOD == METHOD_TOGETHER
    DTYPE sine, cosine;
    SINE_COSINE(angle, sine, cosine);
    sines[i] = sine;
    cosines[i] = cosine;
#else
    const DTYPE tangent = tan(angle / 2), square = tangent * tangent;
    sines[i] = 2 * tangent / (1 + square);
    cosines[i] = (1 - square) / (1 + square);
#endif
}
