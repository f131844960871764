// c = a * b for square matrices of n x n floats, stored by rows; n is a multiple of every tile's sides. Plain
// CUDA C++, so that both tuners compile the same text.
//
// A block computes TILE_Y x TILE_X elements of c, a thread work_y x work_x of them in registers. The block
// walks along k in steps of tile_k: both tiles go to shared memory, and where `prefetch` is 1 the next ones
// are on their way to registers meanwhile. Everything between two barriers is unrolled, the walk through a
// tile by unroll_k steps. Registers are allotted so that min_blocks blocks fit on a multiprocessor.
#define THREADS (block_size_x * block_size_y)
#define TILE_X (block_size_x * work_x)
#define TILE_Y (block_size_y * work_y)
#define LOADS_A (TILE_Y * tile_k / THREADS)
#define LOADS_B (TILE_X * tile_k / THREADS)

__device__ void fetch(const float *a, const float *b, int n, int k, int thread, float *part_a, float *part_b)
{
#pragma unroll
    for (int load = 0; load < LOADS_A; load++) {
        const int at = thread + load * THREADS;
        part_a[load] = a[(size_t)(blockIdx.y * TILE_Y + at / tile_k) * n + k + at % tile_k];
    }
#pragma unroll
    for (int load = 0; load < LOADS_B; load++) {
        const int at = thread + load * THREADS;
        part_b[load] = b[(size_t)(k + at / TILE_X) * n + blockIdx.x * TILE_X + at % TILE_X];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, min_blocks)
matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[tile_k][TILE_Y + 1], tile_b[tile_k][TILE_X];
    const int thread = threadIdx.y * block_size_x + threadIdx.x;
    float sums[work_y][work_x] = {}, part_a[LOADS_A], part_b[LOADS_B];

    if (prefetch == 1) fetch(a, b, n, 0, thread, part_a, part_b);
    for (int k = 0; k < n; k += tile_k) {
        if (prefetch == 0) fetch(a, b, n, k, thread, part_a, part_b);
#pragma unroll
        for (int load = 0; load < LOADS_A; load++) {
            const int at = thread + load * THREADS;
            tile_a[at % tile_k][at / tile_k] = part_a[load];
        }
#pragma unroll
        for (int load = 0; load < LOADS_B; load++) {
            const int at = thread + load * THREADS;
            tile_b[at / TILE_X][at % TILE_X] = part_b[load];
        }
        __syncthreads();
        if (prefetch == 1 && k + tile_k < n) fetch(a, b, n, k + tile_k, thread, part_a, part_b);
#pragma unroll unroll_k
        for (int step = 0; step < tile_k; step++) {
            float row[work_y], column[work_x];
#pragma unroll
            for (int y = 0; y < work_y; y++) row[y] = tile_a[step][threadIdx.y + y * block_size_y];
#pragma unroll
            for (int x = 0; x < work_x; x++) column[x] = tile_b[step][threadIdx.x + x * block_size_x];
#pragma unroll
            for (int y = 0; y < work_y; y++)
#pragma unroll
                for (int x = 0; x < work_x; x++) sums[y][x] += row[y] * column[x];
        }
        __syncthreads();
    }

#pragma unroll
    for (int y = 0; y < work_y; y++)
#pragma unroll
        for (int x = 0; x < work_x; x++) {
            const size_t at_row = blockIdx.y * TILE_Y + threadIdx.y + y * block_size_y;
            c[at_row * n + blockIdx.x * TILE_X + threadIdx.x + x * block_size_x] = sums[y][x];
        }
}
