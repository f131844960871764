#define DECLARE_KERNEL(name) __global__ void __launch_bounds__(256) name
DECLARE_KERNEL(halve)(float *x, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) x[i] *= 0.5f;
}
