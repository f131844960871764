// y = A x for a sparse matrix in compressed rows (CSR): row r has its elements at starts[r] .. starts[r + 1].

// A group of THREADS_PER_ROW threads adds up one row: within a warp by shuffles, across warps in shared memory.
template <int BLOCK_SIZE, int THREADS_PER_ROW>
__global__ void __launch_bounds__(BLOCK_SIZE)
spmv(const int rows, const int *__restrict__ starts, const int *__restrict__ columns,
     const float *__restrict__ values, const float *__restrict__ x, float *__restrict__ y)
{
    const int row = blockIdx.x * (BLOCK_SIZE / THREADS_PER_ROW) + threadIdx.x / THREADS_PER_ROW;
    const int lane = threadIdx.x % THREADS_PER_ROW;

    float sum = 0.0f;
    if (row < rows)
        for (int k = starts[row] + lane; k < starts[row + 1]; k += THREADS_PER_ROW)
            sum += values[k] * x[columns[k]];

    for (int offset = min(THREADS_PER_ROW, 32) / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset, min(THREADS_PER_ROW, 32));
    if constexpr (THREADS_PER_ROW > 32) {
        __shared__ float sums[BLOCK_SIZE / 32];
        if (threadIdx.x % 32 == 0)
            sums[threadIdx.x / 32] = sum;
        __syncthreads();
        if (lane == 0)
            for (int warp = 1; warp < THREADS_PER_ROW / 32; warp++)
                sum += sums[threadIdx.x / 32 + warp];
    }
    if (lane == 0 && row < rows)
        y[row] = sum;
}
