#include <cstddef>
#define ARGUMENTS const float *__restrict__ x, \
                  float *__restrict__ y, \
                  std::size_t n

__global__
void
softplus
(ARGUMENTS)
{
    std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = log1pf(expf(x[i]));
}
