template <int BLOCK_SIZE, int ITEMS = 4, bool USE_CACHE = false>
__global__ void copy(const float *in, float *out, int n)
{
    __shared__ float cache[BLOCK_SIZE];
    for (int k = 0; k < ITEMS; ++k) {
        int i = (blockIdx.x * ITEMS + k) * BLOCK_SIZE + threadIdx.x;
        if (USE_CACHE) { cache[threadIdx.x] = i < n ? in[i] : 0; __syncthreads(); }
        if (i < n) out[i] = USE_CACHE ? cache[threadIdx.x] : in[i];
    }
}
