/* Moves memory as fast as it goes: reads it, writes it or copies it, `passes` times over.
 *
 * Blocks stride over the array together. A thread has UNROLL accesses of VECTOR_WIDTH numbers in flight. An
 * array that fits in a cache stays there from the second pass on.
 */
#include "portable.h"

typedef VECTOR(int, VECTOR_WIDTH) vector_t;

/* `n` is a multiple of BLOCK_SIZE * UNROLL * VECTOR_WIDTH. In each pass a block has another part of the array, so
 * that it does not find it in a cache of its own. */
#define EACH_VECTOR(n, pass)                                                                    \
    for (size_t first = (size_t)((BLOCK_INDEX(x) + (pass) * 61) % GRID_EXTENT(x)) * (BLOCK_SIZE * UNROLL) + \
                        THREAD_INDEX(x);                                                        \
         first < (n) / VECTOR_WIDTH; first += (size_t)GRID_EXTENT(x) * (BLOCK_SIZE * UNROLL))

DEVICE void load(vector_t *found, GLOBAL const vector_t *source)
{
    UNROLL_LOOP(UNROLL)
    for (int k = 0; k < UNROLL; k++)
        found[k] = source[k * BLOCK_SIZE];
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
read_memory(GLOBAL const int *RESTRICT numbers, GLOBAL int *total, const unsigned long n,
            const unsigned int passes)
{
    SHARED int block_total;
    GLOBAL const vector_t *source = (GLOBAL const vector_t *)numbers;
    vector_t sums = VECTOR_ZERO(int, VECTOR_WIDTH);
    for (unsigned int pass = 0; pass < passes; pass++)
        EACH_VECTOR(n, pass) {
            vector_t found[UNROLL];
            load(found, source + first);
            UNROLL_LOOP(UNROLL)
            for (int k = 0; k < UNROLL; k++)
                sums = sums + found[k];
        }
    if (THREAD_INDEX(x) == 0)
        block_total = 0;
    BARRIER();
    ATOMIC_ADD(&block_total, VECTOR_SUM(sums, VECTOR_WIDTH));
    BARRIER();
    if (THREAD_INDEX(x) == 0)
        ATOMIC_ADD(total, block_total);
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
write_memory(GLOBAL int *RESTRICT result, const unsigned long n, const unsigned int passes)
{
    GLOBAL vector_t *target = (GLOBAL vector_t *)result;
    for (unsigned int pass = 1; pass <= passes; pass++)
        EACH_VECTOR(n, 0) { /* a block writes its own part: nothing orders the passes of several blocks */
            UNROLL_LOOP(UNROLL)
            for (int k = 0; k < UNROLL; k++)
                target[first + k * BLOCK_SIZE] = VECTOR_FILL(int, VECTOR_WIDTH, (int)pass);
        }
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
copy_memory(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned long n,
            const unsigned int passes)
{
    GLOBAL const vector_t *source = (GLOBAL const vector_t *)numbers;
    GLOBAL vector_t *target = (GLOBAL vector_t *)result;
    for (unsigned int pass = 0; pass < passes; pass++)
        EACH_VECTOR(n, pass) {
            vector_t found[UNROLL];
            load(found, source + first);
            UNROLL_LOOP(UNROLL)
            for (int k = 0; k < UNROLL; k++)
                target[first + k * BLOCK_SIZE] = found[k];
        }
}
