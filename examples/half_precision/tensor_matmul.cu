/* The matrix product C = A B of half-precision matrices on tensor cores, with sums in float.
 *
 * A block makes BLOCK_M x BLOCK_N elements of C. It takes tiles of A and B through shared memory, BLOCK_K deep, with
 * STAGES tiles in flight (cp.async). A unit, which is a warp or with wgmma four warps, makes TILE_M x TILE_N elements:
 *
 *   INSTRUCTION_MMA    mma.sync m16n8k16 on fragments that ldmatrix loads (compute capability 8.0)
 *   INSTRUCTION_WGMMA  wgmma m64nNk16, which reads both tiles from shared memory (compute capability 9.0a)
 *
 * Tiles lie in shared memory as panels of 64 columns, 128 bytes a row, whose 16-byte chunks are exchanged within a row
 * by the row's number (chunk ^ row % 8). So 8 rows of one chunk are in 8 different groups of banks, and it is the
 * layout that wgmma calls the 128-byte swizzle: rows of A follow k, rows of B follow n.
 *
 * n and k are multiples of 8, so that chunks of 16 bytes are aligned; chunks beyond a matrix are zeros.
 */
#define UNIT_THREADS (INSTRUCTION == INSTRUCTION_WGMMA ? 128 : 32)
#define BLOCK_K 64
#define UNITS_N (BLOCK_N / TILE_N)
#define THREADS (UNIT_THREADS * (BLOCK_M / TILE_M) * UNITS_N)
#define A_BYTES (BLOCK_M * BLOCK_K * 2)
#define B_BYTES (BLOCK_K * BLOCK_N * 2)
/* How many tiles are requested ahead. The buffer to fill must be free: wgmma still reads the tile before. */
#define AHEAD (INSTRUCTION == INSTRUCTION_WGMMA ? STAGES - 2 : STAGES - 1)
#if DTYPE_FLOAT16
#define TYPE "f16"
#else
#define TYPE "bf16"
#endif
#include "wgmma.h"

typedef unsigned int address; /* in shared memory, in bytes */

/* Copies 16 bytes from global to shared memory in the background, or writes zeros. */
static __device__ __forceinline__ void copy_chunk(address to, const void *from, bool is_inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_inside ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

static __device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
}

/* Where a chunk of a row lies in a tile with so many rows. */
static __device__ __forceinline__ address chunk_offset(int row, int chunk, int rows)
{
    return (chunk / 8 * rows + row) * 128 + ((chunk % 8) ^ (row % 8)) * 16;
}

/* Requests one tile: rows x columns elements that begin at `origin` in a matrix with `stride` columns. */
template <int ROWS, int COLUMNS>
static __device__ __forceinline__ void copy_tile(address to, const DTYPE *origin, size_t stride, int rows, int columns)
{
    constexpr int CHUNKS = COLUMNS / 8, STEP = THREADS / CHUNKS; /* rows that all threads copy at a time */
    const int row0 = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    const bool is_column = chunk * 8 < columns;
    const DTYPE *from = is_column ? origin + row0 * stride + chunk * 8 : origin;
#pragma unroll
    for (int first = 0; first < ROWS; first += STEP)
        if (ROWS % STEP == 0 || row0 + first < ROWS) {
            const bool is_inside = is_column && row0 + first < rows;
            copy_chunk(to + chunk_offset(row0 + first, chunk, ROWS), is_inside ? from + first * stride : origin,
                       is_inside);
        }
}

/* Two sums as two neighbouring elements of C. */
static __device__ __forceinline__ unsigned int rounded(float low, float high)
{
    unsigned int pair;
    asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* Rows `row` and `row + 8` of 8 columns: the sums that a thread has in both instructions' layouts. */
static __device__ __forceinline__ void store(DTYPE *c, int row, int column, int m, int n, const float *sums)
{
    if (column < n) {
        if (row < m)
            *(unsigned int *)(c + (size_t)row * n + column) = rounded(sums[0], sums[1]);
        if (row + 8 < m)
            *(unsigned int *)(c + (size_t)(row + 8) * n + column) = rounded(sums[2], sums[3]);
    }
}

#if INSTRUCTION == INSTRUCTION_MMA /* ----------------------------------------------------------------- mma.sync */

static __device__ __forceinline__ void load_rows(unsigned int (&to)[4], address from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void load_columns(unsigned int (&to)[4], address from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ __forceinline__ void multiply_add(float (&sums)[4], const unsigned int (&a)[4], const unsigned int *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#define ROWS_OF_16 (TILE_M / 16)
#define COLUMNS_OF_16 (TILE_N / 16)

/* The fragments of one step of 16 along k. */
struct Fragments {
    unsigned int a[ROWS_OF_16][4], b[COLUMNS_OF_16][4];

    __device__ __forceinline__ void load(address tile_a, address tile_b, int step, int m0, int n0)
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < ROWS_OF_16; i++)
            load_rows(a[i], tile_a + chunk_offset(m0 + i * 16 + lane % 16, step * 2 + lane / 16, BLOCK_M));
#pragma unroll
        for (int j = 0; j < COLUMNS_OF_16; j++)
            load_columns(b[j], tile_b + chunk_offset(step * 16 + lane % 16, (n0 + j * 16) / 8 + lane / 16, BLOCK_K));
    }
};

struct Sums {
    float of[ROWS_OF_16][COLUMNS_OF_16 * 2][4];

    __device__ __forceinline__ void multiply(address tile_a, address tile_b, int m0, int n0)
    {
        Fragments fragments[FRAGMENTS];
        if (FRAGMENTS > 1)
            fragments[0].load(tile_a, tile_b, 0, m0, n0);
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++) {
            if (FRAGMENTS == 1)
                fragments[0].load(tile_a, tile_b, step, m0, n0);
            else if (step + 1 < BLOCK_K / 16)
                fragments[(step + 1) % FRAGMENTS].load(tile_a, tile_b, step + 1, m0, n0);
            const Fragments &now = fragments[step % FRAGMENTS];
#pragma unroll
            for (int i = 0; i < ROWS_OF_16; i++)
#pragma unroll
                for (int j = 0; j < COLUMNS_OF_16 * 2; j++)
                    multiply_add(of[i][j], now.a[i], now.b[j / 2] + j % 2 * 2);
        }
    }

    __device__ __forceinline__ void finish_last() {}
    __device__ __forceinline__ void finish() {}

    __device__ __forceinline__ void store_to(DTYPE *c, int row0, int column0, int m, int n) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < ROWS_OF_16; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS_OF_16 * 2; j++)
                store(c, row0 + i * 16 + lane / 4, column0 + j * 8 + lane % 4 * 2, m, n, of[i][j]);
    }
};

static __device__ __forceinline__ void make_visible() {}

#else /* ------------------------------------------------------------------------------------------------- wgmma */

/* Copies through the ordinary path become visible to wgmma, once threads are synchronised. */
static __device__ __forceinline__ void make_visible() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Describes a matrix in shared memory in the 128-byte swizzle: its address and two strides, in units of 16 bytes. */
static __device__ __forceinline__ unsigned long long described(address at, unsigned int leading, unsigned int stride)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}

/* A follows k (0), B follows n (1). */
#define MULTIPLY_ADD(columns, count, a, b)                                                                            \
    WGMMA(columns, count, sums, a ", " b, "1, 1, 0, 1", "l"(tile_a), "l"(tile_b))

static __device__ __forceinline__ void multiply_add(float (&sums)[TILE_N / 2], unsigned long long tile_a,
                                                    unsigned long long tile_b)
{
#if TILE_N == 64
    MULTIPLY_ADD(64, 32, "%32", "%33");
#elif TILE_N == 128
    MULTIPLY_ADD(128, 64, "%64", "%65");
#else
    MULTIPLY_ADD(256, 128, "%128", "%129");
#endif
}

struct Sums {
    float of[TILE_M / 64][TILE_N / 2];

    __device__ __forceinline__ void multiply(address tile_a, address tile_b, int m0, int n0)
    {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++) {
            const address a = tile_a + step / 4 * BLOCK_M * 128 + m0 * 128 + step % 4 * 32;
            const address b = tile_b + n0 / 64 * BLOCK_K * 128 + step * 16 * 128;
#pragma unroll
            for (int i = 0; i < TILE_M / 64; i++)
                multiply_add(of[i], described(a + i * 64 * 128, 16, 1024), described(b, BLOCK_K * 128, 1024));
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    /* Waits for the products of the tile before this one, or for all. */
    __device__ __forceinline__ void finish_last() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }
    __device__ __forceinline__ void finish() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

    __device__ __forceinline__ void store_to(DTYPE *c, int row0, int column0, int m, int n) const
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
        for (int i = 0; i < TILE_M / 64; i++)
#pragma unroll
            for (int j = 0; j < TILE_N / 8; j++)
                store(c, row0 + i * 64 + warp * 16 + lane / 4, column0 + j * 8 + lane % 4 * 2, m, n, of[i] + j * 4);
    }
};

#endif

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
    tensor_matmul(const DTYPE *__restrict__ a, const DTYPE *__restrict__ b, DTYPE *__restrict__ c, const unsigned int m,
                  const unsigned int n, const unsigned int k)
{
    extern __shared__ __align__(1024) unsigned char tiles[];
    const address tiles_a = (address)__cvta_generic_to_shared(tiles), tiles_b = tiles_a + STAGES * A_BYTES;

    /* Blocks that run at the same time make GROUP_ROWS rows of blocks, so that they share tiles in the L2 cache. */
    const int rows = (m + BLOCK_M - 1) / BLOCK_M, columns = (n + BLOCK_N - 1) / BLOCK_N;
    const int group = blockIdx.x / (GROUP_ROWS * columns), within = blockIdx.x % (GROUP_ROWS * columns);
    const int height = min(GROUP_ROWS, rows - group * GROUP_ROWS);
    const int row0 = (group * GROUP_ROWS + within % height) * BLOCK_M, column0 = within / height * BLOCK_N;

    const int unit = threadIdx.x / UNIT_THREADS, m0 = unit / UNITS_N * TILE_M, n0 = unit % UNITS_N * TILE_N;
    const int count = (k + BLOCK_K - 1) / BLOCK_K;

    auto request = [&](int tile) {
        const int depth = tile * BLOCK_K, stage = tile % STAGES;
        if (tile < count) {
            copy_tile<BLOCK_M, BLOCK_K>(tiles_a + stage * A_BYTES, a + (size_t)row0 * k + depth, k, m - row0,
                                        k - depth);
            copy_tile<BLOCK_K, BLOCK_N>(tiles_b + stage * B_BYTES, b + (size_t)depth * n + column0, n, k - depth,
                                        n - column0);
        }
        commit_copies();
    };

    Sums sums = {};
    for (int tile = 0; tile < AHEAD; tile++)
        request(tile);
    for (int tile = 0; tile < count; tile++) {
        wait_for_copies();
        make_visible();
        __syncthreads();
        const address tile_a = tiles_a + tile % STAGES * A_BYTES, tile_b = tiles_b + tile % STAGES * B_BYTES;
#if INSTRUCTION == INSTRUCTION_WGMMA
        sums.multiply(tile_a, tile_b, m0, n0);
        request(tile + AHEAD);
        sums.finish_last();
#else
        request(tile + AHEAD);
        sums.multiply(tile_a, tile_b, m0, n0);
#endif
    }
    sums.finish();
    sums.store_to(c, row0 + m0, column0 + n0, m, n);
}
