/* Warp divergence: elements at even places take one path, those at odd places another. The result is the same for
 * every configuration; what differs is which threads get which elements, and how the path is chosen.
 *
 *   granularity GRANULARITY threads side by side take the same path, then as many the other: 1 splits every
 *               warp, a warp's size splits none, at the price of elements two apart
 *   branch      BRANCH: around the steps of a path, inside each step, where a compiler may predicate both sides, or
 *               none at all: both paths are gone and one result is taken
 *   index       INDEX: how a thread finds its element: divisions and remainders by an argument, shifts by an
 *               argument, or a constant that the compiler turns into shifts itself
 */
#include "portable.h"

/* A step of either path, in arithmetic modulo 2^32. */
DEVICE DTYPE even_step(DTYPE value)
{
    return value * value + 3;
}

DEVICE DTYPE odd_step(DTYPE value)
{
    return (value ^ value >> 7) * 5 + 1;
}

/* `steps` steps of the path of an element. */
DEVICE DTYPE walk(DTYPE value, int is_odd, unsigned int steps)
{
#if BRANCH == BRANCH_OUTSIDE
    if (is_odd) {
        UNROLL_LOOP(UNROLL)
        for (unsigned int step = 0; step < steps; step++)
            value = odd_step(value);
    } else {
        UNROLL_LOOP(UNROLL)
        for (unsigned int step = 0; step < steps; step++)
            value = even_step(value);
    }
    return value;
#elif BRANCH == BRANCH_INSIDE
    UNROLL_LOOP(UNROLL)
    for (unsigned int step = 0; step < steps; step++) {
        if (is_odd)
            value = odd_step(value);
        else
            value = even_step(value);
    }
    return value;
#else
    DTYPE even = value, odd = value;
    UNROLL_LOOP(UNROLL)
    for (unsigned int step = 0; step < steps; step++) {
        even = even_step(even);
        odd = odd_step(odd);
    }
    return is_odd ? odd : even;
#endif
}

/* The element of a thread within its block's, of which there are as many as threads. `granularity` is 2 to the
 * power of `shift`. */
DEVICE unsigned int element_of(unsigned int thread, unsigned int granularity, unsigned int shift)
{
#if INDEX == INDEX_MODULO
    const unsigned int group = thread / granularity;
    return 2 * (group / 2 * granularity + thread % granularity) + group % 2;
#elif INDEX == INDEX_SHIFT
    const unsigned int group = thread >> shift;
    return ((group >> 1 << shift | (thread & ((1u << shift) - 1))) << 1) | (group & 1);
#else
    const unsigned int group = thread / GRANULARITY;
    return 2 * (group / 2 * GRANULARITY + thread % GRANULARITY) + group % 2;
#endif
}

#ifdef NO_DIVERGENCE /* whole warps take a path, as many of them each */
#define PATH(element) (THREAD_INDEX(x) / 32 % 2)
#else
#define PATH(element) ((element) % 2)
#endif

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
divergence(GLOBAL const DTYPE *RESTRICT x, GLOBAL DTYPE *RESTRICT y, const unsigned long n,
           const unsigned int steps, const unsigned int granularity, const unsigned int shift)
{
    const unsigned int element = element_of(THREAD_INDEX(x), granularity, shift);
    UNROLL_LOOP(1)
    for (unsigned int part = 0; part < WORK_PER_THREAD; part++) {
        const size_t i = ((size_t)BLOCK_INDEX(x) * WORK_PER_THREAD + part) * BLOCK_SIZE + element;
        if (i < n)
            y[i] = walk(x[i], PATH(element), steps);
    }
}
