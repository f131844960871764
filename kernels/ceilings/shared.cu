/* Reads shared memory as fast as it goes: neighbouring threads read words `stride` apart.
 *
 * A stride of 1 has no bank conflicts. A stride of 32 puts all words of a warp into one of 32 banks.
 */
#include "portable.h"

#define WORDS 4096 /* a power of two */
#define READS 16   /* of a thread in one round, each of another word */

KERNEL
read_shared(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned int stride,
            const unsigned int rounds)
{
    SHARED volatile int words[WORDS + READS]; /* volatile: every round reads them anew */
    for (unsigned int i = THREAD_INDEX(x); i < WORDS + READS; i += BLOCK_EXTENT(x))
        words[i] = numbers[i];
    BARRIER();
    const unsigned int first = THREAD_INDEX(x) * stride % WORDS;
    int sum = 0;
    UNROLL_LOOP(UNROLL)
    for (unsigned int round = 0; round < rounds; round++) {
        UNROLL_LOOP(READS)
        for (int k = 0; k < READS; k++)
            sum += words[first + k];
    }
    result[(size_t)BLOCK_INDEX(x) * BLOCK_EXTENT(x) + THREAD_INDEX(x)] = sum;
}
