/* Sum of n elements: one source for the whole ladder of reductions, from one atomic per element to a
 * persistent grid of vector loads. Every thread adds up its share of the elements (load phase), the
 * threads of a block combine their values (block phase), and the blocks' sums become one (finish).
 *
 *   load phase    ACCESS, VECTOR_WIDTH, UNROLL, LOAD_STYLE; the size of a share comes with the launch
 *   block phase   ALGORITHM, TREE_MEMORY, TREE, USE_SHUFFLE
 *   finish        FINISH
 *
 * The bottom of the ladder has no phases: one launch for each level of a tree over all elements.
 *
 * ACCESS_OVERLAPPING is a mistake of the literature, for its landmark alone.
 *
 * Indices are 64 bits wide, so memory is the only limit to n. Everything is right for any n >= 1 and any
 * BLOCK_SIZE up to 1024, except that shuffles and the unrolled last warp need blocks of whole warps.
 */
#define WARPS (USE_SHUFFLE || TREE == TREE_LAST_WARP)
#include "portable.h"
#include "variants.h"

typedef VECTOR(DTYPE, VECTOR_WIDTH) vector_t;

#if LOAD_STYLE == LOAD_STYLE_READ_ONLY
#define LOAD(pointer) LOAD_READ_ONLY(pointer)
#elif LOAD_STYLE == LOAD_STYLE_STREAMING
#define LOAD(pointer) LOAD_STREAMING(pointer)
#else
#define LOAD(pointer) (*(pointer))
#endif

/* The memory of the block phase: a shared array, or the first elements of the block's own input. */
#if TREE_MEMORY == TREE_MEMORY_GLOBAL
typedef GLOBAL DTYPE *cells_t;
#else
typedef SHARED_POINTER(DTYPE) cells_t;
#endif

/* ------------------------------------------------------------------------------------- load phase */

/* Sum of up to UNROLL vectors, `step` apart from data[i] on. All loads come before the first addition,
 * so that they are in flight together. `is_full` is a constant at every call: true removes the checks. */
DEVICE vector_t load_batch(GLOBAL const vector_t *data, size_t i, size_t step, size_t end, int is_full)
{
    vector_t batch[UNROLL];
    UNROLL_LOOP(UNROLL)
    for (int k = 0; k < UNROLL; k++) {
        const size_t at = i + k * step;
        batch[k] = is_full || at < end ? LOADED(ANY_VECTOR(DTYPE, VECTOR_WIDTH, data + at), LOAD(data + at))
                                       : VECTOR_ZERO(DTYPE, VECTOR_WIDTH);
    }
    UNROLL_LOOP(UNROLL)
    for (int k = 1; k < UNROLL; k++)
        batch[0] = batch[0] + batch[k];
    return batch[0];
}

/* Sum of this thread's elements; `share` is the number of vectors that a thread reads at most. */
DEVICE DTYPE sum_of_share(GLOBAL const DTYPE *elements, size_t n, size_t share)
{
    GLOBAL const vector_t *data = (GLOBAL const vector_t *)elements;
    const size_t vectors = n / VECTOR_WIDTH;
    const size_t block = BLOCK_INDEX(x), thread = block * BLOCK_SIZE + THREAD_INDEX(x);
    const size_t threads = (size_t)GRID_EXTENT(x) * BLOCK_SIZE;
#if ACCESS == ACCESS_GRID /* neighbours read neighbours, then all of them step over the whole grid */
    const size_t step = threads, limit = vectors;
    size_t i = thread;
#elif ACCESS == ACCESS_BLOCK /* neighbours read neighbours, within a contiguous part for each block */
    const size_t step = BLOCK_SIZE, limit = (block + 1) * BLOCK_SIZE * share;
    size_t i = block * BLOCK_SIZE * share + THREAD_INDEX(x);
#elif ACCESS == ACCESS_OVERLAPPING /* wrong: a block steps as in its own part, but begins where one step of it ends */
    const size_t step = BLOCK_SIZE, limit = thread + BLOCK_SIZE * share;
    size_t i = thread;
#else /* a contiguous part for each thread: for a core that runs the threads of a block in turn */
    const size_t step = 1, limit = (thread + 1) * share;
    size_t i = thread * share;
#endif
    const size_t end = limit < vectors ? limit : vectors;

    vector_t total = VECTOR_ZERO(DTYPE, VECTOR_WIDTH);
    UNROLL_LOOP(1)
    for (; i + (UNROLL - 1) * step < end; i += UNROLL * step)
        total = total + load_batch(data, i, step, end, 1);
    if (UNROLL > 1 && i < end)
        total = total + load_batch(data, i, step, end, 0);

    DTYPE sum = VECTOR_SUM(total, VECTOR_WIDTH);
    if (VECTOR_WIDTH > 1) /* the last elements, too few for a vector */
        for (size_t rest = vectors * VECTOR_WIDTH + thread; rest < n; rest += threads)
            sum += elements[rest];
    return sum;
}

/* Fills twice as many cells as there are threads, which then add the upper half to the lower one: fewer blocks than
 * with a cell for each thread, and nobody idle in the tree's first step. */
DEVICE void load_twice(GLOBAL const DTYPE *elements, size_t n, size_t share, SHARED_POINTER(DTYPE) cells)
{
    const size_t first = BLOCK_INDEX(x) * share * BLOCK_SIZE + THREAD_INDEX(x);
    for (int part = 0; part < 2; part++) {
        DTYPE sum = 0;
        for (size_t k = part; k < share && first + k * BLOCK_SIZE < n; k += 2)
            sum += elements[first + k * BLOCK_SIZE];
        cells[THREAD_INDEX(x) + part * BLOCK_SIZE] = sum;
    }
    BARRIER();
    cells[THREAD_INDEX(x)] += cells[THREAD_INDEX(x) + BLOCK_SIZE];
}

/* ------------------------------------------------------------------------------------ block phase */

/* Sum over the warp, valid in its first thread; every thread of the warp takes part. */
DEVICE DTYPE warp_sum(DTYPE value)
{
    UNROLL_LOOP(WARP_SIZE)
    for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2)
        value += SHUFFLE_DOWN(value, distance);
    return value;
}

/* One pair of a tree. No cell that a step of a tree reads is written by another thread in the same step,
 * so one barrier after each step is enough. The bound makes every BLOCK_SIZE and a partial block right. */
DEVICE void add_pair(cells_t cells, unsigned int cell, unsigned int distance, unsigned int count)
{
    if (cell + distance < count)
        cells[cell] += cells[cell + distance];
}

/* The first distance of a halving tree: the largest power of two below BLOCK_SIZE. */
#define DISTANCE_FROM(distance, below) (BLOCK_SIZE > (distance) ? (distance) : (below))
#define FIRST_DISTANCE                                                                                     \
    DISTANCE_FROM(512, DISTANCE_FROM(256, DISTANCE_FROM(128, DISTANCE_FROM(64, DISTANCE_FROM(32,           \
    DISTANCE_FROM(16, DISTANCE_FROM(8, DISTANCE_FROM(4, DISTANCE_FROM(2, DISTANCE_FROM(1, 0))))))))))

/* How much of a halving tree is written out (ten steps are all there can be), and where its last warp
 * takes over. One that is written out for every block size asks at each step whether the block is so large. */
#ifndef TREE_RUN_TIME /* results of a space that has no such tree */
#define TREE_RUN_TIME -1
#endif
#if TREE == TREE_RUN_TIME
#define FIRST_STEP 512
#define IS_STEP(distance) (BLOCK_EXTENT(x) > (distance))
#else
#define FIRST_STEP FIRST_DISTANCE
#define IS_STEP(distance) 1
#endif
#define TREE_STEPS_UNROLLED (TREE == TREE_COMPLETE || TREE == TREE_RUN_TIME ? 10 : 1)
#define LAST_DISTANCE (TREE == TREE_LOOP ? 0 : WARP_SIZE)

/* The end of a halving tree, within one warp. It needs no block barrier but does need the warp's: since
 * compute capability 7.0 the threads of a warp do not run in lockstep. */
DEVICE void add_cells_of_last_warp(cells_t cells, unsigned int count)
{
    const unsigned int thread = THREAD_INDEX(x);
    add_pair(cells, thread, WARP_SIZE, count);
    if (USE_SHUFFLE) {
        const DTYPE sum = warp_sum(thread < count ? cells[thread] : 0);
        if (thread == 0)
            cells[0] = sum;
        return;
    }
    WARP_BARRIER();
    UNROLL_LOOP(WARP_SIZE)
    for (unsigned int distance = WARP_SIZE / 2; distance > 0; distance /= 2) {
        if (thread < distance)
            add_pair(cells, thread, distance, count);
        WARP_BARRIER();
    }
}

/* A tree in one of three orders; the sum of cells[0 .. count) ends in cells[0], for thread 0 to read. */
DEVICE void add_cells(cells_t cells, unsigned int count)
{
    const unsigned int thread = THREAD_INDEX(x);
#if ALGORITHM == ALGORITHM_NEIGHBORED /* working threads ever further apart: no warp retires, all diverge */
    UNROLL_LOOP(1)
    for (unsigned int distance = 1; distance < BLOCK_SIZE; distance *= 2) {
#ifdef NO_DIVERGENCE /* as many pairs by the first threads, whichever cells they are */
        if (2 * distance * thread < BLOCK_SIZE)
            add_pair(cells, thread, distance, count);
#else
        if (thread % (2 * distance) == 0)
            add_pair(cells, thread, distance, count);
#endif
        BARRIER();
    }
#elif ALGORITHM == ALGORITHM_COMPACT /* the same pairs by the first threads; cells share memory banks */
    UNROLL_LOOP(1)
    for (unsigned int distance = 1; distance < BLOCK_SIZE; distance *= 2) {
#ifdef NO_BANK_CONFLICTS /* as many pairs of neighbouring cells */
        if (2 * distance * thread + distance < count)
            cells[thread] += cells[thread + distance];
#else
        add_pair(cells, 2 * distance * thread, distance, count);
#endif
        BARRIER();
    }
#else /* interleaved: the distance halves, whole warps retire, neighbours work on neighbours */
    UNROLL_LOOP(TREE_STEPS_UNROLLED)
    for (unsigned int distance = FIRST_STEP; distance > LAST_DISTANCE; distance /= 2) {
        if (IS_STEP(distance) && thread < distance)
            add_pair(cells, thread, distance, count);
        BARRIER();
    }
    if (TREE != TREE_LOOP && thread < WARP_SIZE)
        add_cells_of_last_warp(cells, count);
#endif
}

/* What a thread hands to an atomic: its own value, or the warp's in the warp's first thread only. */
DEVICE DTYPE contribution(DTYPE value)
{
    return USE_SHUFFLE ? warp_sum(value) : value;
}

DEVICE int contributes(void)
{
    return !USE_SHUFFLE || THREAD_INDEX(x) % WARP_SIZE == 0;
}

/* Sum of the block's values, valid in thread 0 only. A tree has `count` cells, fewer than BLOCK_SIZE at the
 * end of the input only; `is_filled` says that they hold the values already. */
DEVICE DTYPE block_sum(DTYPE value, cells_t cells, unsigned int count, int is_filled)
{
    const unsigned int thread = THREAD_INDEX(x);
#if ALGORITHM == ALGORITHM_BLOCK_ATOMIC
    if (thread == 0)
        cells[0] = 0;
    BARRIER();
    value = contribution(value);
    if (contributes())
        ATOMIC_ADD(&cells[0], value);
    BARRIER();
    return cells[0];
#elif ALGORITHM == ALGORITHM_SHUFFLE /* one value per warp, which the first warp adds */
    value = warp_sum(value);
    if (thread % WARP_SIZE == 0)
        cells[thread / WARP_SIZE] = value;
    BARRIER();
    return thread < WARP_SIZE ? warp_sum(thread < BLOCK_SIZE / WARP_SIZE ? cells[thread] : 0) : 0;
#else
    if (!is_filled && thread < count)
        cells[thread] = value;
    BARRIER();
    add_cells(cells, count);
    return thread == 0 ? cells[0] : 0;
#endif
}

/* ----------------------------------------------------------------------------------------- finish */

/* Leaves the block's sum for the last block. True in the block that is the last of the grid to do so: the
 * fences make the sums of all the others visible to it. */
DEVICE int is_last_to_leave(DTYPE value, GLOBAL DTYPE *partials, GLOBAL unsigned int *ticket)
{
    partials[BLOCK_INDEX(x)] = value;
    MEMORY_FENCE();
    const int is_last = ATOMIC_ADD(ticket, 1u) == GRID_EXTENT(x) - 1;
    MEMORY_FENCE();
    return is_last;
}

/* Sum of this thread's part of all partial sums. */
DEVICE DTYPE sum_of_partials(GLOBAL volatile DTYPE *partials)
{
    DTYPE sum = 0;
    for (unsigned int i = THREAD_INDEX(x); i < GRID_EXTENT(x); i += BLOCK_SIZE)
        sum += partials[i];
    return sum;
}

/* The kernel. When FINISH is a launch of its own, `partials` gets one sum per block; reduce is then launched
 * again on these, with the result in the place of `partials`. `ticket` is 0 before and after a launch. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
reduce(GLOBAL DTYPE *elements, const unsigned long n, const unsigned long share, GLOBAL DTYPE *partials,
       GLOBAL DTYPE *sum, GLOBAL unsigned int *ticket)
{
    const unsigned int thread = THREAD_INDEX(x);
    DTYPE value = sum_of_share(elements, n, share);
#ifdef MEMORY_ONLY /* nothing but the loads, which a sum has to use */
    if (value == -123456789)
        *sum = value;
    return;
#endif

#if ALGORITHM == ALGORITHM_GLOBAL_ATOMIC
    value = contribution(value);
    if (contributes())
        ATOMIC_ADD(sum, value);
#else

#if TREE_MEMORY == TREE_MEMORY_GLOBAL /* on the first elements of the block's part, their sums or themselves */
    const size_t first = BLOCK_INDEX(x) * share * BLOCK_SIZE;
    const unsigned int count = n - first < BLOCK_SIZE ? n - first : BLOCK_SIZE;
    value = block_sum(value, elements + first, count, share == 1);
#elif ALGORITHM == ALGORITHM_DOUBLE_LOAD
    SHARED DTYPE cells[2 * BLOCK_SIZE];
    load_twice(elements, n, share, cells); /* in the place of sum_of_share, of which the compiler leaves nothing */
    value = block_sum(0, cells, BLOCK_SIZE, 1);
#else
    SHARED DTYPE cells[BLOCK_SIZE];
    value = block_sum(value, cells, BLOCK_SIZE, 0);
#endif

#if FINISH == FINISH_LAST_BLOCK
    SHARED int is_last;
    if (thread == 0)
        is_last = is_last_to_leave(value, partials, ticket);
    BARRIER();
    if (is_last) {
        value = block_sum(sum_of_partials(partials), cells, BLOCK_SIZE, 0);
        if (thread == 0) {
            *sum = value;
            *ticket = 0;
        }
    }
#elif FINISH == FINISH_ATOMIC
    if (thread == 0)
        ATOMIC_ADD(sum, value);
#else
    if (thread == 0)
        partials[BLOCK_INDEX(x)] = value;
#endif
#endif
}

#if FINISH == FINISH_ATOMIC
/* Goes first: the result starts from nothing. */
KERNEL KERNEL_BLOCK(1, 1, 1)
clear(GLOBAL DTYPE *sum)
{
    *sum = 0;
}
#elif FINISH == FINISH_SERIAL
/* Goes last: one thread adds the partial sums in their order. */
KERNEL KERNEL_BLOCK(1, 1, 1)
add_partials(GLOBAL const DTYPE *partials, const unsigned long count, GLOBAL DTYPE *sum)
{
    DTYPE value = 0;
    for (size_t i = 0; i < count; i++)
        value += partials[i];
    *sum = value;
}
#endif

#if ALGORITHM == ALGORITHM_NAIVE
KERNEL KERNEL_BLOCK(1, 1, 1)
begin(GLOBAL unsigned int *level)
{
    *level = 0;
}

/* One level of a tree over all elements: of those that are left, every other one adds its right neighbour. A launch
 * leaves the number of the next level for the one after it. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
add_neighbours(GLOBAL DTYPE *elements, const unsigned long n, GLOBAL const unsigned int *level,
               GLOBAL unsigned int *next_level)
{
    const size_t distance = (size_t)1 << *level, threads = (size_t)GRID_EXTENT(x) * BLOCK_SIZE;
    const size_t thread = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
    if (thread == 0)
        *next_level = *level + 1;
    for (size_t i = 2 * distance * thread; i + distance < n; i += 2 * distance * threads)
        elements[i] += elements[i + distance];
}
#endif
