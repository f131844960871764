/* The dot product of two vectors in half precision, with sums in float.
 *
 * Every thread adds up products of WORK packs of VECTOR_WIDTH elements at a time, each element of a pack in a sum of its
 * own; the sums of a block are added in a tree. FINISH: one more launch adds the blocks' sums in a fixed order, or
 * every block adds its own to the result.
 */
struct __align__(2 * VECTOR_WIDTH) pack_t {
    DTYPE of[VECTOR_WIDTH];
};

/* The sum of all threads' values, for thread 0. */
static __device__ __forceinline__ float sum_of_block(float value)
{
    __shared__ float sums[BLOCK_SIZE / 32];
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < BLOCK_SIZE / 32 ? sums[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32)
        for (int distance = 16; distance > 0; distance /= 2)
            value += __shfl_down_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    dot(const DTYPE *__restrict__ x, const DTYPE *__restrict__ y, float *__restrict__ sums, const unsigned long n)
{
    const size_t threads = (size_t)gridDim.x * BLOCK_SIZE, thread = (size_t)blockIdx.x * BLOCK_SIZE + threadIdx.x;
    const size_t packs = n / VECTOR_WIDTH;
    const pack_t *packs_x = (const pack_t *)x, *packs_y = (const pack_t *)y;
    float sum[VECTOR_WIDTH] = {};
    for (size_t first = thread; first < packs; first += WORK * threads) {
        pack_t a[WORK], b[WORK];
#pragma unroll
        for (int w = 0; w < WORK; w++)
            if (first + w * threads < packs) {
                a[w] = packs_x[first + w * threads];
                b[w] = packs_y[first + w * threads];
            }
#pragma unroll
        for (int w = 0; w < WORK; w++)
            if (first + w * threads < packs)
#pragma unroll
                for (int i = 0; i < VECTOR_WIDTH; i++)
                    sum[i] += (float)a[w].of[i] * (float)b[w].of[i];
    }
    const size_t rest = packs * VECTOR_WIDTH + thread; /* fewer elements than a pack has */
    if (rest < n)
        sum[0] += (float)x[rest] * (float)y[rest];
    float total = 0;
#pragma unroll
    for (int i = 0; i < VECTOR_WIDTH; i++)
        total += sum[i];
    total = sum_of_block(total);
    if (threadIdx.x == 0) {
#if FINISH == FINISH_ATOMIC
        atomicAdd(sums, total);
#else
        sums[blockIdx.x] = total;
#endif
    }
}

extern "C" __global__ void clear(float *result) { *result = 0; }

extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    add_sums(const float *__restrict__ sums, float *__restrict__ result, const unsigned int count)
{
    float sum = 0;
    for (unsigned int i = threadIdx.x; i < count; i += BLOCK_SIZE)
        sum += sums[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        *result = sum;
}
