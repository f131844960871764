/* Sum of two matrices: what there is to learn is how threads are laid out over memory.
 *
 *   block       BLOCK_X threads side by side along a row, BLOCK_Y of them below each other
 *   thread      WORK_X times WORK_Y vectors of VECTOR_WIDTH elements, a block's width and height apart
 *   accesses    LOAD_STYLE, STORE_STYLE
 *
 * Right for any number of rows and columns: a block at the edge, and every block of matrices whose rows do not
 * start at multiples of a vector, moves element by element.
 */
#include "portable.h"
#include "variants.h"

typedef VECTOR(DTYPE, VECTOR_WIDTH) vector_t;

#include "matrix.h"

#if LOAD_STYLE == LOAD_STYLE_STREAMING
#define LOAD(pointer) LOAD_STREAMING(pointer)
#else
#define LOAD(pointer) (*(pointer))
#endif

#if STORE_STYLE == STORE_STYLE_STREAMING
#define STORE(pointer, value) STORE_STREAMING(pointer, value)
#else
#define STORE(pointer, value) (*(pointer) = (value))
#endif

#define WIDTH (BLOCK_X * VECTOR_WIDTH) /* elements between two vectors of a thread in a row */

/* A thread's share of a whole part of the matrices. All loads come before the first addition, so that they are in
 * flight together. */
DEVICE void add_vectors(GLOBAL const DTYPE *a, GLOBAL const DTYPE *b, GLOBAL DTYPE *c, size_t columns)
{
    vector_t left[WORK_Y][WORK_X], right[WORK_Y][WORK_X];
    UNROLL_LOOP(WORK_Y)
    for (int y = 0; y < WORK_Y; y++)
        UNROLL_LOOP(WORK_X)
        for (int x = 0; x < WORK_X; x++) {
            GLOBAL const vector_t *of_a = (GLOBAL const vector_t *)(a + y * BLOCK_Y * columns + x * WIDTH);
            GLOBAL const vector_t *of_b = (GLOBAL const vector_t *)(b + y * BLOCK_Y * columns + x * WIDTH);
            left[y][x] = LOADED(ANY_VECTOR(DTYPE, VECTOR_WIDTH, of_a), LOAD(of_a));
            right[y][x] = LOADED(ANY_VECTOR(DTYPE, VECTOR_WIDTH, of_b), LOAD(of_b));
        }
    UNROLL_LOOP(WORK_Y)
    for (int y = 0; y < WORK_Y; y++)
        UNROLL_LOOP(WORK_X)
        for (int x = 0; x < WORK_X; x++)
            if (IS_STORED(VECTOR_SUM(left[y][x] + right[y][x], VECTOR_WIDTH), -123456789))
                STORE((GLOBAL vector_t *)(c + y * BLOCK_Y * columns + x * WIDTH), left[y][x] + right[y][x]);
}

KERNEL KERNEL_BLOCK(BLOCK_X, BLOCK_Y, 1)
matadd(GLOBAL const DTYPE *RESTRICT a, GLOBAL const DTYPE *RESTRICT b, GLOBAL DTYPE *RESTRICT c,
       const unsigned long rows, const unsigned long columns)
{
    const size_t first_row = (size_t)BLOCK_INDEX(y) * (BLOCK_Y * WORK_Y);
    const size_t first_column = (size_t)BLOCK_INDEX(x) * (WIDTH * WORK_X);
    const size_t row = first_row + THREAD_INDEX(y), column = first_column + THREAD_INDEX(x) * VECTOR_WIDTH;
    if (first_row + BLOCK_Y * WORK_Y <= rows && first_column + WIDTH * WORK_X <= columns &&
        columns % VECTOR_WIDTH == 0) {
        size_t start = row * columns + column, pitch = columns;
#ifdef COALESCED /* the block's elements one after the other, wherever they belong */
        if (rows % (BLOCK_Y * WORK_Y) == 0 && columns % (WIDTH * WORK_X) == 0) {
            const size_t block = (size_t)BLOCK_INDEX(y) * GRID_EXTENT(x) + BLOCK_INDEX(x);
            pitch = WIDTH * WORK_X;
            start = (block * (BLOCK_Y * WORK_Y) + THREAD_INDEX(y)) * pitch + THREAD_INDEX(x) * VECTOR_WIDTH;
        }
#endif
        add_vectors(a + start, b + start, c + start, pitch);
        return;
    }
    for (int y = 0; y < WORK_Y; y++)
        for (int x = 0; x < WORK_X; x++) {
            const size_t i = row + y * BLOCK_Y, j = column + x * WIDTH;
            const vector_t sum = read_at_edge(a, i, j, rows, columns) + read_at_edge(b, i, j, rows, columns);
            write_at_edge(c, i, j, rows, columns, sum);
        }
}
