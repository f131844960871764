#include "portable.h"

/* result = a * x + y; every thread computes WORK_PER_THREAD elements. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
axpy(GLOBAL const float *RESTRICT x, GLOBAL const float *RESTRICT y, GLOBAL float *RESTRICT result,
     const float a, const unsigned int n)
{
    const unsigned int block = BLOCK_INDEX(x) * BLOCK_SIZE * WORK_PER_THREAD;
#if ORDER == ORDER_INTERLEAVED /* neighbouring threads work on neighbouring elements */
    const unsigned int first = block + THREAD_INDEX(x), step = BLOCK_SIZE;
#else /* every thread has elements of its own, one after the other */
    const unsigned int first = block + THREAD_INDEX(x) * WORK_PER_THREAD, step = 1;
#endif
    UNROLL_LOOP(WORK_PER_THREAD)
    for (unsigned int k = 0; k < WORK_PER_THREAD; k++) {
        const unsigned int i = first + k * step;
        if (i < n)
            result[i] = a * x[i] + y[i];
    }
}
