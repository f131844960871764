#include <cub/block/block_reduce.cuh>

namespace detail { namespace {
template <int BLOCK_THREADS, cub::BlockReduceAlgorithm ALGORITHM = cub::BLOCK_REDUCE_WARP_REDUCTIONS>
__global__ void block_sums(const int *in, int *out, int n) {
    using Reduce = cub::BlockReduce<int, BLOCK_THREADS, ALGORITHM>;
    __shared__ typename Reduce::TempStorage temp;
    int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    int sum = Reduce(temp).Sum(i < n ? in[i] : 0);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
} }

void sums(const int *in, int *out, int n) {
    detail::block_sums<128><<<(n + 127) / 128, 128>>>(in, out, n);
}
