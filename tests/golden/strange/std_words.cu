#include <cmath>
#include <cstdint>
#include <cfloat>
#include <climits>
#include <algorithm>
__global__ void limits(float *x, std::uint32_t n, uint8_t *bytes)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { x[i] = std::sqrt(std::max(x[i], 0.0f)) * M_PI + FLT_MAX * 0 + INT_MAX * 0; bytes[i] = 255; }
}
