#include <cuda_bf16.h>
__global__ void widen(const __nv_bfloat16 *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __bfloat162float(in[i]);
}
