// Rows and columns, a switch, a helper kernel and a comment: __global__ void commented_out(float *x) {}
#define RADIUS 2
#ifndef SCALE
#define SCALE 0.25f
#endif

extern "C" __global__ void __launch_bounds__(block_size_x * block_size_y)
blur(const unsigned char *__restrict__ image, float *result, const double *weights, size_t width, size_t height)
{
    __shared__ float tile[block_size_y][block_size_x];
    const size_t x = blockIdx.x * block_size_x + threadIdx.x, y = blockIdx.y * block_size_y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0;
#if BORDER == BORDER_CLAMP
    const size_t from = x < RADIUS ? 0 : x - RADIUS;
#elif BORDER == BORDER_WRAP
    const size_t from = (x + width - RADIUS) % width;
#endif
#pragma unroll UNROLL
    for (int k = 0; k <= 2 * RADIUS; k++)
        sum += weights[k] * image[y * width + (from + k) % width];
#ifdef USE_BIAS
    sum += 0.5f;
#endif
    result[y * width + x] = SCALE * sum;
}

__global__ void count(int *counts, const float4 *values, int n)
{
    extern __shared__ int parts[];
    atomicAdd(&counts[threadIdx.x], (int)values[blockIdx.x].x);
}
