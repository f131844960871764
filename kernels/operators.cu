/* n elements reduced by an operator: all that it has to be is associative and commutative. Every block reduces what a
 * sweep of the grid gives it, and one more block the blocks' results.
 *
 *   OPERATOR    sum, product, minimum or maximum; of integers, so that no order of the operations shows
 *   BLOCK_SIZE  a power of two
 */
#include "portable.h"

#if OPERATOR == OPERATOR_SUM
#define COMBINED(a, b) ((a) + (b))
#define NEUTRAL 0
#elif OPERATOR == OPERATOR_PRODUCT
#define COMBINED(a, b) ((a) * (b))
#define NEUTRAL 1
#elif OPERATOR == OPERATOR_MINIMUM
#define COMBINED(a, b) min(a, b)
#define NEUTRAL 0xffffffffu
#else
#define COMBINED(a, b) max(a, b)
#define NEUTRAL 0u
#endif

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
operators(GLOBAL const DTYPE *RESTRICT elements, const unsigned long n, GLOBAL DTYPE *RESTRICT results)
{
    SHARED DTYPE cells[BLOCK_SIZE];
    const unsigned int thread = THREAD_INDEX(x);
    DTYPE value = NEUTRAL;
    UNROLL_LOOP(UNROLL)
    for (size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + thread; i < n; i += (size_t)GRID_EXTENT(x) * BLOCK_SIZE)
        value = COMBINED(value, elements[i]);
    cells[thread] = value;
    BARRIER();
    for (unsigned int distance = BLOCK_SIZE / 2; distance > 0; distance /= 2) {
        if (thread < distance)
            cells[thread] = COMBINED(cells[thread], cells[thread + distance]);
        BARRIER();
    }
    if (thread == 0)
        results[BLOCK_INDEX(x)] = cells[0];
}
