/* A histogram: how often each of the numbers below `bins` occurs among n of them.
 *
 *   PRIVATE   nothing: every element is an atomic on the result. static and dynamic: a block counts in shared memory,
 *             whose size is a constant or comes with the launch, and then adds what it counted to the result
 *   COPIES    histograms of a block, dealt out to its warps, which then meet less often
 *   COUNT_BY  the atomic that counts; all of them can
 */
#include "portable.h"
#include "portable_reduce.h"

#define MOST_BINS 256 /* of an array with a constant size */

/* One more in a cell, modulo 2^32; for `decrement` one less. */
#if COUNT_BY == COUNT_BY_ADD
#define COUNT(cell) ATOMIC_ADD(cell, 1u)
#elif COUNT_BY == COUNT_BY_INCREMENT
#define COUNT(cell) ATOMIC_INC(cell)
#elif COUNT_BY == COUNT_BY_SUBTRACT
#define COUNT(cell) ATOMIC_SUB(cell, 0xffffffffu)
#elif COUNT_BY == COUNT_BY_DECREMENT
#define COUNT(cell) ATOMIC_DEC(cell)
#elif COUNT_BY == COUNT_BY_EXCHANGE /* takes what is there and puts back one more, until nothing came between */
#define COUNT(cell)                                                                                        \
    for (unsigned int held = 1; held > 0; held = ATOMIC_EXCHANGE(cell, held))                              \
        held += ATOMIC_EXCHANGE(cell, 0u)
#else /* compare and swap: puts one more there if nothing came between; the first guess is that it was empty */
#define COUNT(cell)                                                                                        \
    for (unsigned int found = 0, expected = 1; found != expected;) {                                       \
        expected = found;                                                                                  \
        found = ATOMIC_COMPARE_SWAP(cell, expected, expected + 1);                                         \
    }
#endif

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
bin_counts(GLOBAL const unsigned int *RESTRICT values, const unsigned long n, const unsigned int bins,
           GLOBAL unsigned int *counts)
{
    const unsigned int thread = THREAD_INDEX(x);
    const size_t step = (size_t)GRID_EXTENT(x) * BLOCK_SIZE;
#if PRIVATE == PRIVATE_NOTHING
    GLOBAL unsigned int *own = counts;
#else
#if PRIVATE == PRIVATE_STATIC
    SHARED unsigned int cells[MOST_BINS * COPIES];
#else
    SHARED_DYNAMIC(unsigned int, cells, MOST_BINS * COPIES);
#endif
    for (unsigned int k = thread; k < bins * COPIES; k += BLOCK_SIZE)
        cells[k] = 0;
    BARRIER();
    SHARED_POINTER(unsigned int) own = cells + thread / 32 % COPIES * bins;
#endif

    UNROLL_LOOP(UNROLL)
    for (size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + thread; i < n; i += step) {
        const unsigned int bin = values[i];
        COUNT(own + bin);
    }

#if PRIVATE != PRIVATE_NOTHING
    BARRIER();
    for (unsigned int bin = thread; bin < bins; bin += BLOCK_SIZE) {
        unsigned int count = 0;
        for (unsigned int copy = 0; copy < COPIES; copy++)
            count += cells[copy * bins + bin];
        if (count > 0)
            ATOMIC_ADD(&counts[bin], COUNT_BY == COUNT_BY_DECREMENT ? 0u - count : count);
    }
#endif
}

/* Goes first: the result starts from nothing. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
clear(GLOBAL unsigned int *counts, const unsigned int bins)
{
    const unsigned int bin = BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
    if (bin < bins)
        counts[bin] = 0;
}
