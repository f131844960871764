/* q = A p and s = A' r, the two products of a step of the biconjugate gradient method: one kernel that reads A
 * once, or two that read it once each.
 *
 * A block goes over ROWS_PER_BLOCK rows of a panel of columns, BLOCK_Y * BATCH rows at a time. Each of its
 * threads has VECTORS vectors of a row; it keeps the sums of its columns for s in registers all the way, and has
 * in every row a part of a sum for q, which the threads side by side add up. What blocks share, sums of rows
 * between panels and sums of columns between parts of the rows, is added in the end.
 *
 *   plan        FUSED: the entry bicgk, or row_products and column_products
 *   block       BLOCK_X, BLOCK_Y, ROWS_PER_BLOCK, VECTORS, VECTOR_WIDTH, BATCH; LOAD_STYLE
 *   operands    P_MEMORY, R_MEMORY: where p and r wait to be used
 *   sums        ROW_SUMS, COLUMN_SUMS within a block, FINISH between blocks
 *
 * Everything is right for any number of rows and columns: a block at the edge, and every block of a matrix whose
 * rows do not start at multiples of a vector, loads element by element.
 */
#define WARPS (ROW_SUMS == ROW_SUMS_SHUFFLE)
#include "portable.h"

typedef VECTOR(DTYPE, VECTOR_WIDTH) vector_t;
typedef SHARED_POINTER(DTYPE) cells_t;

#include "matrix.h"

#if LOAD_STYLE == LOAD_STYLE_STREAMING
#define LOAD(pointer) LOAD_STREAMING(pointer)
#else
#define LOAD(pointer) (*(pointer))
#endif

#define THREADS (BLOCK_X * BLOCK_Y)
#define THREAD (THREAD_INDEX(y) * BLOCK_X + THREAD_INDEX(x))
#define PANEL (BLOCK_X * VECTORS * VECTOR_WIDTH) /* columns of a block */
#define STEP (BLOCK_Y * BATCH)                   /* rows it loads at once */

/* The b-th row of this thread among those of a step, and the first column of its c-th vector in the panel. */
#define LINE(b) (THREAD_INDEX(y) + (b) * BLOCK_Y)
#define START(c) ((THREAD_INDEX(x) + (c) * BLOCK_X) * VECTOR_WIDTH)

/* ------------------------------------------------------------------------------------ shared memory */

/* In how many parts the sum of a row is at the end of a step: for each of them the block has a cell. */
#if ROW_SUMS == ROW_SUMS_SHUFFLE
#define PARTS (BLOCK_X / WARP_SIZE)
#define STEP_CELLS 0
#elif ROW_SUMS == ROW_SUMS_SHARED_TREE
#define PARTS 1
#define STEP_CELLS (STEP * BLOCK_X)
#elif ROW_SUMS == ROW_SUMS_SHARED_MATRIX
#define PARTS (THREADS / STEP)
#define PITCH (PANEL + 1) /* the threads of a warp read down a column: one cell more, and each has its bank */
#define STEP_CELLS (STEP * PITCH)
#else /* atomics: none stay in the block */
#define PARTS 0
#define STEP_CELLS 0
#endif

#define P_CELLS (P_MEMORY == P_MEMORY_SHARED ? PANEL : 0)
#define ROW_CELLS (PARTS * ROWS_PER_BLOCK)
#define R_CELLS (R_MEMORY == R_MEMORY_SHARED ? ROWS_PER_BLOCK : 0)
#define COLUMN_CELLS (BLOCK_Y > 1 && COLUMN_SUMS == COLUMN_SUMS_SHARED ? PANEL : 0)

/* What a kernel declares for q, for s, or for both, in vectors, so that p can be read in vectors. */
#define CELLS_FOR_Q (P_CELLS + ROW_CELLS + STEP_CELLS)
#define CELLS_FOR_S (R_CELLS + COLUMN_CELLS)
#define SHARED_VECTORS(cells) ((cells) / VECTOR_WIDTH + 1)

/* ------------------------------------------------------------------------------------------ loading */

/* This thread's share of a step; all loads come before the first of them is used, so that they are in flight
 * together. `is_whole` is a constant at every call: true removes the checks. */
DEVICE void load_step(vector_t batch[BATCH][VECTORS], GLOBAL const DTYPE *matrix, size_t row, size_t column,
                      size_t rows, size_t columns, int is_whole)
{
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++)
        UNROLL_LOOP(VECTORS)
        for (int c = 0; c < VECTORS; c++) {
            const size_t line = row + LINE(b), start = column + START(c);
            batch[b][c] = is_whole ? LOAD((GLOBAL const vector_t *)(matrix + line * columns + start))
                                   : read_at_edge(matrix, line, start, rows, columns);
        }
}

/* This thread's vectors of p, from global memory. */
DEVICE void load_p(vector_t held[VECTORS], GLOBAL const DTYPE *p, size_t column, size_t columns, int is_whole)
{
    UNROLL_LOOP(VECTORS)
    for (int c = 0; c < VECTORS; c++) {
        const size_t start = column + START(c);
        held[c] = is_whole ? *(GLOBAL const vector_t *)(p + start) : read_at_edge(p, 0, start, 1, columns);
    }
}

/* The elements of r for this thread's rows in a step; `cells` has those of the block's rows. */
DEVICE void take_r(DTYPE factors[BATCH], SHARED_POINTER(const DTYPE) cells, GLOBAL const DTYPE *r, size_t row,
                   size_t rows)
{
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++)
        if (R_MEMORY == R_MEMORY_SHARED)
            factors[b] = cells[LINE(b)];
        else
            factors[b] = row + LINE(b) < rows ? r[row + LINE(b)] : 0;
}

/* A part of p or r for the whole block, 0 beyond its end. */
DEVICE void share(cells_t cells, unsigned int count, GLOBAL const DTYPE *values, size_t first, size_t end)
{
    for (unsigned int i = THREAD; i < count; i += THREADS)
        cells[i] = first + i < end ? values[first + i] : 0;
}

/* --------------------------------------------------------------------------------------- sums for q */

#if ROW_SUMS == ROW_SUMS_SHUFFLE
/* Sum over the warp, valid in its first thread. */
DEVICE DTYPE warp_sum(DTYPE value)
{
    UNROLL_LOOP(WARP_SIZE)
    for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2)
        value += SHUFFLE_DOWN(value, distance);
    return value;
}
#endif

/* This thread's parts of the sums of its rows in a step. */
DEVICE void multiply_rows(DTYPE sums[BATCH], vector_t batch[BATCH][VECTORS], vector_t held[VECTORS])
{
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++) {
        vector_t sum = VECTOR_ZERO(DTYPE, VECTOR_WIDTH);
        UNROLL_LOOP(VECTORS)
        for (int c = 0; c < VECTORS; c++)
            sum = sum + batch[b][c] * held[c];
        sums[b] = VECTOR_SUM(sum, VECTOR_WIDTH);
    }
}

/* Adds up the rows of a step from `row` on: `cells` gets their sums, in PARTS parts ROWS_PER_BLOCK apart. */
DEVICE void add_rows(cells_t cells, cells_t work, SHARED_POINTER(const DTYPE) p_cells,
                     vector_t batch[BATCH][VECTORS], vector_t held[VECTORS], GLOBAL DTYPE *q, size_t row,
                     size_t rows)
{
#if ROW_SUMS == ROW_SUMS_SHARED_MATRIX /* through the matrix in shared memory: threads turn from columns to rows */
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++)
        UNROLL_LOOP(VECTORS)
        for (int c = 0; c < VECTORS; c++)
            UNROLL_LOOP(VECTOR_WIDTH)
            for (int k = 0; k < VECTOR_WIDTH; k++)
                work[LINE(b) * PITCH + START(c) + k] = VECTOR_ELEMENT(DTYPE, batch[b][c], k);
    BARRIER();
    const unsigned int line = THREAD % STEP, part = THREAD / STEP, first = part * (PANEL / PARTS);
    DTYPE sum = 0;
    UNROLL_LOOP(4)
    for (unsigned int i = first; i < first + PANEL / PARTS; i++)
        sum += work[line * PITCH + i] * p_cells[i];
    cells[part * ROWS_PER_BLOCK + line] = sum;
    BARRIER();
#else
    const unsigned int x = THREAD_INDEX(x);
    DTYPE sums[BATCH];
    multiply_rows(sums, batch, held);
#if ROW_SUMS == ROW_SUMS_SHUFFLE /* a part per warp */
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++) {
        const DTYPE sum = warp_sum(sums[b]);
        if (x % WARP_SIZE == 0)
            cells[x / WARP_SIZE * ROWS_PER_BLOCK + LINE(b)] = sum;
    }
#elif ROW_SUMS == ROW_SUMS_SHARED_TREE /* the working threads of every row halve in number */
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++)
        work[LINE(b) * BLOCK_X + x] = sums[b];
    BARRIER();
    UNROLL_LOOP(1)
    for (unsigned int distance = BLOCK_X / 2; distance > 0; distance /= 2) {
        if (x < distance)
            UNROLL_LOOP(BATCH)
            for (int b = 0; b < BATCH; b++)
                work[LINE(b) * BLOCK_X + x] += work[LINE(b) * BLOCK_X + x + distance];
        BARRIER();
    }
    if (x == 0)
        UNROLL_LOOP(BATCH)
        for (int b = 0; b < BATCH; b++)
            cells[LINE(b)] = work[LINE(b) * BLOCK_X];
#else /* an atomic per thread and row */
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++)
        if (row + LINE(b) < rows)
            ATOMIC_ADD(q + row + LINE(b), sums[b]);
#endif
#endif
}

/* --------------------------------------------------------------------------------------- sums for s */

/* Adds the rows of a step, each times its element of r, to the sums of this thread's columns. */
DEVICE void multiply_columns(vector_t sums[VECTORS], vector_t batch[BATCH][VECTORS], DTYPE factors[BATCH])
{
    UNROLL_LOOP(BATCH)
    for (int b = 0; b < BATCH; b++)
        UNROLL_LOOP(VECTORS)
        for (int c = 0; c < VECTORS; c++)
            sums[c] = sums[c] + batch[b][c] * VECTOR_FILL(DTYPE, VECTOR_WIDTH, factors[b]);
}

/* ------------------------------------------------------------------------------------------- finish */

/* Adds a value to an element of the result, or keeps it as the part that this block is asked for. */
DEVICE void finish(GLOBAL DTYPE *result, size_t part, size_t count, size_t i, DTYPE value)
{
#if FINISH == FINISH_ATOMIC
    ATOMIC_ADD(result + i, value);
#else
    result[part * count + i] = value;
#endif
}

/* The sums of the block's rows, from their cells; atomics have left none. */
#if ROW_SUMS != ROW_SUMS_ATOMIC
DEVICE void finish_rows(GLOBAL DTYPE *q, SHARED_POINTER(const DTYPE) cells, size_t row, size_t rows)
{
    BARRIER();
    for (unsigned int i = THREAD; i < ROWS_PER_BLOCK && row + i < rows; i += THREADS) {
        DTYPE sum = 0;
        UNROLL_LOOP(PARTS)
        for (int part = 0; part < PARTS; part++)
            sum += cells[part * ROWS_PER_BLOCK + i];
        finish(q, BLOCK_INDEX(x), rows, row + i, sum);
    }
}
#endif

/* The sums of the block's columns, from its threads. */
#if BLOCK_Y > 1 && COLUMN_SUMS == COLUMN_SUMS_SHARED
DEVICE void finish_columns(GLOBAL DTYPE *s, cells_t cells, vector_t sums[VECTORS], size_t column, size_t columns)
{
    UNROLL_LOOP(1)
    for (unsigned int y = 0; y < BLOCK_Y; y++) {
        if (THREAD_INDEX(y) == y)
            UNROLL_LOOP(VECTORS)
            for (int c = 0; c < VECTORS; c++)
                UNROLL_LOOP(VECTOR_WIDTH)
                for (int k = 0; k < VECTOR_WIDTH; k++)
                    cells[START(c) + k] = (y > 0 ? cells[START(c) + k] : 0) + VECTOR_ELEMENT(DTYPE, sums[c], k);
        BARRIER();
    }
    for (unsigned int i = THREAD; i < PANEL && column + i < columns; i += THREADS)
        finish(s, BLOCK_INDEX(y), columns, column + i, cells[i]);
}
#else
DEVICE void finish_columns(GLOBAL DTYPE *s, cells_t cells, vector_t sums[VECTORS], size_t column, size_t columns)
{
    UNROLL_LOOP(VECTORS)
    for (int c = 0; c < VECTORS; c++)
        UNROLL_LOOP(VECTOR_WIDTH)
        for (int k = 0; k < VECTOR_WIDTH; k++)
            if (column + START(c) + k < columns)
                finish(s, BLOCK_INDEX(y), columns, column + START(c) + k, VECTOR_ELEMENT(DTYPE, sums[c], k));
}
#endif

/* ------------------------------------------------------------------------------------------- kernels */

/* A block's way over its rows. `for_q` and `for_s` are constants at every call: what is not asked for costs
 * nothing. */
DEVICE void sweep(SHARED_POINTER(vector_t) memory, GLOBAL const DTYPE *RESTRICT matrix,
                  GLOBAL const DTYPE *RESTRICT p, GLOBAL const DTYPE *RESTRICT r, GLOBAL DTYPE *RESTRICT q,
                  GLOBAL DTYPE *RESTRICT s, size_t rows, size_t columns, int for_q, int for_s)
{
    const size_t column = (size_t)BLOCK_INDEX(x) * PANEL, row = (size_t)BLOCK_INDEX(y) * ROWS_PER_BLOCK;
    const size_t end = row + ROWS_PER_BLOCK < rows ? row + ROWS_PER_BLOCK : rows;
    const int is_whole = row + ROWS_PER_BLOCK <= rows && column + PANEL <= columns && columns % VECTOR_WIDTH == 0;

    cells_t p_cells = (cells_t)memory, row_cells = p_cells + P_CELLS, step_cells = row_cells + ROW_CELLS;
    cells_t r_cells = p_cells + (for_q ? CELLS_FOR_Q : 0), column_cells = r_cells + R_CELLS;
    if (for_q)
        share(p_cells, P_CELLS, p, column, columns);
    if (for_s)
        share(r_cells, R_CELLS, r, row, rows);
    BARRIER();

    vector_t held[VECTORS], sums[VECTORS];
    UNROLL_LOOP(VECTORS)
    for (int c = 0; c < VECTORS; c++)
        sums[c] = VECTOR_ZERO(DTYPE, VECTOR_WIDTH);
#if P_MEMORY == P_MEMORY_REGISTERS
    if (for_q)
        load_p(held, p, column, columns, is_whole);
#endif

    UNROLL_LOOP(1)
    for (size_t first = row; first < end; first += STEP) {
        vector_t batch[BATCH][VECTORS];
        if (is_whole)
            load_step(batch, matrix, first, column, rows, columns, 1);
        else
            load_step(batch, matrix, first, column, rows, columns, 0);
        if (for_s) {
            DTYPE factors[BATCH];
            take_r(factors, r_cells + (first - row), r, first, rows);
            multiply_columns(sums, batch, factors);
        }
        if (for_q) {
#if P_MEMORY == P_MEMORY_GLOBAL
            load_p(held, p, column, columns, is_whole);
#elif P_MEMORY == P_MEMORY_SHARED
            UNROLL_LOOP(VECTORS)
            for (int c = 0; c < VECTORS; c++)
                held[c] = memory[THREAD_INDEX(x) + c * BLOCK_X];
#endif
            add_rows(row_cells + (first - row), step_cells, p_cells, batch, held, q, first, rows);
        }
    }
#if ROW_SUMS != ROW_SUMS_ATOMIC
    if (for_q)
        finish_rows(q, row_cells, row, rows);
#endif
    if (for_s)
        finish_columns(s, column_cells, sums, column, columns);
}

/* Where FINISH is a launch of its own, q and s are parts: one of q for each panel, one of s for each block of a
 * panel. Otherwise they start from nothing. */
#if FUSED
KERNEL KERNEL_BLOCK(BLOCK_X, BLOCK_Y, 1)
bicgk(GLOBAL const DTYPE *RESTRICT matrix, GLOBAL const DTYPE *RESTRICT p, GLOBAL const DTYPE *RESTRICT r,
      GLOBAL DTYPE *RESTRICT q, GLOBAL DTYPE *RESTRICT s, const unsigned long rows, const unsigned long columns)
{
    SHARED vector_t memory[SHARED_VECTORS(CELLS_FOR_Q + CELLS_FOR_S)];
    sweep(memory, matrix, p, r, q, s, rows, columns, 1, 1);
}
#else
KERNEL KERNEL_BLOCK(BLOCK_X, BLOCK_Y, 1)
row_products(GLOBAL const DTYPE *RESTRICT matrix, GLOBAL const DTYPE *RESTRICT p, GLOBAL DTYPE *RESTRICT q,
             const unsigned long rows, const unsigned long columns)
{
    SHARED vector_t memory[SHARED_VECTORS(CELLS_FOR_Q)];
    sweep(memory, matrix, p, 0, q, 0, rows, columns, 1, 0);
}

KERNEL KERNEL_BLOCK(BLOCK_X, BLOCK_Y, 1)
column_products(GLOBAL const DTYPE *RESTRICT matrix, GLOBAL const DTYPE *RESTRICT r, GLOBAL DTYPE *RESTRICT s,
                const unsigned long rows, const unsigned long columns)
{
    SHARED vector_t memory[SHARED_VECTORS(CELLS_FOR_S)];
    sweep(memory, matrix, 0, r, 0, s, rows, columns, 0, 1);
}
#endif

#if FINISH == FINISH_ATOMIC
/* Goes first: both results start from nothing. */
KERNEL KERNEL_BLOCK(256, 1, 1)
clear(GLOBAL DTYPE *q, GLOBAL DTYPE *s, const unsigned long rows, const unsigned long columns)
{
    const size_t i = (size_t)BLOCK_INDEX(x) * 256 + THREAD_INDEX(x);
    if (i < rows)
        q[i] = 0;
    if (i < columns)
        s[i] = 0;
}
#else
/* Goes last: a thread per element adds its parts. */
KERNEL KERNEL_BLOCK(64, 1, 1)
add_parts(GLOBAL const DTYPE *RESTRICT parts, const unsigned int count, GLOBAL DTYPE *RESTRICT result,
          const unsigned long n)
{
    const size_t i = (size_t)BLOCK_INDEX(x) * 64 + THREAD_INDEX(x);
    if (i >= n)
        return;
    DTYPE sum = 0;
    UNROLL_LOOP(8)
    for (unsigned int part = 0; part < count; part++)
        sum += parts[part * n + i];
    result[i] = sum;
}
#endif
