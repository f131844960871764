/* One thread follows a chain through memory, so that every load waits for the one before it. */
#include "portable.h"

KERNEL KERNEL_BLOCK(1, 1, 1)
follow(GLOBAL const unsigned int *RESTRICT next, GLOBAL unsigned int *RESTRICT last, const unsigned int steps)
{
    unsigned int at = 0;
    UNROLL_LOOP(UNROLL)
    for (unsigned int step = 0; step < steps; step++)
        at = next[at];
    *last = at;
}
