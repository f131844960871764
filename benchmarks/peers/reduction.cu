// Sum of n floats with the parameters that Kernel Tuner's reduction example tunes. Plain CUDA C++, so that
// both tuners compile the same text. Every block adds its part to *total, which starts at zero.
#if vector == 1
typedef float Element;
__device__ float add_up(Element e) { return e; }
#elif vector == 2
typedef float2 Element;
__device__ float add_up(Element e) { return e.x + e.y; }
#else
typedef float4 Element;
__device__ float add_up(Element e) { return (e.x + e.y) + (e.z + e.w); }
#endif

extern "C" __global__ void sum_floats(float *total, const Element *numbers, int n)
{
    __shared__ float parts[block_size_x];
    const int thread = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * block_size_x + thread; i < n / vector; i += block_size_x * gridDim.x)
        sum += add_up(numbers[i]);

#if use_shuffle == 1
    for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (thread % 32 == 0) parts[thread / 32] = sum;
    __syncthreads();
    if (thread < 32) {
        sum = thread < block_size_x / 32 ? parts[thread] : 0.0f;
        for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    }
#else
    parts[thread] = sum;
    __syncthreads();
#pragma unroll
    for (int distance = block_size_x / 2; distance > 0; distance >>= 1) {
        if (thread < distance) parts[thread] += parts[thread + distance];
        __syncthreads();
    }
    sum = parts[0];
#endif
    if (thread == 0) atomicAdd(total, sum);
}
