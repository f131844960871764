/* Sum of n elements by kernels that launch kernels, in CUDA C++: it needs relocatable device code and the device
 * runtime, so nvcc. Every thread adds up its share of the elements; then level by level a grid of half as many
 * threads adds the upper half of each block's cells to the lower half, until LEAF of them are left, which one
 * block adds up.
 *
 *   NESTING   who launches the next level, and when it starts
 *     block_synchronised     every block for itself, after the grid that launches it has ended (tail launch)
 *     block                  every block for itself, in the block's own stream
 *     block_fire_and_forget  every block for itself, at once
 *     grid                   the first block for all, after the grid that launches it has ended (tail launch)
 *   BLOCKS, BLOCK_SIZE, LEAF are powers of two; LEAF >= BLOCK_SIZE nests nothing
 *
 * The device keeps a limited number of launches waiting. A thread whose launch it refuses does the work itself.
 */

/* Halves a block's cells, the sums of which stay the same, until `left` are left; gives the number left. */
__device__ unsigned int halve(DTYPE *cells, unsigned int count, unsigned int left)
{
    while (count > left) {
        count /= 2;
        if (threadIdx.x < count)
            cells[threadIdx.x] += cells[threadIdx.x + count];
        __syncthreads();
    }
    return count;
}

__global__ void add_level(DTYPE *cells, unsigned int count, DTYPE *partials);

/* One thread's sum of a block's cells. */
__device__ void add_alone(const DTYPE *cells, unsigned int count, DTYPE *place)
{
    DTYPE sum = 0;
    for (unsigned int cell = 0; cell < count; cell++)
        sum += cells[cell];
    *place = sum;
}

/* Leaves the sum of a block's cells in its place among the partial sums, now or by the levels below. Tail launches
 * of all blocks of a grid run one after the other, once the whole grid has ended. */
__device__ void finish(DTYPE *cells, unsigned int count, DTYPE *partials)
{
    DTYPE *own = cells + blockIdx.x * BLOCK_SIZE, *place = partials + blockIdx.x;
    if (count <= LEAF) {
        halve(own, count, 1);
        if (threadIdx.x == 0)
            *place = own[0];
    } else if (threadIdx.x == 0) {
#if NESTING == NESTING_GRID
        if (blockIdx.x == 0)
            add_level<<<gridDim.x, count / 2, 0, cudaStreamTailLaunch>>>(cells, count, partials);
#elif NESTING == NESTING_BLOCK_SYNCHRONISED
        add_level<<<1, count / 2, 0, cudaStreamTailLaunch>>>(own, count, place);
#elif NESTING == NESTING_BLOCK_FIRE_AND_FORGET
        add_level<<<1, count / 2, 0, cudaStreamFireAndForget>>>(own, count, place);
#else
        add_level<<<1, count / 2>>>(own, count, place);
#endif
#if NESTING != NESTING_GRID
        if (cudaGetLastError() != cudaSuccess)
            add_alone(own, count, place);
#endif
    }
}

/* One level: a thread for each cell that is left. */
__global__ void add_level(DTYPE *cells, unsigned int count, DTYPE *partials)
{
    finish(cells, halve(cells + blockIdx.x * BLOCK_SIZE, count, count / 2), partials);
}

/* The first level: one cell for each thread of the grid. */
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
nested_reduce(const DTYPE *x, size_t n, DTYPE *cells, DTYPE *partials)
{
    const size_t thread = (size_t)blockIdx.x * BLOCK_SIZE + threadIdx.x;
    DTYPE sum = 0;
    for (size_t i = thread; i < n; i += (size_t)BLOCKS * BLOCK_SIZE)
        sum += x[i];
    cells[thread] = sum;
    __syncthreads();
    finish(cells, BLOCK_SIZE, partials);
}

/* Starts when every level of every block has ended. */
extern "C" __global__ void add_partials(const DTYPE *partials, DTYPE *sum)
{
    DTYPE total = 0;
    for (int block = 0; block < BLOCKS; block++)
        total += partials[block];
    *sum = total;
}
