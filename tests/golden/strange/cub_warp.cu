#include <cub/warp/warp_reduce.cuh>
#ifndef block_size_x
#define block_size_x 128
#endif
__global__ void warp_max(int *data, int n)
{
    typedef cub::WarpReduce<int> Reduce;
    __shared__ typename Reduce::TempStorage storage[block_size_x / 32];
    int i = blockIdx.x * block_size_x + threadIdx.x;
    int most = Reduce(storage[threadIdx.x / 32]).Sum(i < n ? data[i] : 0);
    if (i < n) data[i] = most;
}
