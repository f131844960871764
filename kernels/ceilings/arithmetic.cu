/* Multiplies and adds as fast as it goes: `steps` times in each thread, in CHAINS independent chains.
 *
 * The numbers stay as they are, because `factor` is 1 and `term` is 0, which no compiler can know.
 */
#include "portable.h"

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
multiply_add(GLOBAL const DTYPE *RESTRICT start, GLOBAL DTYPE *RESTRICT result, const DTYPE factor,
             const DTYPE term, const unsigned int steps)
{
    DTYPE chain[CHAINS];
    UNROLL_LOOP(CHAINS)
    for (int k = 0; k < CHAINS; k++)
        chain[k] = start[k];
    UNROLL_LOOP(16)
    for (unsigned int step = 0; step < steps / CHAINS; step++) {
        UNROLL_LOOP(CHAINS)
        for (int k = 0; k < CHAINS; k++)
            chain[k] = chain[k] * factor + term;
    }
    int unchanged = 1;
    UNROLL_LOOP(CHAINS)
    for (int k = 0; k < CHAINS; k++)
        unchanged &= chain[k] == start[k];
    result[(size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x)] = unchanged ? chain[0] : (DTYPE)-1;
}
