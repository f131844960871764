#include <cuComplex.h>
__global__ void multiply(cuFloatComplex *a, const cuFloatComplex *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = cuCmulf(a[i], b[i]);
}
