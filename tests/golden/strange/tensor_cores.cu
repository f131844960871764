#include <mma.h>
using namespace nvcuda;
__global__ void tile(const half *a, const half *b, float *c, int k)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + i, k);
        wmma::load_matrix_sync(right, b + i, k);
        wmma::mma_sync(sums, left, right, sums);
    }
    wmma::store_matrix_sync(c, sums, 16, wmma::mem_row_major);
}
