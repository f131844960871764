/* n elements reduced by an operator: all that it has to be is associative and commutative. Every block reduces what a
 * sweep of the grid gives it, and one more block the blocks' results.
 *
 *   OPERATOR    sum, product, minimum, maximum, and, or, exclusive or; of integers, so that no order of the operations
 *               shows
 *   FINISH      the blocks' results by one more block, or by an atomic of each; a product has none of its own, and
 *               compares and swaps
 *   BLOCK_SIZE  a power of two
 */
#include "portable.h"
#include "portable_reduce.h"

#if OPERATOR == OPERATOR_SUM
#define COMBINED(a, b) ((a) + (b))
#define NEUTRAL 0u
#define COMBINE ATOMIC_ADD
#elif OPERATOR == OPERATOR_PRODUCT
#define COMBINED(a, b) ((a) * (b))
#define NEUTRAL 1u
#define COMBINE multiply
DEVICE void multiply(GLOBAL unsigned int *target, unsigned int value)
{
    unsigned int found = NEUTRAL, expected = 0;
    while (found != expected) {
        expected = found;
        found = ATOMIC_COMPARE_SWAP(target, expected, expected * value);
    }
}
#elif OPERATOR == OPERATOR_MINIMUM
#define COMBINED(a, b) min(a, b)
#define NEUTRAL 0xffffffffu
#define COMBINE ATOMIC_MIN
#elif OPERATOR == OPERATOR_MAXIMUM
#define COMBINED(a, b) max(a, b)
#define NEUTRAL 0u
#define COMBINE ATOMIC_MAX
#elif OPERATOR == OPERATOR_AND
#define COMBINED(a, b) ((a) & (b))
#define NEUTRAL 0xffffffffu
#define COMBINE ATOMIC_AND
#elif OPERATOR == OPERATOR_OR
#define COMBINED(a, b) ((a) | (b))
#define NEUTRAL 0u
#define COMBINE ATOMIC_OR
#else
#define COMBINED(a, b) ((a) ^ (b))
#define NEUTRAL 0u
#define COMBINE ATOMIC_XOR
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
    if (thread == 0) {
#if FINISH == FINISH_ATOMIC
        COMBINE(results, cells[0]);
#else
        results[BLOCK_INDEX(x)] = cells[0];
#endif
    }
}

#if FINISH == FINISH_ATOMIC
/* Goes first. */
KERNEL KERNEL_BLOCK(1, 1, 1)
begin(GLOBAL DTYPE *result)
{
    *result = NEUTRAL;
}
#endif
