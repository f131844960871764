/* Transpose of a matrix: one source for the whole ladder, from one element per thread to vectors through a
 * tile in shared memory.
 *
 *   side        METHOD: which side of a direct copy is coalesced, or a tile that makes both sides so
 *   tile        TILE_X by TILE_Y elements of the input per block, LAYOUT of it in shared memory
 *   threads     BLOCK_X of them side by side along rows, of the input first and of the output then; BLOCK_Y
 *   order       BLOCK_ORDER, STRIP: which tile a block takes
 *   accesses    VECTOR_WIDTH, LOAD_STYLE, STORE_STYLE
 *
 * The input has `rows` times `columns` elements and the output `columns` times `rows`, both row by row.
 * Everything is right for any number of either: a tile at the edge, and every tile of a matrix whose rows do
 * not start at multiples of a vector, is moved element by element.
 */
#include "portable.h"

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

/* ----------------------------------------------------------------------------------------- accesses */

/* The vector of a matrix at a row and column. `is_whole` is a constant at every call: true removes the checks. */
DEVICE vector_t read_vector(GLOBAL const DTYPE *matrix, size_t row, size_t column, size_t rows,
                            size_t columns, int is_whole)
{
    if (is_whole)
        return LOAD((GLOBAL const vector_t *)(matrix + row * columns + column));
    return read_at_edge(matrix, row, column, rows, columns);
}

DEVICE void write_vector(GLOBAL DTYPE *matrix, size_t row, size_t column, size_t rows, size_t columns,
                         vector_t vector, int is_whole)
{
    if (is_whole)
        STORE((GLOBAL vector_t *)(matrix + row * columns + column), vector);
    else
        write_at_edge(matrix, row, column, rows, columns, vector);
}

/* -------------------------------------------------------------------------------------------- order */

/* The tile of a block, among `across` by `down` tiles of the input. */
DEVICE unsigned int tile_across(unsigned int block, unsigned int across, unsigned int down)
{
#if BLOCK_ORDER == BLOCK_ORDER_ROWS
    return block % across;
#elif BLOCK_ORDER == BLOCK_ORDER_COLUMNS
    return block / down;
#elif BLOCK_ORDER == BLOCK_ORDER_DIAGONAL
    return (block / down + block % down) % across;
#else /* strips of STRIP tiles side by side, the last one narrower: blocks go along its rows, then down */
    const unsigned int first = block / (STRIP * down) * STRIP;
    const unsigned int width = across - first < STRIP ? across - first : STRIP;
    return first + block % (STRIP * down) % width;
#endif
}

DEVICE unsigned int tile_down(unsigned int block, unsigned int across, unsigned int down)
{
#if BLOCK_ORDER == BLOCK_ORDER_ROWS
    return block / across;
#elif BLOCK_ORDER == BLOCK_ORDER_STRIPS
    const unsigned int first = block / (STRIP * down) * STRIP;
    const unsigned int width = across - first < STRIP ? across - first : STRIP;
    return block % (STRIP * down) / width;
#else
    return block % down;
#endif
}

/* --------------------------------------------------------------------------------------------- tile */
#if METHOD == METHOD_TILE

/* Where an element of the tile is in shared memory. The threads of a warp write along a row and read down a
 * column: without padding or swizzling, a whole column is in one memory bank. */
#if LAYOUT == LAYOUT_PADDED
#define TILE_CELLS (TILE_Y * (TILE_X + 1))
#define CELL(y, x) ((y) * (TILE_X + 1) + (x))
#elif LAYOUT == LAYOUT_SWIZZLED
#define TILE_CELLS (TILE_Y * TILE_X)
#define CELL(y, x) ((y) * TILE_X + ((x) ^ ((y) % (TILE_X < 32 ? TILE_X : 32))))
#else
#define TILE_CELLS (TILE_Y * TILE_X)
#define CELL(y, x) ((y) * TILE_X + (x))
#endif

#define READS_ACROSS (TILE_X / (BLOCK_X * VECTOR_WIDTH))
#define READS_DOWN (TILE_Y / BLOCK_Y)
#define WRITES_ACROSS (TILE_Y / (BLOCK_X * VECTOR_WIDTH))
#define WRITES_DOWN (TILE_X / BLOCK_Y)

/* The i-th vector of this thread in its j-th row: where it starts, and in which row it is. */
#define START(i) ((THREAD_INDEX(x) + (i) * BLOCK_X) * VECTOR_WIDTH)
#define LINE(j) (THREAD_INDEX(y) + (j) * BLOCK_Y)

/* Loads this thread's share of the tile that starts at (row, column). */
DEVICE void read_share(vector_t batch[READS_DOWN][READS_ACROSS], GLOBAL const DTYPE *input, size_t row,
                       size_t column, size_t rows, size_t columns, int is_whole)
{
    UNROLL_LOOP(READS_DOWN)
    for (int j = 0; j < READS_DOWN; j++)
        UNROLL_LOOP(READS_ACROSS)
        for (int i = 0; i < READS_ACROSS; i++)
            batch[j][i] = read_vector(input, row + LINE(j), column + START(i), rows, columns, is_whole);
}

/* Stores this thread's share of the transposed tile, which starts at row `column` and column `row`. */
DEVICE void write_share(vector_t batch[WRITES_DOWN][WRITES_ACROSS], GLOBAL DTYPE *output, size_t row,
                        size_t column, size_t rows, size_t columns, int is_whole)
{
    UNROLL_LOOP(WRITES_DOWN)
    for (int j = 0; j < WRITES_DOWN; j++)
        UNROLL_LOOP(WRITES_ACROSS)
        for (int i = 0; i < WRITES_ACROSS; i++)
            write_vector(output, column + LINE(j), row + START(i), columns, rows, batch[j][i], is_whole);
}

/* Exchanges the shares of the block's threads through shared memory. */
DEVICE void put_share(SHARED_POINTER(DTYPE) tile, vector_t batch[READS_DOWN][READS_ACROSS])
{
    UNROLL_LOOP(READS_DOWN)
    for (int j = 0; j < READS_DOWN; j++)
        UNROLL_LOOP(READS_ACROSS)
        for (int i = 0; i < READS_ACROSS; i++)
            UNROLL_LOOP(VECTOR_WIDTH)
            for (int k = 0; k < VECTOR_WIDTH; k++)
                tile[CELL(LINE(j), START(i) + k)] = VECTOR_ELEMENT(DTYPE, batch[j][i], k);
}

DEVICE void take_share(SHARED_POINTER(const DTYPE) tile, vector_t batch[WRITES_DOWN][WRITES_ACROSS])
{
    UNROLL_LOOP(WRITES_DOWN)
    for (int j = 0; j < WRITES_DOWN; j++)
        UNROLL_LOOP(WRITES_ACROSS)
        for (int i = 0; i < WRITES_ACROSS; i++)
            UNROLL_LOOP(VECTOR_WIDTH)
            for (int k = 0; k < VECTOR_WIDTH; k++)
#ifdef NO_BANK_CONFLICTS /* along a row, wherever the elements belong */
                VECTOR_ELEMENT(DTYPE, batch[j][i], k) = tile[LINE(j) * TILE_Y + START(i) + k];
#else
                VECTOR_ELEMENT(DTYPE, batch[j][i], k) = tile[CELL(START(i) + k, LINE(j))];
#endif
}

#else /* ---------------------------------------------------------------------------------- direct copy */

#if METHOD == METHOD_COALESCED_READS
#define SQUARES_ACROSS (TILE_X / (BLOCK_X * VECTOR_WIDTH))
#define SQUARES_DOWN (TILE_Y / (BLOCK_Y * VECTOR_WIDTH))
#define THREAD_ACROSS THREAD_INDEX(x)
#define THREAD_DOWN THREAD_INDEX(y)
#define THREADS_ACROSS BLOCK_X
#define THREADS_DOWN BLOCK_Y
#else /* coalesced writes: neighbours go down the input, and so along a row of the output */
#define SQUARES_ACROSS (TILE_X / (BLOCK_Y * VECTOR_WIDTH))
#define SQUARES_DOWN (TILE_Y / (BLOCK_X * VECTOR_WIDTH))
#define THREAD_ACROSS THREAD_INDEX(y)
#define THREAD_DOWN THREAD_INDEX(x)
#define THREADS_ACROSS BLOCK_Y
#define THREADS_DOWN BLOCK_X
#endif

/* Moves a square of VECTOR_WIDTH vectors, transposed in registers. */
DEVICE void move_square(GLOBAL const DTYPE *RESTRICT input, GLOBAL DTYPE *RESTRICT output, size_t row,
                        size_t column, size_t rows, size_t columns, int is_whole)
{
    vector_t lines[VECTOR_WIDTH];
#ifdef COALESCED /* both sides along the rows that neighbours share: a copy of as many elements */
    UNROLL_LOOP(VECTOR_WIDTH)
    for (int k = 0; k < VECTOR_WIDTH; k++) {
#if METHOD == METHOD_COALESCED_READS
        lines[k] = read_vector(input, row + k, column, rows, columns, is_whole);
        write_vector(output, row + k, column, rows, columns, lines[k], is_whole);
#else
        lines[k] = read_vector(input, column + k, row, columns, rows, is_whole);
        write_vector(output, column + k, row, columns, rows, lines[k], is_whole);
#endif
    }
#else
    UNROLL_LOOP(VECTOR_WIDTH)
    for (int k = 0; k < VECTOR_WIDTH; k++)
        lines[k] = read_vector(input, row + k, column, rows, columns, is_whole);
    UNROLL_LOOP(VECTOR_WIDTH)
    for (int k = 0; k < VECTOR_WIDTH; k++) {
        vector_t vector;
        UNROLL_LOOP(VECTOR_WIDTH)
        for (int l = 0; l < VECTOR_WIDTH; l++)
            VECTOR_ELEMENT(DTYPE, vector, l) = VECTOR_ELEMENT(DTYPE, lines[l], k);
        write_vector(output, column + k, row, columns, rows, vector, is_whole);
    }
#endif
}

DEVICE void move_squares(GLOBAL const DTYPE *RESTRICT input, GLOBAL DTYPE *RESTRICT output, size_t row,
                         size_t column, size_t rows, size_t columns, int is_whole)
{
    UNROLL_LOOP(SQUARES_DOWN)
    for (int j = 0; j < SQUARES_DOWN; j++)
        UNROLL_LOOP(SQUARES_ACROSS)
        for (int i = 0; i < SQUARES_ACROSS; i++)
            move_square(input, output, row + (THREAD_DOWN + j * THREADS_DOWN) * VECTOR_WIDTH,
                        column + (THREAD_ACROSS + i * THREADS_ACROSS) * VECTOR_WIDTH, rows, columns, is_whole);
}
#endif

/* ------------------------------------------------------------------------------------------- kernel */

KERNEL KERNEL_BLOCK(BLOCK_X, BLOCK_Y, 1)
transpose(GLOBAL const DTYPE *RESTRICT input, GLOBAL DTYPE *RESTRICT output, const unsigned long rows,
          const unsigned long columns, const unsigned int across, const unsigned int down)
{
    const size_t column = (size_t)tile_across(BLOCK_INDEX(x), across, down) * TILE_X;
    const size_t row = (size_t)tile_down(BLOCK_INDEX(x), across, down) * TILE_Y;
    const int is_whole = row + TILE_Y <= rows && column + TILE_X <= columns && rows % VECTOR_WIDTH == 0 &&
                         columns % VECTOR_WIDTH == 0;
#if METHOD == METHOD_TILE
    SHARED DTYPE tile[TILE_CELLS];
    vector_t read[READS_DOWN][READS_ACROSS], written[WRITES_DOWN][WRITES_ACROSS];
    if (is_whole)
        read_share(read, input, row, column, rows, columns, 1);
    else
        read_share(read, input, row, column, rows, columns, 0);
    put_share(tile, read);
    BARRIER();
    take_share(tile, written);
    if (is_whole)
        write_share(written, output, row, column, rows, columns, 1);
    else
        write_share(written, output, row, column, rows, columns, 0);
#else
    if (is_whole)
        move_squares(input, output, row, column, rows, columns, 1);
    else
        move_squares(input, output, row, column, rows, columns, 0);
#endif
}
