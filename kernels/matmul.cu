/* C = A * B, row-major, float32, for any m, n, k >= 1: one source from one thread per element to tiles that
 * flow through shared memory into registers. A block makes BLOCK_M x BLOCK_N elements of C and goes through
 * A and B in steps of BLOCK_K; each of its threads makes THREAD_M x THREAD_N of them in registers.
 *
 *   operands    SHARED_OPERANDS, A_LAYOUT, B_LAYOUT, PADDING: what goes through shared memory, and how it lies
 *   copies      TRANSFER, STAGES, LOAD_WIDTH: how tiles get there, and how many there are
 *   threads     LANE_ROWS, LANE_ORDER: which elements are whose; FRAGMENT_WIDTH of them side by side
 *   products    UNROLL_K, FRAGMENTS: the loop over a tile
 *   grid        GROUP_ROWS, RESIDENT_BLOCKS
 *
 * Tiles at the edges, and matrices whose rows do not start at whole vectors, are copied element by element
 * with zeros in the place of what is outside. Whether that is needed is the same for all threads of a block.
 */
#include "portable.h"
#include "variants.h"

#define THREADS_M (BLOCK_M / THREAD_M)
#define THREADS_N (BLOCK_N / THREAD_N)
#define THREADS (THREADS_M * THREADS_N)

/* Threads whose elements interleave: a warp of LANE_ROWS rows, or the whole block. */
#define WARP_LANES 32
#define PATCH_ROWS (LANE_ROWS > 0 ? LANE_ROWS : THREADS_M)
#define PATCH_COLUMNS (LANE_ROWS > 0 ? WARP_LANES / LANE_ROWS : THREADS_N)
#define PATCHES_N (THREADS_N / PATCH_COLUMNS)

/* Tiles in shared memory: row after row of the matrix, or column after column. */
#define A_STRIDE ((A_LAYOUT == A_LAYOUT_ROWS ? BLOCK_K : BLOCK_M) + PADDING)
#define B_STRIDE ((B_LAYOUT == B_LAYOUT_ROWS ? BLOCK_N : BLOCK_K) + PADDING)
#define A_TILE (A_STRIDE * (A_LAYOUT == A_LAYOUT_ROWS ? BLOCK_M : BLOCK_K))
#define B_TILE (B_STRIDE * (B_LAYOUT == B_LAYOUT_ROWS ? BLOCK_K : BLOCK_N))
#define A_IS_SHARED (SHARED_OPERANDS != SHARED_OPERANDS_NONE)
#define B_IS_SHARED (SHARED_OPERANDS == SHARED_OPERANDS_BOTH)

/* Copies of one thread for a tile. */
#define A_COPIES (BLOCK_M * BLOCK_K / (LOAD_WIDTH * THREADS))
#define B_COPIES (BLOCK_K * BLOCK_N / (LOAD_WIDTH * THREADS))
#ifdef COMPUTE_ONLY /* the first tile only */
#define IS_COPIED(from, is_there) ((from) == 0 && (is_there))
#else
#define IS_COPIED(from, is_there) (is_there)
#endif
#define COMPLETELY 128 /* more than any of the loops over a thread's own elements has to go */

typedef VECTOR(float, LOAD_WIDTH) load_t;
typedef VECTOR(float, FRAGMENT_WIDTH) chunk_t;

/* What a block works on: the first element of its rows of A and of its columns of B, how many of them there
 * are, and whether its tiles, but for the last one, lie inside and at whole vectors. */
typedef struct {
    GLOBAL const float *a, *b;
    unsigned int rows, columns, n, k;
    int is_inside;
} work_t;

/* --------------------------------------------------------------------------------- copies of tiles */

/* A tile of a row-major matrix: what of it is inside, and how it lies in shared memory. */
typedef struct {
    GLOBAL const float *first;
    size_t pitch;
    unsigned int rows, columns, rows_inside, columns_inside, stride;
    int is_turned; /* column after column */
} tile_t;

DEVICE tile_t tile_of_a(work_t work, unsigned int from)
{
    const tile_t tile = {work.a + from,   work.k,          BLOCK_M,  BLOCK_K,
                         work.rows,       work.k - from,   A_STRIDE, A_LAYOUT != A_LAYOUT_ROWS};
    return tile;
}

DEVICE tile_t tile_of_b(work_t work, unsigned int from)
{
    const tile_t tile = {work.b + (size_t)from * work.n, work.n,        BLOCK_K,  BLOCK_N,
                         work.k - from,                  work.columns,  B_STRIDE, B_LAYOUT != B_LAYOUT_ROWS};
    return tile;
}

DEVICE int is_full(work_t work, unsigned int from)
{
    return work.is_inside && from + BLOCK_K <= work.k;
}

/* Vector `i` of a thread lies so much further than its first one: constants but for the pitch, because the
 * threads' vectors make up whole rows, or whole parts of a row. */
#define FURTHER_ROWS(tile, i, width) ((i) * THREADS * (width) / (tile).columns)
#define FURTHER_COLUMNS(tile, i, width) ((i) * THREADS * (width) % (tile).columns)

DEVICE GLOBAL const float *source_of(tile_t tile, int i, int width)
{
    const unsigned int at = THREAD_INDEX(x) * width;
    GLOBAL const float *first = tile.first + (at / tile.columns * tile.pitch + at % tile.columns);
    return first + FURTHER_ROWS(tile, i, width) * tile.pitch + FURTHER_COLUMNS(tile, i, width);
}

/* Its place in shared memory. */
DEVICE SHARED_POINTER(float) target_of(tile_t tile, SHARED_POINTER(float) target, int i, int width)
{
    const unsigned int at = THREAD_INDEX(x) * width;
    const unsigned int row = at / tile.columns, column = at % tile.columns;
    const unsigned int rows = FURTHER_ROWS(tile, i, width), columns = FURTHER_COLUMNS(tile, i, width);
    return tile.is_turned ? target + (column * tile.stride + row) + (columns * tile.stride + rows)
                          : target + (row * tile.stride + column) + (rows * tile.stride + columns);
}

/* The threads of the block read a full tile into registers, `count` vectors each. */
DEVICE void fetch(tile_t tile, load_t *fetched, int count)
{
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < count; i++)
        fetched[i] = *(GLOBAL const load_t *)source_of(tile, i, LOAD_WIDTH);
}

/* They write it to shared memory. */
DEVICE void deliver(tile_t tile, SHARED_POINTER(float) target, const load_t *fetched, int count)
{
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < count; i++) {
        SHARED_POINTER(float) to = target_of(tile, target, i, LOAD_WIDTH);
        load_t vector = fetched[i];
        if (!tile.is_turned) {
            *(SHARED_POINTER(load_t))to = vector;
        } else {
            UNROLL_LOOP(LOAD_WIDTH)
            for (int e = 0; e < LOAD_WIDTH; e++)
                to[e * tile.stride] = VECTOR_ELEMENT(float, vector, e);
        }
    }
}

/* Both in the background; a tile that is turned goes element by element. */
DEVICE void copy_in_background(tile_t tile, SHARED_POINTER(float) target, int count)
{
    if (!tile.is_turned) {
        UNROLL_LOOP(COMPLETELY)
        for (int i = 0; i < count; i++)
            COPY_ASYNC((SHARED_POINTER(load_t))target_of(tile, target, i, LOAD_WIDTH),
                       (GLOBAL const load_t *)source_of(tile, i, LOAD_WIDTH));
    } else {
        UNROLL_LOOP(COMPLETELY)
        for (int i = 0; i < count * LOAD_WIDTH; i++)
            COPY_ASYNC(target_of(tile, target, i, 1), source_of(tile, i, 1));
    }
}

/* A tile that is not full, at once. */
DEVICE void copy_what_is_inside(tile_t tile, SHARED_POINTER(float) target)
{
    UNROLL_LOOP(1)
    for (unsigned int at = THREAD_INDEX(x); at < tile.rows * tile.columns; at += THREADS) {
        const unsigned int row = at / tile.columns, column = at % tile.columns;
        const int is_inside = row < tile.rows_inside && column < tile.columns_inside;
        target[tile.is_turned ? column * tile.stride + row : row * tile.stride + column] =
            is_inside ? tile.first[row * tile.pitch + column] : 0;
    }
}

/* The tiles from column and row `from` on, in two parts: one that does not wait, before the products of an
 * earlier tile; and one after them, after which all threads can read the tiles that are due. */
DEVICE void begin_copies(work_t work, unsigned int from, SHARED_POINTER(float) a_tile,
                         SHARED_POINTER(float) b_tile, load_t *fetched)
{
#if TRANSFER == TRANSFER_PREFETCH
    if (IS_COPIED(from, is_full(work, from))) {
        fetch(tile_of_a(work, from), fetched, A_COPIES);
        if (B_IS_SHARED)
            fetch(tile_of_b(work, from), fetched + A_COPIES, B_COPIES);
    }
#elif TRANSFER == TRANSFER_ASYNC
    if (IS_COPIED(from, is_full(work, from))) {
        copy_in_background(tile_of_a(work, from), a_tile, A_COPIES);
        if (B_IS_SHARED)
            copy_in_background(tile_of_b(work, from), b_tile, B_COPIES);
    } else if (IS_COPIED(from, from < work.k)) {
        copy_what_is_inside(tile_of_a(work, from), a_tile);
        if (B_IS_SHARED)
            copy_what_is_inside(tile_of_b(work, from), b_tile);
    }
    COPY_COMMIT();
#endif
}

DEVICE void end_copies(work_t work, unsigned int from, SHARED_POINTER(float) a_tile,
                       SHARED_POINTER(float) b_tile, load_t *fetched)
{
    if (STAGES == 1)
        BARRIER();
#if TRANSFER == TRANSFER_ASYNC
    COPY_WAIT(STAGES - 2);
#else
    if (IS_COPIED(from, is_full(work, from))) {
        if (TRANSFER == TRANSFER_PLAIN)
            fetch(tile_of_a(work, from), fetched, A_COPIES);
        deliver(tile_of_a(work, from), a_tile, fetched, A_COPIES);
        if (B_IS_SHARED) {
            if (TRANSFER == TRANSFER_PLAIN)
                fetch(tile_of_b(work, from), fetched + A_COPIES, B_COPIES);
            deliver(tile_of_b(work, from), b_tile, fetched + A_COPIES, B_COPIES);
        }
    } else if (IS_COPIED(from, from < work.k)) {
        copy_what_is_inside(tile_of_a(work, from), a_tile);
        if (B_IS_SHARED)
            copy_what_is_inside(tile_of_b(work, from), b_tile);
    }
#endif
    BARRIER();
}

/* -------------------------------------------------------------------------------- products of tiles */

/* This thread's first row and column in the block's; further ones follow in chunks of FRAGMENT_WIDTH with
 * those of the other threads of its patch in between. */
DEVICE unsigned int first_row(void)
{
    const unsigned int thread = THREAD_INDEX(x);
#if LANE_ROWS == 0
    return thread / THREADS_N * FRAGMENT_WIDTH;
#else
    const unsigned int lane = thread % WARP_LANES, warp = thread / WARP_LANES;
#if LANE_ORDER == LANE_ORDER_ZIGZAG
    const unsigned int lane_row = lane / (2 * PATCH_COLUMNS) * 2 + lane % 2;
#else
    const unsigned int lane_row = lane / PATCH_COLUMNS;
#endif
    return warp / PATCHES_N * (PATCH_ROWS * THREAD_M) + lane_row * FRAGMENT_WIDTH;
#endif
}

DEVICE unsigned int first_column(void)
{
    const unsigned int thread = THREAD_INDEX(x);
#if LANE_ROWS == 0
    return thread % THREADS_N * FRAGMENT_WIDTH;
#else
    const unsigned int lane = thread % WARP_LANES, warp = thread / WARP_LANES;
#if LANE_ORDER == LANE_ORDER_ZIGZAG
    const unsigned int lane_column = lane / 2 % PATCH_COLUMNS;
#else
    const unsigned int lane_column = lane % PATCH_COLUMNS;
#endif
    return warp % PATCHES_N * (PATCH_COLUMNS * THREAD_N) + lane_column * FRAGMENT_WIDTH;
#endif
}

#define ROW_OF_CHUNK(chunk) ((chunk) * PATCH_ROWS * FRAGMENT_WIDTH)
#define COLUMN_OF_CHUNK(chunk) ((chunk) * PATCH_COLUMNS * FRAGMENT_WIDTH)
#define CHUNKS_M (THREAD_M / FRAGMENT_WIDTH)
#define CHUNKS_N (THREAD_N / FRAGMENT_WIDTH)

/* What a thread needs of one column of A's tile and one row of B's. */
typedef struct {
    chunk_t a[CHUNKS_M], b[CHUNKS_N];
} fragment_t;

/* Column `step` of A's tile and row `step` of B's, from shared memory where they are there, else from global
 * memory. There an element outside is replaced by the last one inside: what comes of it is never stored. */
DEVICE fragment_t fragment(work_t work, unsigned int from, unsigned int step, SHARED_POINTER(float) a_tile,
                           SHARED_POINTER(float) b_tile)
{
    const unsigned int row = first_row(), column = first_column();
    fragment_t found;
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < CHUNKS_M; i++) {
        const unsigned int at = row + ROW_OF_CHUNK(i);
#if !A_IS_SHARED
#ifdef COALESCED /* neighbours below each other read elements side by side, of as many as there are */
        found.a[i] = work.a[(size_t)(from + step) * (work.rows < BLOCK_M ? work.rows : BLOCK_M) +
                            (at < work.rows ? at : work.rows - 1)];
#else
        found.a[i] = LOADED(ANY_VECTOR(float, FRAGMENT_WIDTH, work.a + at + step),
                            work.a[(size_t)(at < work.rows ? at : work.rows - 1) * work.k + from + step]);
#endif
#elif A_LAYOUT == A_LAYOUT_ROWS
        found.a[i] = a_tile[at * A_STRIDE + step];
#else
        found.a[i] = *(SHARED_POINTER(chunk_t))(a_tile + step * A_STRIDE + at);
#endif
    }
    UNROLL_LOOP(COMPLETELY)
    for (int j = 0; j < CHUNKS_N; j++) {
        const unsigned int at = column + COLUMN_OF_CHUNK(j);
#if !B_IS_SHARED
        found.b[j] = LOADED(ANY_VECTOR(float, FRAGMENT_WIDTH, work.b + at + step),
                            work.b[(size_t)(from + step) * work.n + (at < work.columns ? at : work.columns - 1)]);
#elif B_LAYOUT == B_LAYOUT_COLUMNS
        found.b[j] = b_tile[at * B_STRIDE + step];
#else
        found.b[j] = *(SHARED_POINTER(chunk_t))(b_tile + step * B_STRIDE + at);
#endif
    }
    return found;
}

/* c += the product of a column and a row. */
DEVICE void add_product(chunk_t c[THREAD_M][CHUNKS_N], fragment_t factors)
{
#ifdef MEMORY_ONLY /* every factor is used once */
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < THREAD_M; i++)
        VECTOR_ELEMENT(float, c[i], 0) += VECTOR_ELEMENT(float, factors.a, i);
    UNROLL_LOOP(COMPLETELY)
    for (int j = 0; j < THREAD_N; j++)
        VECTOR_ELEMENT(float, c[0], j) += VECTOR_ELEMENT(float, factors.b, j);
#else
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < THREAD_M; i++) {
        UNROLL_LOOP(COMPLETELY)
        for (int j = 0; j < THREAD_N; j++)
            VECTOR_ELEMENT(float, c[i], j) +=
                VECTOR_ELEMENT(float, factors.a, i) * VECTOR_ELEMENT(float, factors.b, j);
    }
#endif
}

/* ------------------------------------------------------------------------------------------- kernel */

/* The block's place in C, in blocks: GROUP_ROWS rows of blocks are gone through column by column, so that
 * blocks that run at the same time share rows of A and columns of B in the cache. */
DEVICE void place_of_block(unsigned int m, unsigned int n, unsigned int *block_row, unsigned int *block_column)
{
    const unsigned int block_rows = (m + BLOCK_M - 1) / BLOCK_M, block_columns = (n + BLOCK_N - 1) / BLOCK_N;
    const unsigned int first = BLOCK_INDEX(x) / (GROUP_ROWS * block_columns) * GROUP_ROWS;
    const unsigned int within = BLOCK_INDEX(x) % (GROUP_ROWS * block_columns);
    const unsigned int height = block_rows - first < GROUP_ROWS ? block_rows - first : GROUP_ROWS;
    *block_row = first + within % height;
    *block_column = within / height;
}

/* Stores the thread's elements; whole chunks where they are inside and at whole vectors. */
DEVICE void store(GLOBAL float *c_block, work_t work, chunk_t c[THREAD_M][CHUNKS_N])
{
    const unsigned int row = first_row(), column = first_column();
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < THREAD_M; i++) {
        const unsigned int to_row = row + ROW_OF_CHUNK(i / FRAGMENT_WIDTH) + i % FRAGMENT_WIDTH;
        UNROLL_LOOP(COMPLETELY)
        for (int j = 0; j < CHUNKS_N; j++) {
            const unsigned int to_column = column + COLUMN_OF_CHUNK(j);
            GLOBAL float *to = c_block + (size_t)to_row * work.n + to_column;
            if (!IS_STORED(VECTOR_SUM(c[i][j], FRAGMENT_WIDTH), -123456789)) {
            } else if (work.is_inside) {
                *(GLOBAL chunk_t *)to = c[i][j];
            } else {
                UNROLL_LOOP(FRAGMENT_WIDTH)
                for (int e = 0; e < FRAGMENT_WIDTH; e++)
                    if (to_row < work.rows && to_column + e < work.columns)
                        to[e] = VECTOR_ELEMENT(float, c[i][j], e);
            }
        }
    }
}

/* How many tiles copies are ahead of products. */
#define AHEAD (TRANSFER == TRANSFER_ASYNC ? STAGES - 1 : 1)
#define STAGE_AFTER(stage, count) (((stage) + (count)) % STAGES)

/* sums = the products of all tiles. Copies begin before the products of a tile and end after them; with two
 * fragments before the last of them, so that the next tile's first fragment is on its way during that one. */
DEVICE void multiply(work_t work, SHARED_POINTER(float) a_tiles, SHARED_POINTER(float) b_tiles,
                     chunk_t sums[THREAD_M][CHUNKS_N])
{
    load_t fetched[A_COPIES + B_COPIES];
    UNROLL_LOOP(COMPLETELY)
    for (int ahead = 0; ahead < AHEAD; ahead++)
        begin_copies(work, ahead * BLOCK_K, a_tiles + ahead * A_TILE, b_tiles + ahead * B_TILE, fetched);
    end_copies(work, 0, a_tiles, b_tiles, fetched);
#if FRAGMENTS == 2
    fragment_t factors = fragment(work, 0, 0, a_tiles, b_tiles);
#endif

    unsigned int stage = 0;
    UNROLL_LOOP(1)
    for (unsigned int from = 0; from < work.k; from += BLOCK_K) {
        SHARED_POINTER(float) a_tile = a_tiles + stage * A_TILE;
        SHARED_POINTER(float) b_tile = b_tiles + stage * B_TILE;
        const unsigned int coming = from + AHEAD * BLOCK_K, target = STAGE_AFTER(stage, AHEAD);
        stage = STAGE_AFTER(stage, 1);
        begin_copies(work, coming, a_tiles + target * A_TILE, b_tiles + target * B_TILE, fetched);
#if FRAGMENTS == 2
        UNROLL_LOOP(UNROLL_K)
        for (int step = 1; step < BLOCK_K; step++) {
            const fragment_t next = fragment(work, from, step, a_tile, b_tile);
            add_product(sums, factors);
            factors = next;
        }
        end_copies(work, coming, a_tiles + target * A_TILE, b_tiles + target * B_TILE, fetched);
        const fragment_t next = fragment(work, from, 0, a_tiles + stage * A_TILE, b_tiles + stage * B_TILE);
        add_product(sums, factors);
        factors = next;
#else
        const int steps = B_IS_SHARED || work.k - from > BLOCK_K ? BLOCK_K : work.k - from;
        UNROLL_LOOP(UNROLL_K)
        for (int step = 0; step < steps; step++)
            add_product(sums, fragment(work, from, step, a_tile, b_tile));
        end_copies(work, coming, a_tiles + target * A_TILE, b_tiles + target * B_TILE, fetched);
#endif
    }
}

/* The same with nothing in shared memory. */
DEVICE void multiply_directly(work_t work, chunk_t sums[THREAD_M][CHUNKS_N])
{
    UNROLL_LOOP(UNROLL_K)
    for (unsigned int step = 0; step < work.k; step++)
        add_product(sums, fragment(work, 0, step, 0, 0));
}

KERNEL KERNEL_RESIDENT_BLOCK(THREADS, 1, 1, RESIDENT_BLOCKS)
matmul(GLOBAL const float *RESTRICT a, GLOBAL const float *RESTRICT b, GLOBAL float *RESTRICT c,
       const unsigned int m, const unsigned int n, const unsigned int k)
{
    unsigned int block_row, block_column;
    place_of_block(m, n, &block_row, &block_column);
    const unsigned int top = block_row * BLOCK_M, left = block_column * BLOCK_N;
    const work_t work = {a + (size_t)top * k, b + left, m - top, n - left, n, k,
                         top + BLOCK_M <= m && left + BLOCK_N <= n && k % LOAD_WIDTH == 0 &&
                             n % LOAD_WIDTH == 0 && n % FRAGMENT_WIDTH == 0};
    chunk_t sums[THREAD_M][CHUNKS_N];
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < THREAD_M * CHUNKS_N; i++)
        sums[i / CHUNKS_N][i % CHUNKS_N] = VECTOR_ZERO(float, FRAGMENT_WIDTH);
#if A_IS_SHARED
    SHARED_DYNAMIC(float, tiles, STAGES * (A_TILE + (B_IS_SHARED ? B_TILE : 0)));
    multiply(work, tiles, tiles + STAGES * A_TILE, sums);
#else
    multiply_directly(work, sums);
#endif
    store(c + (size_t)top * n + left, work, sums);
}
