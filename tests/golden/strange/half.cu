#include <cuda_fp16.h>
__global__ void half_add(__half *a, const half2 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = __hadd(a[i], __low2half(b[i]));
}
