/* Adds to counters in global memory as fast as it goes; neighbouring threads add to neighbouring counters. */
#include "portable.h"

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
count(GLOBAL int *counters, const unsigned int spread, const unsigned int rounds)
{
    const unsigned int thread = BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
    for (unsigned int round = 0; round < rounds; round++)
        ATOMIC_ADD(&counters[thread % spread], 1);
}
