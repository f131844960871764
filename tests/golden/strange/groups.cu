#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void group_sum(const int *in, int *out, int n)
{
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? in[i] : 0;
    for (int step = warp.size() / 2; step > 0; step /= 2) value += warp.shfl_down(value, step);
    if (warp.thread_rank() == 0) atomicAdd(out, value);
}
