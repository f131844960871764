#include <cub/cub.cuh>
template <int BLOCK_SIZE>
__global__ void block_sum(const float *in, float *out, int n)
{
    using Reduce = cub::BlockReduce<float, BLOCK_SIZE>;
    __shared__ typename Reduce::TempStorage storage;
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    float sum = Reduce(storage).Sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}
