/* Convolution of an image with a square filter, float32: the image comes with its halo, FILTER_SIZE - 1 more
 * columns and rows than the result, and the filter is not turned:
 *
 *     result[y][x] = sum over v, u of image[y + v][x + u] * weights[v][u]
 *
 * A thread makes WORK_X x WORK_Y neighbouring elements, a block BLOCK_X x BLOCK_Y times as many.
 *
 *   tile       TILE: read from global memory, or brought into shared memory by the threads that compute, or by
 *              these and helpers, LOAD_X x LOAD_Y threads in all; TILE_ORDER, PADDING: how it lies there
 *   products   REUSE: what stays in registers, a row of the filter or a row of the image; UNROLL_X, UNROLL_Y
 *   the rest   VECTOR_WIDTH of all loads and stores, FILTER_MEMORY, RESIDENT_BLOCKS
 *
 * Blocks whose tile is not inside the image, and images whose rows do not start at whole vectors, take their
 * elements one by one. Whether that is needed is the same for all threads of a block.
 */
#include "portable.h"
#include "variants.h"

#define HALO (FILTER_SIZE - 1)
#define THREADS (LOAD_X * LOAD_Y)
#define COMPLETELY 128 /* more than any of the loops over a thread's own elements has to go */

/* The tile of a block, in elements, and its rows in vectors. */
#define TILE_ROWS (BLOCK_Y * WORK_Y + HALO)
#define TILE_COLUMNS (BLOCK_X * WORK_X + HALO)
#define TILE_VECTORS ((TILE_COLUMNS + VECTOR_WIDTH - 1) / VECTOR_WIDTH)
#define THREAD_VECTORS (WORK_X / VECTOR_WIDTH)
#define WINDOW_VECTORS ((WORK_X + HALO + VECTOR_WIDTH - 1) / VECTOR_WIDTH)

/* A row of the tile: its vectors one after the other; or dealt to as many piles as a thread has vectors, so that
 * the vectors that neighbouring threads read at the same time lie side by side. */
#define PILES (TILE_ORDER == TILE_ORDER_DEALT ? THREAD_VECTORS : 1)
#define PILE_VECTORS ((TILE_VECTORS + PILES - 1) / PILES)
#define TILE_PITCH ((PILES * PILE_VECTORS + PADDING) * VECTOR_WIDTH)
#define PLACE_OF_VECTOR(vector) (((vector) % PILES * PILE_VECTORS + (vector) / PILES) * VECTOR_WIDTH)
#define TILE_FLOATS (TILE == TILE_GLOBAL ? 0 : TILE_ROWS * TILE_PITCH)

/* The filter in shared memory: its rows start at whole vectors. */
#define FILTER_VECTORS ((FILTER_SIZE + VECTOR_WIDTH - 1) / VECTOR_WIDTH)
#define FILTER_FLOATS (FILTER_MEMORY == FILTER_MEMORY_SHARED ? FILTER_SIZE * FILTER_VECTORS * VECTOR_WIDTH : 0)
#define HAS_SHARED (TILE != TILE_GLOBAL || FILTER_MEMORY == FILTER_MEMORY_SHARED)

typedef VECTOR(float, VECTOR_WIDTH) vector_t;

/* What a block reads: the image from the first element of its tile on, how much of it is left there, and
 * whether all of its tile is, in whole vectors. */
typedef struct {
    GLOBAL const float *first;
    unsigned int pitch, rows, columns;
    int is_inside;
} image_t;

/* Vector `vector` of row `row` of the tile, from the image; what lies outside is nobody's, so any value will do. */
DEVICE vector_t vector_of_image(image_t image, unsigned int row, unsigned int vector)
{
    const unsigned int column = vector * VECTOR_WIDTH;
    if (image.is_inside)
        return LOADED(ANY_VECTOR(float, VECTOR_WIDTH, image.first + row + column),
                      *(GLOBAL const vector_t *)(image.first + (size_t)row * image.pitch + column));
    vector_t found = VECTOR_ZERO(float, VECTOR_WIDTH);
    UNROLL_LOOP(VECTOR_WIDTH)
    for (int e = 0; e < VECTOR_WIDTH; e++)
        if (row < image.rows && column + e < image.columns)
            VECTOR_ELEMENT(float, found, e) = image.first[(size_t)row * image.pitch + column + e];
    return found;
}

/* ------------------------------------------------------------------------------------ shared memory */

/* The tile, by the threads of the block. */
DEVICE void bring_tile(image_t image, SHARED_POINTER(float) tile)
{
#if TILE == TILE_SHARED /* vector after vector, whosever it is */
    UNROLL_LOOP(4)
    for (unsigned int i = THREAD_INDEX(y) * LOAD_X + THREAD_INDEX(x); i < TILE_ROWS * TILE_VECTORS; i += THREADS) {
        const unsigned int row = i / TILE_VECTORS, vector = i % TILE_VECTORS;
        *(SHARED_POINTER(vector_t))(tile + row * TILE_PITCH + PLACE_OF_VECTOR(vector)) =
            vector_of_image(image, row, vector);
    }
#elif TILE == TILE_HELPERS /* each thread the elements at its own place; helpers are at the halo's */
    UNROLL_LOOP(WORK_Y)
    for (unsigned int j = 0; j < WORK_Y; j++) {
        const unsigned int row = THREAD_INDEX(y) * WORK_Y + j;
        UNROLL_LOOP(THREAD_VECTORS)
        for (unsigned int i = 0; i < THREAD_VECTORS; i++) {
            const unsigned int vector = THREAD_INDEX(x) * THREAD_VECTORS + i;
            if (row < TILE_ROWS && vector < TILE_VECTORS)
                *(SHARED_POINTER(vector_t))(tile + row * TILE_PITCH + PLACE_OF_VECTOR(vector)) =
                    vector_of_image(image, row, vector);
        }
    }
#endif
}

DEVICE void bring_filter(GLOBAL const float *weights, SHARED_POINTER(float) filter)
{
#if FILTER_MEMORY == FILTER_MEMORY_SHARED
    for (unsigned int i = THREAD_INDEX(y) * LOAD_X + THREAD_INDEX(x); i < FILTER_SIZE * FILTER_SIZE; i += THREADS)
        filter[i / FILTER_SIZE * (FILTER_VECTORS * VECTOR_WIDTH) + i % FILTER_SIZE] = weights[i];
#endif
}

/* ------------------------------------------------------------------------------------------ products */

/* What a thread reads from: the tile and the filter, wherever they are. */
typedef struct {
    image_t image;
    GLOBAL const float *weights;
    SHARED_POINTER(float) tile;
    SHARED_POINTER(float) filter;
} source_t;

/* A row of the filter in registers. */
typedef struct {
    vector_t vectors[FILTER_VECTORS];
} filter_row_t;

DEVICE filter_row_t filter_row(source_t source, unsigned int row)
{
    filter_row_t found;
#if FILTER_MEMORY == FILTER_MEMORY_SHARED
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < FILTER_VECTORS; i++)
        found.vectors[i] = ((SHARED_POINTER(vector_t))source.filter)[row * FILTER_VECTORS + i];
#else
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < FILTER_SIZE; i++)
        VECTOR_ELEMENT(float, found.vectors, i) = LOAD_READ_ONLY(source.weights + row * FILTER_SIZE + i);
#endif
    return found;
}

/* The elements of a row of the tile that a thread's row of results needs, in registers. */
typedef struct {
    vector_t vectors[WINDOW_VECTORS];
} window_t;

DEVICE window_t window(source_t source, unsigned int row)
{
    const unsigned int first = THREAD_INDEX(x) * THREAD_VECTORS;
    window_t found;
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < WINDOW_VECTORS; i++) {
#if TILE == TILE_GLOBAL
        found.vectors[i] = vector_of_image(source.image, row, first + i);
#else
#ifdef NO_BANK_CONFLICTS /* neighbouring threads read neighbouring vectors, whichever these are */
        const unsigned int place = (THREAD_INDEX(x) + i) * VECTOR_WIDTH;
#else
        const unsigned int place = PLACE_OF_VECTOR(first) + PLACE_OF_VECTOR(i); /* `first` starts a round of dealing */
#endif
        found.vectors[i] = *(SHARED_POINTER(vector_t))(source.tile + row * TILE_PITCH + place);
#endif
    }
    return found;
}

/* sums += the products of a row of the filter with a row of the image. */
DEVICE void add_products(float sums[WORK_X], window_t image, filter_row_t filter)
{
#ifdef MEMORY_ONLY /* every factor is used once */
    UNROLL_LOOP(COMPLETELY)
    for (int i = 0; i < WORK_X + HALO; i++)
        sums[i % WORK_X] += VECTOR_ELEMENT(float, image.vectors, i);
    UNROLL_LOOP(COMPLETELY)
    for (int u = 0; u < FILTER_SIZE; u++)
        sums[u % WORK_X] += VECTOR_ELEMENT(float, filter.vectors, u);
#else
    UNROLL_LOOP(COMPLETELY)
    for (int u = 0; u < FILTER_SIZE; u++) {
        UNROLL_LOOP(COMPLETELY)
        for (int i = 0; i < WORK_X; i++)
            sums[i] += VECTOR_ELEMENT(float, image.vectors, i + u) * VECTOR_ELEMENT(float, filter.vectors, u);
    }
#endif
}

/* One element of the tile, and one of the filter. */
DEVICE float element(source_t source, unsigned int row, unsigned int column)
{
#if TILE == TILE_GLOBAL
    const int is_inside = source.image.is_inside || (row < source.image.rows && column < source.image.columns);
    return is_inside ? LOADED(ANY_VECTOR(float, 1, source.image.first + row + column),
                              source.image.first[(size_t)row * source.image.pitch + column])
                     : 0;
#else
    return source.tile[row * TILE_PITCH + PLACE_OF_VECTOR(column / VECTOR_WIDTH) + column % VECTOR_WIDTH];
#endif
}

DEVICE float weight(source_t source, unsigned int row, unsigned int column)
{
#if FILTER_MEMORY == FILTER_MEMORY_SHARED
    return source.filter[row * (FILTER_VECTORS * VECTOR_WIDTH) + column];
#else
    return LOAD_READ_ONLY(source.weights + row * FILTER_SIZE + column);
#endif
}

/* sums = the thread's results. */
DEVICE void convolve(source_t source, float sums[WORK_Y][WORK_X])
{
    const unsigned int top = THREAD_INDEX(y) * WORK_Y;
#if REUSE == REUSE_FILTER_ROW /* a row of the filter meets the rows of the image below which it lies */
    UNROLL_LOOP(UNROLL_Y)
    for (int v = 0; v < FILTER_SIZE; v++) {
        const filter_row_t filter = filter_row(source, v);
        UNROLL_LOOP(COMPLETELY)
        for (int j = 0; j < WORK_Y; j++)
            add_products(sums[j], window(source, top + j + v), filter);
    }
#elif REUSE == REUSE_IMAGE_ROW /* a row of the image meets the rows of the filter that lie above it */
    UNROLL_LOOP(UNROLL_Y)
    for (int row = 0; row < WORK_Y + HALO; row++) {
        const window_t image = window(source, top + row);
        UNROLL_LOOP(COMPLETELY)
        for (int j = 0; j < WORK_Y; j++)
            if (row >= j && row < j + FILTER_SIZE)
                add_products(sums[j], image, filter_row(source, row - j));
    }
#else
    UNROLL_LOOP(UNROLL_Y)
    for (int v = 0; v < FILTER_SIZE; v++) {
        UNROLL_LOOP(UNROLL_X)
        for (int u = 0; u < FILTER_SIZE; u++) {
            const float factor = weight(source, v, u);
            UNROLL_LOOP(COMPLETELY)
            for (int k = 0; k < WORK_Y * WORK_X; k++)
                sums[k / WORK_X][k % WORK_X] +=
                    element(source, top + k / WORK_X + v, THREAD_INDEX(x) * WORK_X + k % WORK_X + u) * factor;
        }
    }
#endif
}

/* ------------------------------------------------------------------------------------------- kernel */

/* Stores the thread's results at `to`, where there are `rows` and `columns` left. */
DEVICE void store(GLOBAL float *to, unsigned int pitch, unsigned int rows, unsigned int columns,
                  float sums[WORK_Y][WORK_X])
{
    const int has_vectors = pitch % VECTOR_WIDTH == 0;
    UNROLL_LOOP(COMPLETELY)
    for (int j = 0; j < WORK_Y; j++) {
        UNROLL_LOOP(COMPLETELY)
        for (int i = 0; i < WORK_X; i += VECTOR_WIDTH) {
            vector_t vector = VECTOR_ZERO(float, VECTOR_WIDTH);
            UNROLL_LOOP(VECTOR_WIDTH)
            for (int e = 0; e < VECTOR_WIDTH; e++) {
                VECTOR_ELEMENT(float, vector, e) = sums[j][i + e];
                if (!has_vectors && j < rows && i + e < columns && IS_STORED(sums[j][i + e], -123456789))
                    to[(size_t)j * pitch + i + e] = sums[j][i + e];
            }
            if (has_vectors && j < rows && i < columns && IS_STORED(VECTOR_SUM(vector, VECTOR_WIDTH), -123456789))
                *(GLOBAL vector_t *)(to + (size_t)j * pitch + i) = vector;
        }
    }
}

KERNEL KERNEL_RESIDENT_BLOCK(LOAD_X, LOAD_Y, 1, RESIDENT_BLOCKS)
convolution(GLOBAL const float *RESTRICT image, GLOBAL const float *RESTRICT weights, GLOBAL float *RESTRICT result,
            const unsigned int width, const unsigned int height)
{
    const unsigned int left = BLOCK_INDEX(x) * (BLOCK_X * WORK_X), top = BLOCK_INDEX(y) * (BLOCK_Y * WORK_Y);
    const unsigned int pitch = width + HALO;
    const image_t tile = {image + (size_t)top * pitch + left, pitch, height + HALO - top, pitch - left,
                          top + TILE_ROWS <= height + HALO && left + TILE_VECTORS * VECTOR_WIDTH <= pitch &&
                              pitch % VECTOR_WIDTH == 0};
#if HAS_SHARED
    SHARED_DYNAMIC(float, memory, TILE_FLOATS + FILTER_FLOATS);
    const source_t source = {tile, weights, memory, memory + TILE_FLOATS};
    bring_tile(tile, memory);
    bring_filter(weights, memory + TILE_FLOATS);
    BARRIER();
#else
    const source_t source = {tile, weights, 0, 0};
#endif
    const unsigned int x = left + THREAD_INDEX(x) * WORK_X, y = top + THREAD_INDEX(y) * WORK_Y;
    if (THREAD_INDEX(x) < BLOCK_X && THREAD_INDEX(y) < BLOCK_Y && x < width && y < height) {
        float sums[WORK_Y][WORK_X];
        UNROLL_LOOP(COMPLETELY)
        for (int k = 0; k < WORK_Y * WORK_X; k++)
            sums[k / WORK_X][k % WORK_X] = 0;
        convolve(source, sums);
        store(result + (size_t)y * width + x, width, height - y, width - x, sums);
    }
}
